//! The content of a directory under one name: captures, tables made of them, and the ends of what was removed.

use eventring_capture::batches::{BatchStart, host_name};
use eventring_capture::ends::CaptureEnds;
use eventring_capture::parts::remove_file;
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile, OutputEntry};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The end of the names of files that hold events.
pub(super) const EXTENSION: &str = "evc";
/// The end of the names of directories that hold the tables of a capture.
const TABLES_EXTENSION: &str = "parquet";
/// The end of the name of the file that says how far the rings of a name were written.
const ENDS_EXTENSION: &str = "ends";

/// The limits of what a directory keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// Returns the start after everything that was written in the directory, and the ends of what was written under this
/// name. A ring may have been written under another name, which is that of another first ring: it goes on there, too.
pub(super) fn start_after_newest(directory: &Path, name: &str) -> Result<(BatchStart, CaptureEnds), CaptureError> {
    let mut start = BatchStart::of_host(&host_name());
    let mut ends = CaptureEnds::default();
    let known = CaptureEnds::open(&ends_path(directory, name))?;
    let mut captures = readable_captures(directory, name, known.is_some())?;
    if let Some(newest) = captures.first() {
        start.after(newest);
    }
    captures.iter().skip(1).chain(&known).for_each(|older| start.after_older(older));
    captures.reverse();
    known.iter().chain(&captures).for_each(|capture| ends.take(capture));
    for other in names_with_ends(directory)?.iter().filter(|other| *other != name) {
        // What is wrong with files of other names is said where these are written.
        let of_other = CaptureEnds::open(&ends_path(directory, other)).ok().flatten();
        let newest = kept_entries(directory, other)?.into_iter().rfind(|entry| entry.is_capture);
        let newest = newest.and_then(|entry| CaptureFile::open(&entry.path).ok());
        of_other.iter().chain(&newest).for_each(|capture| start.after_older(capture));
    }
    Ok((start, ends))
}

/// Returns the captures that a forwarder goes on after, the newest first: only the newest if the ends of the others are
/// known. The newest is locked by the forwarder that writes it, as long as that lives. Two would write the same events.
fn readable_captures(directory: &Path, name: &str, is_newest_only: bool) -> Result<Vec<CaptureFile>, CaptureError> {
    let entries = kept_entries(directory, name)?;
    let mut captures = Vec::new();
    if let Some(newest) = entries.iter().rfind(|entry| entry.is_capture) {
        OutputEntry::open(&newest.path)?.open_to_append()?;
    }
    for entry in entries.iter().rev().filter(|entry| entry.is_capture) {
        match CaptureFile::open(&entry.path) {
            Ok(capture) if !capture.rings().is_empty() => captures.push(capture),
            // Something has happened to an older file. What it had may be written again.
            _ if !captures.is_empty() => {}
            Err(error) if error.kind() != CaptureErrorKind::NotACapture => return Err(error),
            // Its forwarder was killed before it had written anything.
            _ => remove(&entry.path)?,
        }
        if is_newest_only && !captures.is_empty() {
            break;
        }
    }
    Ok(captures)
}

/// Returns the path of the file that says how far the rings of a name were written.
pub(super) fn ends_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.{ENDS_EXTENSION}"))
}

/// Returns the names under which forwarders have written in a directory.
fn names_with_ends(directory: &Path) -> Result<Vec<String>, CaptureError> {
    let read = |error| CaptureError::io("read the directory", error).at(directory);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == ENDS_EXTENSION) {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    Ok(names)
}

/// Removes what is too old, the oldest of what is too much, and captures that are in tables. The capture that is being
/// written stays, and the newest of the others with its tables: the next forwarder goes on after it. Returns what was
/// removed.
pub(super) fn remove_oldest(
    directory: &Path,
    name: &str,
    limits: RetentionLimits,
    current: Option<&Path>,
) -> Result<Vec<KeptEntry>, CaptureError> {
    if limits == RetentionLimits::default() {
        return Ok(Vec::new());
    }
    let mut entries = kept_entries(directory, name)?;
    let is_current = |entry: &KeptEntry| Some(entry.path.as_path()) == current;
    let newest = entries.iter().rfind(|entry| entry.is_capture && !is_current(entry)).map(|entry| entry.number);
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut go = Vec::new();
    for entry in &entries {
        let is_old = limits.max_age.is_some_and(|age| entry.written.elapsed().is_ok_and(|time| time > age));
        let is_too_much = limits.max_bytes.is_some_and(|max| bytes > max);
        let is_in_tables = limits.is_in_tables && entry.is_capture && tables_of(&entry.path).is_dir();
        let goes = (is_old || is_too_much || is_in_tables) && Some(entry.number) != newest && !is_current(entry);
        bytes -= if goes { entry.bytes } else { 0 };
        go.push(goes);
    }
    let mut goes = go.into_iter();
    entries.retain(|_| goes.next() == Some(true));
    entries.iter().try_for_each(|entry| remove(&entry.path))?;
    Ok(entries)
}

/// Returns the directory of the tables of a capture.
fn tables_of(capture: &Path) -> PathBuf {
    capture.with_extension(TABLES_EXTENSION)
}

/// Removes a file or a directory. What is not there any more is removed already.
pub(super) fn remove(path: &Path) -> Result<(), CaptureError> {
    if !path.is_dir() {
        return remove_file(path);
    }
    match fs::remove_dir_all(path) {
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
