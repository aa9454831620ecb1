//! The memory that a file on tmpfs can still take.
//!
//! This library checks the free memory before it allocates memory for a file, because tmpfs checks only its own limit.
//! If a file takes more memory than the machine or the container has, the kernel kills processes.

use std::path::Path;

use super::super::system::paths::{self, field, read_number, read_text};
use crate::shm::decimal::digits;

/// Returns how many bytes of memory this process can still get. This is the smaller of two numbers: the free memory of
/// the machine with its free swap space, and the free part of the control group's limit. Returns `None` if the system
/// does not show the machine's memory.
pub(in crate::shm::linux) fn available_bytes() -> Option<u64> {
    let meminfo = read_text("/proc/meminfo")?;
    let swap = meminfo_bytes(&meminfo, "SwapFree").unwrap_or(0);
    let machine = meminfo_bytes(&meminfo, "MemAvailable")?.saturating_add(swap);
    let group = read_text("/proc/self/cgroup").and_then(|text| free_in_groups(Path::new("/sys/fs/cgroup"), &text));
    Some(group.map_or(machine, |group| machine.min(group)))
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    meminfo_field(meminfo, name)?.checked_mul(1024)
}

/// Returns the number in the line `name` of `/proc/meminfo`. Lines are such as `MemAvailable: 22804000 kB`. The number
/// is returned as written; the unit after it is ignored.
#[inline(never)]
pub(in crate::shm::linux) fn meminfo_field(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.split('\n').find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    digits(field(rest, 0)?.as_bytes())
}

/// The names by which a version of control groups shows the memory of a group.
struct GroupFiles {
    /// The mount point below that of all control groups.
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The lines of `memory.stat` with the caches of files.
    caches: [&'static str; 2],
}

const VERSION_2: GroupFiles =
    GroupFiles { mount: "", limit: "memory.max", used: "memory.current", caches: ["active_file", "inactive_file"] };

const VERSION_1: GroupFiles = GroupFiles {
    mount: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    caches: ["total_active_file", "total_inactive_file"],
};

impl GroupFiles {
    /// Returns the part of the group's limit that is free. The cache of files does not count as used, because the
    /// kernel can free it. Returns `None` if the group has no limit.
    fn free_bytes(&self, group: &Path) -> Option<u64> {
        let limit = read_number(&group.join(self.limit))?;
        let used = read_number(&group.join(self.used)).unwrap_or(0);
        let stat = paths::read(&group.join("memory.stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let cached =
            |name: &&str| stat.split('\n').find_map(|line| digits(line.strip_prefix(*name)?.trim().as_bytes()));
        let cached = self.caches.iter().filter_map(cached).fold(0, u64::saturating_add);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    }
}

/// Returns how many bytes the process's control group, and all groups above it, can still take. A line of
/// `/proc/self/cgroup` names the group: `0::/path` in version 2, `4:memory:/path` in version 1.
fn free_in_groups(root: &Path, proc_cgroup: &str) -> Option<u64> {
    let free = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
        let files = match controllers {
            "" => VERSION_2,
            several if several.split(',').any(|controller| controller == "memory") => VERSION_1,
            _ => return None,
        };
        let root = root.join(files.mount);
        let group = root.join(path);
        let groups = group.ancestors().take_while(|group| group.starts_with(&root));
        groups.filter_map(|group| files.free_bytes(group)).min()
    };
    proc_cgroup.split('\n').filter_map(free).min()
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
    fn the_group_above_us_with_the_least_free_memory_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |group: &str, file: &str, text: &str| {
            fs::create_dir_all(root.path().join(group)).unwrap();
            fs::write(root.path().join(group).join(file), text).unwrap();
        };
        put("pod", "memory.max", "268435456\n");
        put("pod", "memory.current", "100000000\n");
        put("pod", "memory.stat", "anon 5\nactive_file 30000000\nactive_file_x 7\ninactive_file 10000000\n");
        put("pod/container", "memory.max", "max\n");
        put("pod/container", "memory.current", "7\n");
        put("pod/other", "memory.max", "5\n");
        put("pod/other", "memory.current", "6\n");
        put("memory/pod", "memory.limit_in_bytes", "5000\n");
        put("memory/pod", "memory.usage_in_bytes", "4000\n");
        put("memory/pod", "memory.stat", "inactive_file 900\ntotal_inactive_file 30\ntotal_active_file 2\n");
        put("memory", "memory.limit_in_bytes", "9223372036854771712\n");
        let free = |proc_cgroup| free_in_groups(root.path(), proc_cgroup);
        assert_eq!(free("1:cpu:/x\n0::/pod/container\n"), Some((256 << 20) - 60_000_000));
        assert_eq!(free("0::/pod/other\n"), Some(0));
        assert_eq!(free("4:memory:/pod/gone\n0::/\n"), Some(1032));
        assert_eq!(free("4:hugetlb,memory:/pod\n0::/pod\n"), Some(1032));
        assert_eq!(free("0::/elsewhere\n"), None);
        assert_eq!(free("1:cpu:/pod\n"), None);
    }
}
