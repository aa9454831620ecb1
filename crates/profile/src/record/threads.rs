//! The followed threads, and the known facts about them.

use crate::record::kernel::body::thread_name;
use crate::schema::{ThreadName, ThreadSeen};
use eventring::schema::Utf8;
use std::collections::{BTreeMap, HashMap};

/// The largest number of names of other threads that are kept.
const NAMES_MAX: usize = 1 << 16;

/// What a profile has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileSummary {
    /// The threads that were followed.
    pub threads: u64,
    /// How often threads have left a processor.
    pub switches: u64,
    /// Wake-ups.
    pub wakes: u64,
    /// Samples of running threads.
    pub samples: u64,
    /// System calls in which a thread has left its processor.
    pub syscalls: u64,
    /// Records that the kernel had no room for.
    pub kernel_lost: u64,
    /// Switches to a thread that the kernel has not told: they follow from what the thread did next.
    pub untold: u64,
    /// The largest error of the times, in nanoseconds.
    pub clock_error_nanos: u64,
    /// Names of addresses.
    pub names: u64,
}

/// The system call that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Unknown,
    None,
    In { number: i32, since: u64, has_left: bool },
}

impl Call {
    /// Returns the number as events have it.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Unknown => -2,
            Self::None => -1,
            Self::In { number, .. } => number,
        }
    }
}

pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) name: ThreadName,
    pub(super) call: Call,
    /// True if the kernel has said that the thread ends. It may still leave its processor.
    pub(super) ends: bool,
}

/// The followed threads, and names of others.
#[derive(Default)]
pub(super) struct Threads {
    followed: BTreeMap<u32, Thread>,
    names: HashMap<u32, ThreadName>,
    /// In a container the scheduler's tracepoints have the system's numbers of threads. What they are in here is
    /// learnt.
    numbers_here: HashMap<u32, u32>,
}

impl Threads {
    pub(super) fn get(&mut self, thread: u32) -> Option<&mut Thread> {
        self.followed.get_mut(&thread)
    }

    pub(super) fn insert(&mut self, process: u32, thread: u32, name: ThreadName) {
        // An earlier thread may have had the number.
        self.learn_name(thread, name);
        self.followed.insert(thread, Thread { process, name, call: Call::Unknown, ends: false });
    }

    pub(super) fn remove(&mut self, thread: u32) {
        self.followed.remove(&thread);
    }

    /// Returns the events that tell the followed threads.
    pub(super) fn seen(&self) -> impl Iterator<Item = ThreadSeen> {
        let seen = |(id, thread): (&u32, &Thread)| ThreadSeen {
            process_id: thread.process,
            thread_id: *id,
            name: thread.name,
        };
        self.followed.iter().map(seen)
    }

    /// Returns true if a thread of this process is followed.
    pub(super) fn has_process(&self, process: u32) -> bool {
        self.followed.values().any(|thread| thread.process == process)
    }

    /// Returns how many threads have not ended.
    pub(super) fn live(&self) -> usize {
        self.followed.values().filter(|thread| !thread.ends).count()
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        let mut processes: Vec<u32> = self.followed.values().map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// Returns the number that a thread has for this process.
    pub(super) fn here(&self, thread: u32) -> u32 {
        match self.numbers_here.is_empty() {
            true => thread,
            false => self.numbers_here.get(&thread).copied().unwrap_or(thread),
        }
    }

    /// Learns what a thread's number is for this process. A thread that has ended has none.
    pub(super) fn learn_number(&mut self, everywhere: u32, here: u32) {
        if everywhere != here && here != 0 && here != u32::MAX {
            bounded(&mut self.numbers_here, everywhere, here);
        }
    }

    /// Remembers the name of any thread.
    pub(super) fn learn_name(&mut self, thread: u32, name: ThreadName) {
        if thread != 0 && self.names.get(&thread) != Some(&name) {
            bounded(&mut self.names, thread, name);
        }
    }

    /// Returns the name of a thread, which may be another program's.
    pub(super) fn name(&mut self, process: u32, thread: u32) -> ThreadName {
        if thread == 0 {
            return [Utf8(0); 16];
        }
        let known = self.names.get(&thread).copied();
        let known = known.or_else(|| self.followed.get(&thread).map(|thread| thread.name));
        known.unwrap_or_else(|| {
            let name = name_now(process, thread);
            self.learn_name(thread, name);
            name
        })
    }
}

fn bounded<T>(map: &mut HashMap<u32, T>, key: u32, value: T) {
    if map.len() >= NAMES_MAX {
        map.clear();
    }
    map.insert(key, value);
}

/// Returns the name that a thread has now.
pub(super) fn name_now(process: u32, thread: u32) -> ThreadName {
    let name = std::fs::read(format!("/proc/{process}/task/{thread}/comm")).unwrap_or_default();
    thread_name(name.strip_suffix(b"\n").unwrap_or(&name))
}
