//! Whether a recorder measures the times of threads, and if not, why. Rings carry this for readers.

/// Whether a recorder measures the times of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(in crate::tracing) enum ThreadTimeState {
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
    pub(in crate::tracing) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == code)
    }

    /// Returns true if times are measured.
    pub(in crate::tracing) fn is_measured(self) -> bool {
        matches!(self, Self::Measured | Self::NoQueue)
    }

    /// Returns the state in words.
    pub(in crate::tracing) fn text(self) -> &'static str {
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
            Self::Kernel => "not measured: this kernel does not tell threads that they have waited (Linux 6.19 and later)",
        }
    }
}
