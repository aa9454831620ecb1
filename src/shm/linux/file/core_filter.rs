//! The setting for the memory of this process that the kernel writes into core files.

use super::super::system::paths;
use rustix::fs::OFlags;

const FILTER: &str = "/proc/self/coredump_filter";
/// Bits of the filter: shared mappings of files that have a name, and shared huge pages.
const NAMED_AND_HUGE: u64 = 1 << 3 | 1 << 6;

/// Makes core files of this process contain shared mappings of files that have a name, and shared huge pages. Without
/// this, the kernel leaves rings with a name out. Does nothing where the system refuses it.
pub(crate) fn put_named_files_into_cores() {
    let Some(filter) = paths::read_text(FILTER).and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) else {
        return;
    };
    if filter & NAMED_AND_HUGE == NAMED_AND_HUGE {
        return;
    }
    if let Ok(file) = paths::open(FILTER.as_ref(), OFlags::WRONLY) {
        let _ = rustix::io::write(file, format!("{:#x}", filter | NAMED_AND_HUGE).as_bytes());
    }
}
