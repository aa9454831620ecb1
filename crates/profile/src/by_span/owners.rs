//! The threads that had one thread id, and the time in which each thread had it: the system reuses the ids of ended
//! threads. The last name of a thread counts: the first may be that of the program that started it.

use crate::line::thread::name_of;
use crate::schema::{Sched, ThreadEnded, ThreadName, ThreadSeen};
use eventring::reader::Descriptor;
use eventring::schema::{EventPayload as _, EventType as _};
use std::collections::HashMap;
use std::sync::Arc;

/// The threads of a recording, by number and time.
#[derive(Debug, Default)]
pub struct ThreadOwners(HashMap<u32, Vec<ThreadOwner>>);

/// A thread from its beginning to its end.
#[derive(Clone, Debug)]
pub struct ThreadOwner {
    /// The process, as the system numbers it.
    pub process_id: u32,
    name: ThreadName,
    since_nanos: u64,
    has_ended: bool,
}

impl ThreadOwners {
    /// Takes an event of the scheduler.
    pub fn event(&mut self, descriptor: &Descriptor, payload: &[u8]) {
        match Sched::from_code(descriptor.event_type) {
            Some(Sched::ThreadSeen) => {
                let Ok((seen, _)) = ThreadSeen::decode(payload) else { return };
                let owners = self.0.entry(seen.thread_id).or_default();
                match owners.last_mut().filter(|owner| !owner.has_ended) {
                    // The last name is the one that says most: the first may be that of whoever has started it.
                    Some(owner) => (owner.process_id, owner.name) = (seen.process_id, seen.name),
                    None => owners.push(ThreadOwner {
                        process_id: seen.process_id,
                        name: seen.name,
                        since_nanos: descriptor.record_epoch_nanos,
                        has_ended: false,
                    }),
                }
            }
            Some(Sched::ThreadEnded) => {
                let Ok((ended, _)) = ThreadEnded::decode(payload) else { return };
                if let Some(owner) = self.0.get_mut(&ended.thread_id).and_then(|owners| owners.last_mut()) {
                    owner.has_ended = true;
                }
            }
            _ => {}
        }
    }

    /// Returns how many threads have had a number before the one that has it at a time. What is told before the first
    /// word about a thread belongs to the first one.
    #[must_use]
    pub fn turn(&self, thread_id: u32, nanos: u64) -> usize {
        let owners = self.0.get(&thread_id).map_or(&[][..], Vec::as_slice);
        owners.partition_point(|owner| owner.since_nanos <= nanos).saturating_sub(1)
    }

    /// Returns the thread that has a number in its turn.
    #[must_use]
    pub fn owner(&self, thread_id: u32, turn: usize) -> Option<&ThreadOwner> {
        self.0.get(&thread_id)?.get(turn)
    }

    /// Returns the name of a thread that has a number in its turn.
    #[must_use]
    pub fn name(&self, thread_id: u32, turn: usize) -> Option<Arc<str>> {
        self.owner(thread_id, turn).map(|owner| name_of(&owner.name, thread_id))
    }

    /// Returns the name of a process: that of its first thread. Of several processes of the number, the last one that
    /// is known.
    #[must_use]
    pub fn process_name(&self, process_id: u32) -> Option<Arc<str>> {
        let owners = self.0.get(&process_id)?;
        let owner = owners.iter().rev().find(|owner| owner.process_id == process_id)?;
        Some(name_of(&owner.name, process_id))
    }

    /// Returns an estimate of the bytes that are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let owners = self.0.values().map(|owners| (64 + owners.capacity() * size_of::<ThreadOwner>()) as u64);
        owners.fold(0, u64::saturating_add)
    }
}
