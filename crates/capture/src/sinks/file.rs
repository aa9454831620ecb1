//! A capture into a file, into numbered files, or into a writer that the caller has opened.

use crate::engine::options::CaptureOptions;
use crate::engine::rotation::RotationOptions;
use crate::engine::run;
use crate::engine::sink::CaptureSink;
use crate::engine::summary::{CaptureProgress, CaptureSummary, NextRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::read_files::ReadFiles;
use crate::sinks::rotation_set::RotationSet;
use eventring::reader::Reader;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Copies the events of the rings with these names or paths into a file, even if their programs are dead. All shards
/// of a perf recorder are taken, even those that it makes during the capture. If a shard was removed before it could
/// be opened, its events count as lost.
///
/// `progress` is called about ten times a second. By returning [`ControlFlow::Break`], it ends the capture in good
/// order: everything that was recorded before this end is still taken. If the options set no end, the capture lasts
/// until all writers have ended.
///
/// # Errors
/// A ring cannot be opened or is a perf ring of another schema, or a file cannot be written. The part of the capture
/// that was written before the error can be read.
pub fn capture(
    names: &[PathBuf],
    output: &Path,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let mut readers = opened(names)?;
    capture_rings(&mut || next_of(&mut readers), output, options, progress)
}

/// Captures as [`capture`] does, but into a writer that the caller has opened. The output is not rotated.
///
/// # Errors
/// As [`capture`].
pub fn capture_to(
    names: &[PathBuf],
    out: impl Write + 'static,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let mut readers = opened(names)?;
    capture_rings_to(&mut || next_of(&mut readers), out, options, progress)
}

fn opened(names: &[PathBuf]) -> Result<std::vec::IntoIter<Reader>, CaptureError> {
    let readers = names.iter().map(Reader::open).collect::<Result<Vec<_>, _>>();
    Ok(readers.map_err(CaptureError::ring)?.into_iter())
}

fn next_of(readers: &mut std::vec::IntoIter<Reader>) -> NextRing {
    readers.next().map_or(NextRing::NoMore, NextRing::Ring)
}

/// Captures as [`capture`] does, but from rings that the caller opens, before or during the capture. A ring that is
/// open is read to its end even if its file is removed.
///
/// At the start, `next_ring` is called until it returns [`NextRing::NotYet`] or [`NextRing::NoMore`]. Before that, it
/// must return at least one ring. During the capture, `next_ring` is called thousands of times a second, until it
/// returns [`NextRing::NoMore`]. So it should be quick. A ring that it returns during the capture is captured from the
/// ring's first event on, even with [`CaptureOptions::only_new`]. If such a ring cannot be captured, the error is among
/// the problems in the summary.
///
/// # Errors
/// As [`capture`]; or there is no ring at the start.
pub fn capture_rings(
    next_ring: &mut dyn FnMut() -> NextRing,
    output: &Path,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    if output.file_name().is_none() {
        return Err(CaptureError::new(
            CaptureErrorKind::BadOptions,
            "cannot write it: not the name of a file; name a file in it",
        )
        .at(output));
    }
    let mut row = RotationSet::new(output, options);
    let summary = run::run(next_ring, &mut row, options, progress)?;
    Ok(CaptureSummary { files: row.written(), ..summary })
}

/// Captures as [`capture_rings`] does, but into a writer that the caller has opened. The output is not rotated.
///
/// # Errors
/// As [`capture_rings`].
pub fn capture_rings_to(
    next_ring: &mut dyn FnMut() -> NextRing,
    out: impl Write + 'static,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let options = CaptureOptions { rotation: RotationOptions::default(), ..options.clone() };
    run::run(next_ring, &mut OpenWriter(Some(Box::new(out))), &options, progress)
}

/// A writer that the caller has opened.
struct OpenWriter(Option<Box<dyn Write>>);

impl CaptureSink for OpenWriter {
    fn begin(&mut self, _: u32, _: &ReadFiles) -> Result<Box<dyn Write>, CaptureError> {
        Ok(self.0.take().unwrap_or_else(|| Box::new(std::io::sink())))
    }
}
