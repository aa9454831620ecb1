//! Whether a recorder measures the times of threads, if not, why, and what it costs. The context area of shard 0 says
//! this to readers.

use super::tables;
use crate::reader::Reader;

/// Whether a recorder measures the times of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum ThreadTimeState {
    /// The times are measured.
    Measured = 1,
    /// The times are measured, but the kernel does not tell how long a thread could have run (no CONFIG_SCHED_INFO, or
    /// no /proc).
    NoQueue = 2,
    /// The program or the environment has switched the measurement off.
    Off = 3,
    /// The program was built without the feature `thread-time`, or for a system without it.
    NotBuilt = 4,
    /// The C library does not register what the measurement needs: it is not glibc, or it is older than 2.35.
    Library = 5,
    /// The registration was switched off, or the kernel refused it.
    Unregistered = 6,
    /// The kernel does not tell a thread that it has waited (Linux 6.19 and later).
    Kernel = 7,
}

impl ThreadTimeState {
    const ALL: [Self; 7] =
        [Self::Measured, Self::NoQueue, Self::Off, Self::NotBuilt, Self::Library, Self::Unregistered, Self::Kernel];

    /// Returns the state with this code, if there is one.
    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == code)
    }

    /// Returns true if times are measured.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Measured | Self::NoQueue)
    }

    /// Returns the state in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::NoQueue => {
                "measured without the run-queue delay: the kernel has no /proc/thread-self/schedstat (CONFIG_SCHED_INFO)"
            }
            Self::Off => "not measured: the program or EVENTRING_THREAD_TIME has switched it off",
            Self::NotBuilt => "not measured: the program was built without the feature thread-time",
            Self::Library => "not measured: the program's C library registers no rseq (glibc 2.35 or later does)",
            Self::Unregistered => {
                "not measured: rseq is switched off (GLIBC_TUNABLES=glibc.pthread.rseq=0), or the kernel refuses it"
            }
            Self::Kernel => {
                "not measured: this kernel does not tell threads that they have waited (Linux 6.19 and later)"
            }
        }
    }
}

/// What a recorder says of its measurement of times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredTimes {
    /// Whether times are measured.
    pub state: ThreadTimeState,
    /// What this has cost all threads together, in nanoseconds.
    pub cost_nanos: u64,
    /// How often the kernel was asked.
    pub asked: u64,
    /// How often a thread was not asked, because its budget was used up.
    pub merged: u64,
}

impl MeasuredTimes {
    /// Reads what the recorder of this shard 0 says. Returns `None` if the ring has no tables, or a state that is not
    /// known here.
    #[must_use]
    pub fn read(shard0: &Reader) -> Option<Self> {
        let word = |offset| shard0.context_word(offset).unwrap_or(0);
        if word(tables::MAGIC_OFFSET) != tables::MAGIC {
            return None;
        }
        Some(Self {
            state: ThreadTimeState::from_code(word(tables::THREAD_TIME_STATE_OFFSET))?,
            cost_nanos: word(tables::THREAD_TIME_COST_OFFSET),
            asked: word(tables::THREAD_TIMES_OFFSET),
            merged: word(tables::THREAD_SWITCHES_OFFSET),
        })
    }
}
