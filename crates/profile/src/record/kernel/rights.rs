//! The data that this user may get from the kernel, and the settings that allow the rest.

use std::fmt;
use std::io;

/// Something that could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is not recorded.
    pub what: &'static str,
    /// Why the kernel refused it.
    pub why: String,
    /// What allows it.
    pub remedy: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}; {})", self.what, self.why, self.remedy)
    }
}

/// The remedies.
pub(crate) const ALLOW_SYSTEM: &str =
    "sudo sysctl kernel.perf_event_paranoid=-1, or run it as root or with CAP_PERFMON";
pub(crate) const ALLOW_KERNEL: &str = "sudo sysctl kernel.perf_event_paranoid=1, or run it as root or with CAP_PERFMON";
pub(crate) const ALLOW_PERF: &str = "sudo sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON; in a container: a seccomp \
                                     profile that allows perf_event_open, and --cap-add PERFMON";
pub(crate) const MOUNT: &str =
    "sudo mount -t tracefs tracefs /sys/kernel/tracing, and run it as a user who may read it";
pub(crate) const MORE_MEMORY: &str = "sudo sysctl kernel.perf_event_mlock_kb=8192, or follow fewer threads";
pub(crate) const LOWER_RATE: &str = "give a lower --hz: the largest is kernel.perf_event_max_sample_rate";

impl Missing {
    /// Makes the account of something that the kernel has refused.
    pub(crate) fn refused(what: &'static str, error: &io::Error, remedy: &'static str) -> Self {
        let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let level = level.map(|level| format!(", kernel.perf_event_paranoid is {}", level.trim())).unwrap_or_default();
        Self { what, why: format!("{error}{level}"), remedy }
    }

    /// Makes the account of tracepoints of which nothing can be found out.
    pub(crate) fn no_tracefs(what: &'static str) -> Self {
        Self { what, why: "tracefs is not mounted, or this user may not read it".to_owned(), remedy: MOUNT }
    }
}
