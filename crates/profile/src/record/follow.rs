//! Conversion of the kernel's records to events.

use super::clock::TimeLine;
use super::rings::Ring;
use super::stacks::Stacks;
use super::threads::{Call, ProfileSummary, Threads, name_now};
use crate::record::kernel::body::{Body, Record};
use crate::record::stacks::maps;
use crate::schema::{
    KernelLost, OffState, SampleKind, Sched, Stacks as StackEvent, SwitchedIn, SwitchedOut, ThreadEnded, ThreadName,
    ThreadSeen, Woken,
};
use eventring::schema::{EventPayload, Utf8};
use std::collections::HashMap;

/// The kernel tells the stack of a switch right after the switch: within this number of records, and this time.
const AHEAD_MAX: usize = 64;
const AHEAD_NANOS: u64 = 1_000_000;

/// The followed threads, and the rings that get their events.
pub(super) struct Follow {
    pub(super) threads: Threads,
    pub(super) stacks: Stacks,
    pub(super) counts: ProfileSummary,
    pub(super) sched: Ring,
    pub(super) stack_ring: Option<Ring>,
    /// True if system calls are told.
    pub(super) has_syscalls: bool,
    /// True if the scheduler's tracepoints tell the switches.
    pub(super) has_others: bool,
    /// Who has come to each processor last, and when.
    pub(super) on_processors: HashMap<u16, (u32, u64)>,
}

impl Follow {
    /// Begins to follow all threads of a process that runs already.
    pub(super) fn begin(&mut self, process: u32, threads: &[u32], epoch: u64) {
        self.see_all(process, threads, epoch);
        // It may have ended already, and what it has started is followed all the same.
        self.see_all(process, &[process], epoch);
        maps::of_process(process).iter().for_each(|mapped| self.map(mapped, epoch));
    }

    /// Follows these threads of a process, as far as they are not followed yet.
    pub(super) fn see_all(&mut self, process: u32, threads: &[u32], epoch: u64) {
        for thread in threads {
            if self.threads.get(*thread).is_none() {
                self.see(process, *thread, name_now(process, *thread), epoch);
            }
        }
    }

    /// Records what a record says. `later` are the records after it.
    pub(super) fn take(&mut self, record: &Record, later: &[Record], line: &TimeLine) {
        let epoch = line.epoch_nanos(record.time);
        match &record.body {
            Body::Switch { previous, state, next, next_name, previous_name } => {
                self.threads.learn_number(*previous, record.thread);
                let (previous, next) = (self.threads.here(*previous), self.threads.here(*next));
                self.threads.learn_name(previous, *previous_name);
                self.threads.learn_name(next, *next_name);
                let next_name = if next == 0 { [Utf8(0); 16] } else { *next_name };
                self.see_untold(record, previous, line);
                self.on_processors.insert(record.cpu, (next, record.time));
                self.leave(record, epoch, previous, *state, (next, next_name), later);
                self.come_back(record, epoch, next);
            }
            Body::Left { is_preempted } => {
                let state = if *is_preempted { OffState::Runnable } else { OffState::Sleeping };
                self.leave(record, epoch, record.thread, state, (0, [Utf8(0); 16]), later);
            }
            Body::Back => self.come_back(record, epoch, record.thread),
            Body::Waking { thread, cpu, by_interrupt } => {
                let thread = self.threads.here(*thread);
                let waker = if *by_interrupt { (0, 0) } else { (record.process, record.thread) };
                self.wake(epoch, thread, waker, *cpu);
            }
            Body::Enter { number } => self.enter(record, *number),
            Body::Exit { number, result } => self.exit(record, epoch, *number, *result),
            Body::Sample { stack, at_switch: false } => {
                self.sample(record, epoch, stack, SampleKind::OnProcessor);
            }
            // The switch before it has recorded it.
            Body::Sample { at_switch: true, .. } => {}
            Body::Forked { parent_process, .. } if !self.threads.has_process(*parent_process) => {}
            Body::Forked { process, thread, parent_process, parent_thread } => {
                if process != parent_process {
                    self.stacks.maps.fork(*parent_process, *process);
                }
                let name = self.threads.name(*parent_process, *parent_thread);
                self.see(*process, *thread, name, epoch);
                // A new thread can run from now on.
                self.wake(epoch, *thread, (*parent_process, *parent_thread), record.cpu);
            }
            Body::Ended { thread } => match self.threads.get(*thread) {
                Some(known) if self.has_others => known.ends = true,
                Some(_) => self.end(*thread, epoch),
                None => {}
            },
            Body::Named { process, thread, name, by_exec } => {
                if *by_exec {
                    self.stacks.maps.clear(*process);
                    self.stacks.unwinders.clear(*process);
                }
                self.threads.learn_name(*thread, *name);
                if self.threads.has_process(*process) {
                    self.see(*process, *thread, *name, epoch);
                }
            }
            Body::Mapped(mapped) if self.threads.has_process(mapped.process) => self.map(mapped, epoch),
            Body::Mapped(_) => {}
            Body::Lost(lost) => self.lose(*lost, epoch),
        }
    }

