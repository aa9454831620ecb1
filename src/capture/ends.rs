//! A file that says how far rings were captured whose captures were removed.
//!
//! The file is a capture without events: it describes the rings, and its account has the last seqno of each. So it is
//! read like any other capture, and nothing in it is trusted more.

use super::batches::{RingIdentity, next_seqnos_after};
use super::end::{CaptureEnd, EndReason};
use super::error::CaptureError;
use super::format::FileHeader;
use super::output_entry::OutputEntry;
use super::read::CaptureFile;
use super::read_files::ReadFiles;
use super::ring::{CapturedRing, RingRole};
use super::stats::{CaptureStats, RingStats};
use super::write::CaptureWriter;
use crate::clock::Clock;
use std::collections::HashSet;
use std::path::Path;

/// The largest number of rings in such a file. Those that were captured longest ago are forgotten first: their files
/// are gone, too.
const RINGS_MAX: usize = 1024;

/// Writes a file that says how far the rings of `captures` were captured, the oldest capture first. It replaces the
/// file at `path`.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_ends(path: &Path, captures: &[&CaptureFile]) -> Result<(), CaptureError> {
    let rings = ends_of(captures, RINGS_MAX);
    let entry = OutputEntry::open(path)?;
    let unfinished = entry.create_unfinished()?;
    let out = unfinished.file().try_clone().map_err(|error| CaptureError::io_writing("write it", error).at(path))?;
    let header = FileHeader {
        part: 0,
        started_epoch_nanos: Clock::global().now_epoch_nanos(),
        started_boot_nanos: crate::shm::boottime_nanos(),
        started_monotonic_nanos: crate::shm::monotonic_nanos(),
    };
    let ended_epoch_nanos = header.started_epoch_nanos;
    let mut writer = CaptureWriter::new(Box::new(std::io::BufWriter::new(out)), &header)?;
    rings.iter().try_for_each(|ring| writer.ring(ring))?;
    let of_ring = |ring: &CapturedRing| RingStats { last_seqno: ring.first_seqno - 1, ..RingStats::default() };
    let stats = CaptureStats { rings: rings.iter().map(of_ring).collect() };
    writer.finish(&CaptureEnd { reason: EndReason::Rotated, ended_epoch_nanos, hurried_events: 0, stats })?;
    drop(writer);
    unfinished.publish(true, &ReadFiles::default())
}

/// Returns each ring with the seqno that follows its last capture, the ring with the newest capture last; at most so
/// many.
fn ends_of(captures: &[&CaptureFile], rings_max: usize) -> Vec<CapturedRing> {
    let mut seen = HashSet::new();
    let newest_first = captures.iter().rev().flat_map(|capture| {
        let ends: Vec<(RingIdentity, u64)> = next_seqnos_after(capture).collect();
        capture.rings().iter().zip(ends).rev()
    });
    let newest = newest_first.filter(|(_, (identity, _))| seen.insert(identity.clone())).take(rings_max);
    let mut rings: Vec<CapturedRing> = newest.map(|(ring, (_, next_seqno))| end_of(ring, next_seqno)).collect();
    rings.reverse();
    rings
}

/// Describes a ring, as far as is needed to know it again.
fn end_of(ring: &CapturedRing, next_seqno: u64) -> CapturedRing {
    CapturedRing { role: RingRole::Single, schema_text: String::new(), first_seqno: next_seqno.max(1), ..ring.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureOptions, capture};
    use crate::recorder::{ContentDescription, Recorder};
    use std::ops::ControlFlow;

    /// Captures a ring of its own, with one event more than `number`.
    fn captured(directory: &Path, number: u64) -> CaptureFile {
        let [ring, output] = ["ring", "evc"].map(|extension| directory.join(format!("{number}.{extension}")));
        let builder = Recorder::builder(ContentDescription::new(300, "ENDS")).config(&ring).prefault(false).keep(true);
        let recorder = builder.build().unwrap();
        (0..=number).for_each(|_| assert_ne!(recorder.record(7, [0; 4], b"an event"), 0));
        drop(recorder);
        capture(&[ring], &output, &CaptureOptions::new(), &mut |_| ControlFlow::Continue(())).unwrap();
        CaptureFile::open(&output).unwrap()
    }

    #[test]
    fn the_newest_rings_are_kept_and_the_last_end_of_each() {
        let dir = tempfile::tempdir().unwrap();
        let captures: Vec<CaptureFile> = (0..3_u64).map(|number| captured(dir.path(), number)).collect();
        let all: Vec<&CaptureFile> = captures.iter().collect();
        let path = dir.path().join("shop.ends");
        write_ends(&path, &all).unwrap();
        let first = CaptureFile::open(&path).unwrap();
        assert_eq!(first.problems(), [""; 0]);
        let ends = |file: &CaptureFile| -> Vec<(String, u64)> {
            next_seqnos_after(file).map(|(identity, next)| (identity.to_string(), next)).collect()
        };
        let expected: Vec<(String, u64)> = captures.iter().flat_map(&ends).collect();
        assert_eq!(expected.iter().map(|(_, next)| *next).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(ends(&first), expected);
        // What the file says already is kept, and the last of each ring counts.
        write_ends(&path, &[&first, &captures[0]]).unwrap();
        let again = CaptureFile::open(&path).unwrap();
        assert_eq!(ends(&again), [&expected[1..], &expected[..1]].concat());
        let newest: Vec<u64> = ends_of(&all, 2).iter().map(|ring| ring.first_seqno).collect();
        assert_eq!(newest, [3, 4]);
    }
}
