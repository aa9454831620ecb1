//! The time line of each thread, from the scheduler's events.
//!
//! | file | idea |
//! |---|---|
//! | `thread` | the time line of one thread |
//! | `syscalls` | what a thread waits for in each system call |
//! | `times` | lists of intervals that do not overlap: children, windows |

pub(crate) mod syscalls;
pub(crate) mod thread;
pub(crate) mod times;

use crate::schema::{KernelLost, Sched, Session, SwitchedIn, SwitchedOut, ThreadEnded, ThreadName, ThreadSeen, Woken};
use eventring::reader::Descriptor;
use eventring::schema::{EventPayload as _, EventType as _};
use std::collections::HashMap;
use thread::ThreadLine;

/// The time lines of all threads, made of the events of the scheduler.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) of_threads: HashMap<u32, ThreadLine>,
    /// The process and the name of each thread that was seen.
    pub(crate) seen: HashMap<u32, (u32, ThreadName)>,
    pub(crate) session: Option<Session>,
    /// The records that the kernel has left out.
    pub(crate) kernel_lost: u64,
    /// The time of the first event; before it, nothing was recorded.
    pub(crate) begin_nanos: Option<u64>,
}

/// Whose time line an event has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    Nobody,
    Thread(u32),
    All,
}

impl Lines {
    /// Takes an event of the scheduler.
    pub(crate) fn event(&mut self, descriptor: &Descriptor, payload: &[u8]) -> Changed {
        self.decode(descriptor, payload).unwrap_or(Changed::Nobody)
    }

    fn decode(&mut self, descriptor: &Descriptor, payload: &[u8]) -> Option<Changed> {
        let nanos = descriptor.record_epoch_nanos;
        self.begin_nanos = Some(self.begin_nanos.map_or(nanos, |begin| begin.min(nanos)));
        let lines = &mut self.of_threads;
        let thread = match Sched::from_code(descriptor.event_type)? {
            Sched::SwitchedOut => {
                let event = SwitchedOut::decode(payload).ok()?.0;
                lines.entry(event.thread_id).or_default().switched_out(nanos, &event);
                event.thread_id
            }
            Sched::SwitchedIn => {
                let event = SwitchedIn::decode(payload).ok()?.0;
                lines.entry(event.thread_id).or_default().switched_in(nanos);
                event.thread_id
            }
            Sched::Woken => {
                let event = Woken::decode(payload).ok()?.0;
                lines.entry(event.thread_id).or_default().woken(nanos, &event);
                event.thread_id
            }
            Sched::ThreadEnded => {
                let event = ThreadEnded::decode(payload).ok()?.0;
                lines.entry(event.thread_id).or_default().lose(nanos);
                event.thread_id
            }
            Sched::ThreadSeen => {
                let event = ThreadSeen::decode(payload).ok()?.0;
                _ = lines.entry(event.thread_id).or_default();
                self.seen.insert(event.thread_id, (event.process_id, event.name));
                event.thread_id
            }
            Sched::KernelLost => {
                let event = KernelLost::decode(payload).ok()?.0;
                self.kernel_lost = self.kernel_lost.saturating_add(event.count);
                if !event.has_switches {
                    return None;
                }
                self.lose(nanos);
                return Some(Changed::All);
            }
            Sched::Session => {
                self.session = Some(Session::decode(payload).ok()?.0);
                return None;
            }
            Sched::Syscall => return None,
        };
        Some(Changed::Thread(thread))
    }

    /// Returns true if it is known who wakes threads.
    pub(crate) fn has_wakers(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_others)
    }

    /// Nothing is known of any thread from here on.
    pub(crate) fn lose(&mut self, nanos: u64) {
        self.of_threads.values_mut().for_each(|line| line.lose(nanos));
    }
}
