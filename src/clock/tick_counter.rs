//! The check whether the machine's tick counter can be used as a clock.

use crate::arch::ticks;
use std::fmt;

/// State of the machine's tick counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TickCounter {
    /// A counter that can serve as a clock.
    Usable,
    /// A counter that this build does not know: the crate supports no tick counter of this architecture, or was built
    /// with `--cfg eventring_portable`.
    Unknown,
    /// A counter that the process may not read (`PR_SET_TSC`).
    Forbidden,
    /// A counter that may change its rate: the processor does not promise the same rate in all power and sleep states
    /// (CPUID leaf 0x8000_0007, EDX bit 8).
    NotInvariant,
    /// A counter that Linux does not offer as a clock source. Linux found that the counters of the cores disagree, or
    /// that the counter is unreliable. Details are in the kernel log.
    MarkedUnstable,
    /// A counter that stands still, or has an impossible rate.
    NoRate,
}

impl TickCounter {
    /// Returns true if the counter can serve as a clock.
    #[must_use]
    pub fn is_usable(self) -> bool {
        self == Self::Usable
    }

    /// Asks the machine and the operating system whether the counter is usable. Makes a few system calls, and does not
    /// allocate.
    pub(super) fn find_out() -> Self {
        if !ticks::EXISTS {
            Self::Unknown
        } else if !ticks::is_permitted() {
            Self::Forbidden
        } else if !ticks::is_invariant() {
            Self::NotInvariant
        } else if kernel_rejects() {
            Self::MarkedUnstable
        } else {
            Self::Usable
        }
    }
}

impl fmt::Display for TickCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usable => "the tick counter is usable as a clock",
            Self::Unknown => "this build knows no tick counter of this architecture",
            Self::Forbidden => "this process may not read the tick counter (PR_SET_TSC)",
            Self::NotInvariant => "the processor does not promise one rate of its tick counter in all power states",
            Self::MarkedUnstable => "the kernel does not offer the tick counter as a clock source (see the kernel log)",
            Self::NoRate => "the tick counter stands still, or has an impossible rate",
        })
    }
}

/// Returns true if Linux does not list the counter as a clock source. In this case Linux found that the counter is
/// unstable, or that the counters of the cores disagreed at boot.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn kernel_rejects() -> bool {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    let path = c"/sys/devices/system/clocksource/clocksource0/available_clocksource";
    // The list may be unreadable in a sandbox, or on another kernel with the same system calls. This function then does
    // not reject the counter.
    let Ok(file) = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut list = [0u8; 512];
    let Ok(length) = rustix::io::read(&file, &mut list) else {
        return false;
    };
    let list = &list[..length];
    !list.is_empty() && !lists(list, b"tsc")
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn kernel_rejects() -> bool {
    false
}

#[cfg(any(test, all(target_os = "linux", target_arch = "x86_64")))]
fn lists(list: &[u8], name: &[u8]) -> bool {
    list.split(u8::is_ascii_whitespace).any(|item| item == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read_word_by_word() {
        assert!(lists(b"tsc kvm-clock \n", b"tsc"));
        assert!(lists(b"kvm-clock tsc acpi_pm\n", b"tsc"));
        assert!(!lists(b"kvm-clock acpi_pm\n", b"tsc"));
        assert!(!lists(b"hyperv_clocksource_tsc_page acpi_pm\n", b"tsc"));
        assert!(!lists(b"\n", b"tsc"));
    }

    #[test]
    fn a_build_without_a_counter_says_so() {
        assert_eq!(TickCounter::find_out() == TickCounter::Unknown, !ticks::EXISTS);
    }
}
