//! System calls, samples and mapped files of the followed threads.

use super::follow::Follow;
use super::threads::Call;
use crate::record::kernel::body::{Mapped, RawStack, Record};
use crate::record::stacks::maps;
use crate::schema::{Sample, SampleKind, Sched, Stacks as StackEvent, Syscall};

impl Follow {
    pub(super) fn enter(&mut self, record: &Record, number: i32) {
        if let Some(thread) = self.threads.get(record.thread) {
            thread.call = Call::In { number, since: record.time, has_left: false };
        }
    }

    pub(super) fn exit(&mut self, record: &Record, epoch: u64, number: i32, result: i64) {
        let Some(thread) = self.threads.get(record.thread) else { return };
        let call = std::mem::replace(&mut thread.call, Call::None);
        if let Call::In { number: entered, since, has_left: true } = call
            && entered == number
        {
            self.counts.syscalls += 1;
            let nanos = record.time.saturating_sub(since);
            self.record(Sched::Syscall, epoch, &Syscall { thread_id: record.thread, number, nanos, result });
        }
    }

    /// Records a sample. Returns the number of its stack.
    pub(super) fn sample(&mut self, record: &Record, epoch: u64, stack: &RawStack, kind: SampleKind) -> u64 {
        let Some(ring) = &self.stack_ring else { return 0 };
        let thread_id = record.thread;
        let Some(process) = self.threads.get(thread_id).map(|thread| thread.process) else { return 0 };
        let stack_id = self.stacks.id(ring, epoch, process, stack);
        let sample = Sample { thread_id, cpu: record.cpu, kind, stack_id };
        ring.record(StackEvent::Sample as u16, epoch, &sample, &[]);
        self.counts.samples += u64::from(kind == SampleKind::OnProcessor);
        stack_id
    }

    pub(super) fn map(&mut self, mapped: &Mapped, epoch: u64) {
        let Some(ring) = self.stack_ring.as_ref().filter(|_| self.stacks.maps.add(mapped)) else { return };
        let place = mapped.begin..mapped.end;
        let mapping = maps::mapping(mapped.process, place, mapped.offset, &mapped.build_id);
        ring.record(StackEvent::Mapping as u16, epoch, &mapping, &[&mapped.path]);
    }
}
