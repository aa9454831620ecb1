//! The memory that a file on tmpfs can still take.
//!
//! tmpfs checks its own limit only, not how much memory is free. If a file takes more memory than the machine or the
//! container has, the kernel kills processes. So this library checks the free memory before it takes any for a file.

use std::path::Path;

use super::decimal::digits;
use super::paths::{field, read_number, read_text};

/// Returns how many bytes of memory this process can still get. This is the smaller of two numbers: the free memory of
/// the machine, and the limit of the control group. Free swap space is added to both. Returns `None` if the system
/// does not show the machine's memory.
pub(super) fn available_bytes() -> Option<u64> {
    let meminfo = read_text("/proc/meminfo")?;
    let swap = meminfo_bytes(&meminfo, "SwapFree").unwrap_or(0);
    let machine = meminfo_bytes(&meminfo, "MemAvailable")?.saturating_add(swap);
    let group = read_text("/proc/self/cgroup").and_then(|text| group_limit(Path::new("/sys/fs/cgroup"), &text));
    Some(match group {
        // The file is compared with the whole limit, not with the part of the limit that is free now. Most of the used
        // part may be cache, which the kernel can free.
        Some(limit) => machine.min(limit.saturating_add(swap)),
        None => machine,
    })
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    meminfo_field(meminfo, name)?.checked_mul(1024)
}

/// Returns the number in the line `name` of `/proc/meminfo`. Lines are such as `MemAvailable: 22804000 kB`. The number
/// is returned as written; the unit after it is ignored.
#[inline(never)]
pub(super) fn meminfo_field(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.split('\n').find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    digits(field(rest, 0)?.as_bytes())
}

/// Returns the smallest limit `memory.max` of the process's control group and of all groups above it. (The line
/// `0::/path` names the group; it exists in control groups version 2 only.)
fn group_limit(root: &Path, proc_cgroup: &str) -> Option<u64> {
    let path = proc_cgroup.split('\n').find_map(|line| line.strip_prefix("0::/"))?;
    let group = root.join(path);
    group
        .ancestors()
        .take_while(|directory| directory.starts_with(root))
        .filter_map(|directory| read_number(&directory.join("memory.max")))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_machine_tells_how_much_it_can_give() {
        let available = available_bytes().unwrap();
        assert!(available > 1 << 20, "{available}");
        assert!(available < 1 << 50, "{available}");
        let text = "MemTotal:       24683968 kB\nMemAvailable:   1000 kB\nSwapFree: 24 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(1_024_000));
        assert_eq!(meminfo_bytes(text, "SwapFree"), Some(24 << 10));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }

    #[test]
    fn the_tightest_limit_above_us_counts() {
        let root = tempfile::tempdir().unwrap();
        let limit = |group: &str, text: &str| {
            fs::create_dir_all(root.path().join(group)).unwrap();
            fs::write(root.path().join(group).join("memory.max"), text).unwrap();
        };
        limit("pod", "268435456\n");
        limit("pod/container", "max\n");
        limit("pod/other", "5\n");
        assert_eq!(group_limit(root.path(), "1:cpu:/x\n0::/pod/container\n"), Some(256 << 20));
        assert_eq!(group_limit(root.path(), "0::/elsewhere\n"), None);
        assert_eq!(group_limit(root.path(), "1:cpu:/pod\n"), None);
    }
}
