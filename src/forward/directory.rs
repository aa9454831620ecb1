//! Events of rings in a directory, as capture files that begin anew after a time or a size. The oldest are removed.
//!
//! Like the batches of a stream, the files say where the next one goes on. A forwarder that died continues after the
//! newest file, even if nobody has ended that.

use crate::capture::batches::{Batch, BatchOptions, BatchSink, BatchStart, capture_batches, host_name};
use crate::capture::{
    BatchFilter, CaptureError, CaptureErrorKind, CaptureFile, CaptureOptions, CaptureProgress, CaptureSummary,
    NextRing, OutputEntry, ReadFiles,
};
use jiff::{Timestamp, tz::TimeZone};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The end of the names of files that hold events.
const EXTENSION: &str = "evc";

/// The settings of [`forward_to_directory`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DirectoryOptions {
    name: String,
    rotate_every: Duration,
    rotate_bytes: u64,
    max_age: Option<Duration>,
    max_bytes: Option<u64>,
    level: i32,
    filter: BatchFilter,
}

impl DirectoryOptions {
    /// Makes options for files whose names begin with `name`: `shop-20261123T201500Z.0007.evc`. The number counts the
    /// files.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rotate_every: Duration::from_secs(300),
            rotate_bytes: 256 << 20,
            max_age: None,
            max_bytes: None,
            level: CaptureOptions::DEFAULT_LEVEL,
            filter: BatchFilter::new(),
        }
    }

    /// Begins a new file after this time. Default: 5 minutes.
    pub fn rotate_every(self, time: Duration) -> Self {
        Self { rotate_every: time, ..self }
    }

    /// Begins a new file before the present one has more bytes than this. Default: 256 MiB.
    pub fn rotate_bytes(self, bytes: u64) -> Self {
        Self { rotate_bytes: bytes, ..self }
    }

    /// Removes what was written longer ago than this. Default: nothing.
    pub fn max_age(self, time: Duration) -> Self {
        Self { max_age: Some(time), ..self }
    }

    /// Removes the oldest as soon as everything under the name has more bytes than this. Default: nothing.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// Sets the level of compression, as [`CaptureOptions::compression_level`] does.
    pub fn compression_level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    /// Writes only the events that a filter keeps.
    pub fn filter(self, filter: BatchFilter) -> Self {
        Self { filter, ..self }
    }
}

/// Writes the events of rings into files of a directory until all writers have ended, or until `progress` returns
/// [`ControlFlow::Break`]. Begins after the newest file that an earlier call with the same name has written there.
/// `next_ring` and `progress` are as for [`capture_rings`](crate::capture::capture_rings). `whole` is called with each
/// file that is whole, and first with those of earlier calls.
///
/// # Errors
/// A ring cannot be read, or a file cannot be written or removed. What was written before the error can be read.
pub fn forward_to_directory(
    next_ring: &mut dyn FnMut() -> NextRing,
    directory: &Path,
    options: &DirectoryOptions,
    whole: &mut dyn FnMut(&Path),
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    if options.name.is_empty() || options.name.contains('/') {
        let message = format!("the name of the files is {:?}, expected one without slashes", options.name);
        return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
    }
    let start = start_after_newest(directory, &options.name)?;
    kept(directory, &options.name)?.iter().filter(|kept| kept.is_capture).for_each(|kept| whole(&kept.path));
    let batches = BatchOptions {
        bytes_max: options.rotate_bytes,
        every: options.rotate_every.saturating_mul(2),
        level: options.level,
        start,
        filter: options.filter.clone(),
        only_new: false,
    };
    let mut files = Files { directory, options, current: None, whole };
    capture_batches(next_ring, &mut files, &batches, progress)
}

/// Returns the start after the newest file under this name. A ring that this file does not describe begins after the
/// last file that does: its program may have ended before, or the forwarder was killed while it described the rings.
fn start_after_newest(directory: &Path, name: &str) -> Result<BatchStart, CaptureError> {
    let mut start = BatchStart::of_host(&host_name());
    let mut has_newest = false;
    for kept in kept(directory, name)?.iter().rev().filter(|kept| kept.is_capture) {
        match CaptureFile::open(&kept.path) {
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
            _ => fs::remove_file(&kept.path)
                .map_err(|error| CaptureError::io_writing("remove it, it is empty", error).at(&kept.path))?,
        }
    }
    Ok(start)
}

/// The files of a directory.
struct Files<'f> {
    directory: &'f Path,
    options: &'f DirectoryOptions,
    current: Option<PathBuf>,
    whole: &'f mut dyn FnMut(&Path),
}

impl BatchSink for Files<'_> {
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn io::Write>, CaptureError> {
        remove_oldest(self.directory, self.options)?;
        let now = Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ");
        let path = self.directory.join(format!("{}-{now}.{part:04}.{EXTENSION}", self.options.name));
        let file = OutputEntry::open(&path)?.create(false, read)?;
        self.current = Some(path);
        Ok(Box::new(file))
    }

    fn end(&mut self, batch: &Batch<'_>) -> Result<(), CaptureError> {
        match self.current.take() {
            // The last file, if nothing came any more.
            Some(path) if batch.is_empty() => {
                fs::remove_file(&path).map_err(|error| CaptureError::io_writing("remove it", error).at(&path))
            }
            Some(path) => {
                (self.whole)(&path);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Something in the directory that this name has: a file, or a directory that was made of one.
struct KeptFile {
    path: PathBuf,
    /// The number in the name. It grows from file to file; a clock may step back.
    number: u64,
    is_capture: bool,
    bytes: u64,
    written: SystemTime,
}

/// Returns everything under a name, the oldest first.
fn kept(directory: &Path, name: &str) -> Result<Vec<KeptFile>, CaptureError> {
    let read = |error| CaptureError::io("read the directory", error).at(directory);
    let mut kept = Vec::new();
    for entry in fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(number) = number_in(file_name, name) else { continue };
        // What somebody else removes meanwhile is not there.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let is_capture = metadata.is_file() && path.extension().is_some_and(|extension| extension == EXTENSION);
        let bytes = if metadata.is_dir() { bytes_in(&path) } else { metadata.len() };
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        kept.push(KeptFile { path, number, is_capture, bytes, written });
    }
    kept.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    Ok(kept)
}

/// Returns the number in a name that this module gives: 7 for `NAME-20261123T201500Z.0007` and an extension.
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

/// Removes what is too old, and the oldest of what is too much. The newest capture stays: the next forwarder goes on
/// after it.
fn remove_oldest(directory: &Path, options: &DirectoryOptions) -> Result<(), CaptureError> {
    let kept = kept(directory, &options.name)?;
    let newest = kept.iter().rposition(|kept| kept.is_capture);
    let mut bytes: u64 = kept.iter().map(|kept| kept.bytes).sum();
    for (index, kept) in kept.iter().enumerate() {
        let is_old = options.max_age.is_some_and(|age| kept.written.elapsed().is_ok_and(|time| time > age));
        let is_too_much = options.max_bytes.is_some_and(|max| bytes > max);
        if (!is_old && !is_too_much) || Some(index) == newest {
            continue;
        }
        let removed = if kept.path.is_dir() { fs::remove_dir_all(&kept.path) } else { fs::remove_file(&kept.path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CaptureError::io_writing("remove it", error).at(&kept.path));
            }
            _ => bytes -= kept.bytes,
        }
    }
    Ok(())
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
        ] {
            assert_eq!(number_in(other, "shop"), None, "{other}");
        }
        assert_eq!(number_in(name, "sho"), None);
    }
}