    /// Records again which threads and files there are.
    pub(super) fn tell_again(&self, epoch: u64) {
        for seen in self.threads.seen() {
            self.record(Sched::ThreadSeen, epoch, &seen);
        }
        if let Some(ring) = &self.stack_ring {
            self.stacks
                .maps
                .each(|mapping, path| ring.record(StackEvent::Mapping as u16, epoch, &mapping, &[path.as_bytes()]));
        }
    }

    /// Records that the kernel has left out records of a buffer.
    pub(super) fn lose(&mut self, lost: KernelLost, epoch: u64) {
        self.counts.kernel_lost += lost.count;
        if lost.has_switches {
            self.on_processors.clear();
        }
        self.record(Sched::KernelLost, epoch, &lost);
    }

    pub(super) fn record(&self, event: Sched, epoch: u64, payload: &impl EventPayload) {
        self.sched.record(event as u16, epoch, payload, &[]);
    }

    fn see(&mut self, process_id: u32, thread_id: u32, name: ThreadName, epoch: u64) {
        match self.threads.get(thread_id) {
            Some(known) if !known.ends => {
                if (known.process, known.name) == (process_id, name) {
                    return;
                }
                (known.process, known.name) = (process_id, name);
            }
            _ => {
                self.counts.threads += 1;
                self.threads.insert(process_id, thread_id, name);
            }
        }
        self.record(Sched::ThreadSeen, epoch, &ThreadSeen { process_id, thread_id, name });
    }

    fn end(&mut self, thread_id: u32, epoch: u64) {
        self.threads.remove(thread_id);
        self.record(Sched::ThreadEnded, epoch, &ThreadEnded { thread_id });
    }

    fn leave(
        &mut self,
        record: &Record,
        epoch: u64,
        thread_id: u32,
        state: OffState,
        (next_thread_id, next_name): (u32, ThreadName),
        later: &[Record],
    ) {
        let has_syscalls = self.has_syscalls;
        let Some(thread) = self.threads.get(thread_id) else { return };
        let syscall = if has_syscalls { thread.call.code() } else { Call::Unknown.code() };
        if let Call::In { has_left, .. } = &mut thread.call {
            *has_left = true;
        }
        let stack = later.iter().take(AHEAD_MAX).take_while(|later| later.time - record.time <= AHEAD_NANOS);
        let stack = stack.filter(|later| later.thread == thread_id).find_map(|later| match &later.body {
            Body::Sample { stack, at_switch: true } => Some(stack),
            _ => None,
        });
        let stack_id = stack.map_or(0, |stack| self.sample(record, epoch, stack, SampleKind::SwitchedOut));
        self.counts.switches += 1;
        let left = SwitchedOut { thread_id, next_thread_id, stack_id, syscall, cpu: record.cpu, state, next_name };
        self.record(Sched::SwitchedOut, epoch, &left);
        if state == OffState::Ended {
            self.end(thread_id, epoch);
        }
    }

    /// Some kernels do not tell the switches away from protected threads. Then the switch before this one is missing: a
    /// thread leaves the processor that has not come to it. It came after the one that was told last.
    fn see_untold(&mut self, record: &Record, thread_id: u32, line: &TimeLine) {
        let Some((last, time)) = self.on_processors.get(&record.cpu).copied() else { return };
        if last != thread_id && self.threads.get(thread_id).is_some() {
            self.counts.untold += 1;
            self.come_back(record, line.epoch_nanos(time) + 1, thread_id);
        }
    }

    fn come_back(&mut self, record: &Record, epoch: u64, thread_id: u32) {
        if self.threads.get(thread_id).is_some() {
            self.record(Sched::SwitchedIn, epoch, &SwitchedIn { thread_id, cpu: record.cpu });
        }
    }

    fn wake(&mut self, epoch: u64, thread_id: u32, (waker_process_id, waker_thread_id): (u32, u32), cpu: u16) {
        if !self.has_others || self.threads.get(thread_id).is_none() {
            return;
        }
        let waker_name = self.threads.name(waker_process_id, waker_thread_id);
        self.counts.wakes += 1;
        let woken = Woken { thread_id, waker_thread_id, waker_process_id, cpu, waker_name };
        self.record(Sched::Woken, epoch, &woken);
    }
}
