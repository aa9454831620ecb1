//! The content of a directory under one name: captures, tables made of them, and the ends of what was removed.

use crate::capture::batches::{BatchStart, host_name};
use crate::capture::ends::write_ends;
use crate::capture::{CaptureError, CaptureErrorKind, CaptureFile, OutputEntry};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The end of the names of files that hold events.
pub(super) const EXTENSION: &str = "evc";
/// The end of the names of directories that hold the tables of a capture.
const TABLES_EXTENSION: &str = "parquet";

/// The limits of what a directory keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetentionLimits {
    /// The age from which on files are removed.
    pub(super) max_age: Option<Duration>,
    /// The largest size of everything under the name.
    pub(super) max_bytes: Option<u64>,
    /// True if a capture is removed when its tables are there.
    pub(super) is_in_tables: bool,
}

/// Something in the directory that a name has: a file, or a directory that was made of one.
pub(super) struct KeptEntry {
    pub(super) path: PathBuf,
    /// The number in the name. It grows from file to file; a clock may step back.
    pub(super) number: u64,
    pub(super) is_capture: bool,
    pub(super) bytes: u64,
    written: SystemTime,
}

/// Returns everything under a name, the oldest first.
pub(super) fn kept_entries(directory: &Path, name: &str) -> Result<Vec<KeptEntry>, CaptureError> {
    let read = |error| CaptureError::io("read the directory", error).at(directory);
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(number) = number_in(file_name, name) else { continue };
        // What somebody else removes meanwhile is not there.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let is_capture = metadata.is_file() && path.extension().is_some_and(|extension| extension == EXTENSION);
        let bytes = if metadata.is_dir() { bytes_in(&path) } else { metadata.len() };
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        entries.push(KeptEntry { path, number, is_capture, bytes, written });
    }
    entries.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    Ok(entries)
}

/// Returns the number in a name that a forwarder gives: 7 for `NAME-20261123T201500Z.0007` and an extension.
fn number_in(file_name: &str, name: &str) -> Option<u64> {
    let (time, number) = file_name.strip_prefix(name)?.strip_prefix('-')?.split_once('.')?;
    let is_time = time.len() == 16 && time.ends_with('Z') && time.as_bytes()[8] == b'T';
    let (number, _) = number.split_once('.')?;
    let is_number = is_time && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Returns the start after everything that was written under this name. A ring that the newest file does not describe
/// begins after the last file that does, or after its end as the file of ends has it: its program may have ended
/// before, or the forwarder was killed while it described the rings.
pub(super) fn start_after_newest(directory: &Path, name: &str) -> Result<BatchStart, CaptureError> {
    let mut start = BatchStart::of_host(&host_name());
    let mut has_newest = false;
    let entries = kept_entries(directory, name)?;
    if let Some(newest) = entries.iter().rfind(|entry| entry.is_capture) {
        // A forwarder has the newest file locked as long as it lives. Two would write the same events.
        OutputEntry::open(&newest.path)?.open_to_append()?;
    }
    for entry in entries.iter().rev().filter(|entry| entry.is_capture) {
        match CaptureFile::open(&entry.path) {
            Ok(capture) if !capture.rings().is_empty() => {
                if has_newest {
                    start.after_older(&capture);
                } else {
                    start.after(&capture);
                }
                has_newest = true;
            }
            // Something has happened to an older file. What it had may be written again.
            _ if has_newest => {}
            Err(error) if error.kind() != CaptureErrorKind::NotACapture => return Err(error),
            // Its forwarder was killed before it had written anything.
            _ => remove(&entry.path)?,
        }
    }
    match CaptureFile::open(&ends_path(directory, name)) {
        Ok(ends) => start.after_older(&ends),
        // Without the file, or with a damaged one, rings that ended long ago may be written again.
        Err(error) if matches!(error.kind(), CaptureErrorKind::NotFound | CaptureErrorKind::NotACapture) => {}
        Err(error) => return Err(error),
    }
    Ok(start)
}

fn ends_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.ends"))
}

/// Removes what is too old, the oldest of what is too much, and captures that are in tables. The capture that is being
/// written stays, and the newest of the others: the next forwarder goes on after it. Returns what was removed.
pub(super) fn remove_oldest(
    directory: &Path,
    name: &str,
    limits: RetentionLimits,
    current: Option<&Path>,
) -> Result<Vec<KeptEntry>, CaptureError> {
    let mut entries = kept_entries(directory, name)?;
    let is_current = |entry: &KeptEntry| Some(entry.path.as_path()) == current;
    let newest = entries.iter().rposition(|entry| entry.is_capture && !is_current(entry));
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut go = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let is_old = limits.max_age.is_some_and(|age| entry.written.elapsed().is_ok_and(|time| time > age));
        let is_too_much = limits.max_bytes.is_some_and(|max| bytes > max);
        let is_in_tables = limits.is_in_tables && entry.is_capture && tables_of(&entry.path).is_dir();
        let goes = (is_old || is_too_much || is_in_tables) && Some(index) != newest && !is_current(entry);
        bytes -= if goes { entry.bytes } else { 0 };
        go.push(goes);
    }
    let mut goes = go.into_iter();
    entries.retain(|_| goes.next() == Some(true));
    remember_ends(directory, name, &entries)?;
    entries.iter().try_for_each(|entry| remove(&entry.path))?;
    Ok(entries)
}

/// Returns the directory of the tables of a capture.
fn tables_of(capture: &Path) -> PathBuf {
    capture.with_extension(TABLES_EXTENSION)
}

/// Writes how far the rings of captures were captured, before the captures are removed.
fn remember_ends(directory: &Path, name: &str, entries: &[KeptEntry]) -> Result<(), CaptureError> {
    let path = ends_path(directory, name);
    for entry in entries.iter().filter(|entry| entry.is_capture) {
        // A capture that cannot be read says nothing.
        let Ok(removed) = CaptureFile::open(&entry.path) else { continue };
        let known = CaptureFile::open(&path).ok();
        let captures: Vec<&CaptureFile> = known.iter().chain([&removed]).collect();
        write_ends(&path, &captures).map_err(|error| error.at(&path))?;
    }
    Ok(())
}

/// Removes a file or a directory. What is not there any more is removed already.
pub(super) fn remove(path: &Path) -> Result<(), CaptureError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CaptureError::io_writing("remove it", error).at(path))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_were_given_here_are_ours() {
        let name = "shop-20261123T201500Z.0007.evc";
        assert_eq!(number_in(name, "shop"), Some(7));
        assert_eq!(number_in("shop-20261123T201500Z.12345.parquet", "shop"), Some(12345));
        for other in [
            "shop-20261123T201500Z.evc",
            "shop-20261123T201500Z.x.evc",
            "shop-x.0007.evc",
            "shop2-20261123T201500Z.0007.evc",
            "shop.evc",
            "shop.ends",
        ] {
            assert_eq!(number_in(other, "shop"), None, "{other}");
        }
        assert_eq!(number_in(name, "sho"), None);
    }
}
