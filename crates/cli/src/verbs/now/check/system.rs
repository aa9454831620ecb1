//! The checks of the system: the ring directory, core files, perf.

use super::rings::CheckedRing;
use crate::input::programs::process;
use crate::text::format::bytes;
use eventring::files::{RingDirectories, RingName, free_bytes};
use eventring::internal::shm;
use eventring::internal::shm::{check_ring_directory, huge_page_mounts};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// An answer, in words.
#[derive(Serialize, JsonSchema)]
pub(super) struct Allowed {
    #[serde(rename = "allowed")]
    pub is_allowed: bool,
    pub text: String,
}

/// The bytes of the smallest ring of a program's own events.
const SMALLEST_RING_BYTES: u64 = 6 << 20;

/// Returns the directory in which programs of this user make rings, and whether they can.
pub(super) fn directory() -> Allowed {
    let Ok(name) = RingName::new(std::ffi::OsStr::new("ring")) else { unreachable!("the name is a good one") };
    let path = RingDirectories::from_environment().location_for_writing(&name).path;
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let (shown, user) = (directory.display(), geteuid().as_raw());
    let (is_allowed, text) = match (check_ring_directory(&directory), free_bytes(Some(&path))) {
        (Err(refusal), _) => (false, format!("programs of user {user} record nothing there: {refusal}")),
        (Ok(_), Some(free)) if free < SMALLEST_RING_BYTES => {
            (false, format!("{shown} has only {} free: no ring can be made there; free some memory", bytes(free)))
        }
        (Ok(false), _) => (true, format!("{shown} is not there yet: the first recorder makes it")),
        (Ok(true), Some(free)) => (true, format!("{shown} is right for user {user}, {} free", bytes(free))),
        (Ok(true), None) => (true, format!("{shown} is right for user {user}")),
    };
    Allowed { is_allowed, text }
}

/// Returns whether a core file of the process, or of one that this shell starts, is written and holds the rings.
pub(super) fn core_files(pid: Option<u32>, rings: &[CheckedRing]) -> Allowed {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let read = |file: &str| shm::read_text(format!("/proc/{process}/{file}"));
    let limit = read("limits").ok().and_then(|limits| {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"))?;
        line.split_whitespace().next().map(ToOwned::to_owned)
    });
    let pattern = shm::read_text("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let pattern = crate::text::format::one_line(pattern.trim());
    let where_to = match pattern.strip_prefix('|') {
        Some(program) => format!("the system gives them to `{program}`"),
        None => format!("the system writes them to `{pattern}`"),
    };
    let no = |text: String| Allowed { is_allowed: false, text };
    match limit.as_deref() {
        None => return no(format!("not known: this user may not see the limits of process {process}")),
        // A program that takes core files ignores the limit, unless it is 1.
        Some("0") if !pattern.starts_with('|') => {
            return no("none: the limit is 0; call `ulimit -c unlimited` before the program starts".to_owned());
        }
        Some("0" | "unlimited") => {}
        Some(limit) if limit.parse::<u64>().is_ok_and(|limit| limit < 1 << 30) => {
            return no(format!("cut after {limit} bytes: call `ulimit -c unlimited` before the program starts"));
        }
        Some(_) => {}
    }
    let Ok(filter) = read("coredump_filter").map(|filter| u64::from_str_radix(filter.trim(), 16).unwrap_or(0)) else {
        return no(format!("{where_to}; this user may not see which memory they hold"));
    };
    let huge = huge_page_mounts();
    let needs = |ring: &CheckedRing| match ring.ring.reader.path() {
        Some(path) if huge.iter().any(|mount| path.starts_with(mount)) => 1 << 6,
        path if path.is_none() || ring.ring.was_at.is_some() => 1 << 1,
        _ => 1 << 3,
    };
    let left_out: Vec<&str> =
        rings.iter().filter(|ring| filter & needs(ring) == 0).map(|ring| ring.name.as_str()).collect();
    match left_out.as_slice() {
        [] => Allowed { is_allowed: true, text: format!("{where_to}; rings are in them (filter {filter:#x})") },
        names => no(format!(
            "{where_to}, without the memory of {}: set EVENTRING_CORE=1 for the program, or `in_core_files` of its \
             recorder (filter {filter:#x})",
            names.join(", ")
        )),
    }
}

/// Returns what `eventring profile` may see.
pub(super) fn perf() -> Allowed {
    let level = shm::read_text("/proc/sys/kernel/perf_event_paranoid");
    let Some(level) = level.ok().and_then(|level| level.trim().parse::<i32>().ok()) else {
        return Allowed { is_allowed: false, text: "this system has no perf events".to_owned() };
    };
    // CAP_SYS_ADMIN and CAP_PERFMON.
    let capabilities = process::status(std::process::id(), "CapEff");
    let capabilities = capabilities.and_then(|bits| u64::from_str_radix(&bits, 16).ok()).unwrap_or(0);
    let may_all = capabilities & (1 << 21 | 1 << 38) != 0;
    let text = match level {
        _ if may_all => "`eventring profile` may see everything".to_owned(),
        ..=-1 => "every user may see everything".to_owned(),
        0 | 1 => "samples, and switches of this user's own programs".to_owned(),
        2 => "samples without the kernel's frames; `sudo sysctl kernel.perf_event_paranoid=1` allows more".to_owned(),
        _ => "not allowed; run `eventring profile` as root, or `sudo sysctl kernel.perf_event_paranoid=1`".to_owned(),
    };
    Allowed { is_allowed: may_all || level <= 2, text: format!("{text} (perf_event_paranoid {level})") }
}

/// Returns the ring directories that are there and that this user may not look into.
pub(super) fn closed_directories() -> Vec<PathBuf> {
    let mut directories = RingDirectories::from_environment().for_reading();
    let is_denied = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    directories.retain(|directory| fs::read_dir(directory).is_err_and(is_denied));
    directories
}
