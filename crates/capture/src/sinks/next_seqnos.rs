//! The seqnos at which a capture continues in rings that were captured before. The earlier captures may be removed.
//!
//! The file `NAME.ends` is a capture without events. It describes the rings, and has the last captured seqno of each
//! ring. It is checked like any capture.

use crate::engine::start::next_seqnos_after;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::output_entry::OutputEntry;
use crate::files::read_files::ReadFiles;
use crate::format::end::{CaptureEnd, EndReason};
use crate::format::header::FileHeader;
use crate::format::identity::RingIdentity;
use crate::format::ring::{CapturedRing, RingRole};
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::write::CaptureWriter;
use crate::read::file::CaptureFile;
use crate::sinks::batches::Batch;
use std::collections::HashSet;
use std::path::Path;

/// The largest number of rings in such a file. Those that were captured longest ago are forgotten first: their files
/// are gone, too.
const RINGS_MAX: usize = 1024;

/// The seqnos that follow the captures of rings.
#[derive(Default)]
pub struct NextSeqnos {
    /// The rings, the one with the newest capture last. The first seqno of each is the one that follows.
    rings: Vec<CapturedRing>,
}

impl NextSeqnos {
    /// Opens the file, as a capture. Returns `None` if there is none.
    ///
    /// # Errors
    /// The file is damaged, or it cannot be read.
    pub fn open(path: &Path) -> Result<Option<CaptureFile>, CaptureError> {
        let damaged = || {
            let message = "the file of ends is damaged: it cannot be known which events were written already; restore it, \
                           or remove it to write again what the rings hold";
            CaptureError::new(CaptureErrorKind::Damaged, message).at(path)
        };
        match CaptureFile::open(path) {
            Ok(file) if file.end().is_some() && file.problems().is_empty() => Ok(Some(file)),
            Ok(_) => Err(damaged()),
            Err(error) if error.kind() == CaptureErrorKind::NotFound => Ok(None),
            Err(error) if matches!(error.kind(), CaptureErrorKind::NotACapture | CaptureErrorKind::Damaged) => {
                Err(damaged())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the next seqnos of a capture that is older than all that were taken.
    pub fn take_older(&mut self, capture: &CaptureFile) {
        let mut known: HashSet<RingIdentity> = self.rings.iter().map(RingIdentity::new).collect();
        let rings = capture.rings().iter().zip(next_seqnos_after(capture));
        let new = rings.filter(|(_, (identity, _))| known.insert(identity.clone()));
        let new: Vec<_> = new.map(|(ring, (_, next_seqno))| described(ring, next_seqno)).collect();
        self.rings.splice(0..0, new);
        self.forget_oldest();
    }

    /// Takes the next seqnos of a batch that is newer than all that were taken.
    pub fn take_batch(&mut self, batch: &Batch<'_>) {
        batch.next_seqnos().for_each(|(ring, next_seqno)| self.set(ring, next_seqno));
    }

    fn set(&mut self, ring: &CapturedRing, next_seqno: u64) {
        let identity = RingIdentity::new(ring);
        self.rings.retain(|known| RingIdentity::new(known) != identity);
        self.rings.push(described(ring, next_seqno));
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let too_many = self.rings.len().saturating_sub(RINGS_MAX);
        self.rings.drain(..too_many);
    }

    /// Writes the file, which replaces the one at `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CaptureError> {
        let entry = OutputEntry::open(path)?;
        let unfinished = entry.create_unfinished()?;
        let out =
            unfinished.file().try_clone().map_err(|error| CaptureError::io_writing("write it", error).at(path))?;
        let header = FileHeader::of_now(0);
        let ended_epoch_nanos = header.started_epoch_nanos;
        let mut writer = CaptureWriter::new(Box::new(std::io::BufWriter::new(out)), &header)?;
        self.rings.iter().try_for_each(|ring| writer.ring(ring))?;
        let of_ring = |ring: &CapturedRing| RingStats { last_seqno: ring.first_seqno - 1, ..RingStats::default() };
        let stats = CaptureStats { rings: self.rings.iter().map(of_ring).collect() };
        writer.finish(&CaptureEnd { reason: EndReason::Rotated, ended_epoch_nanos, lower_level_events: 0, stats })?;
        drop(writer);
        unfinished.publish(true, &ReadFiles::default())
    }
}

/// Describes a ring, as far as is needed to know it again.
fn described(ring: &CapturedRing, next_seqno: u64) -> CapturedRing {
    CapturedRing { role: RingRole::Single, schema_text: String::new(), first_seqno: next_seqno.max(1), ..ring.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::options::CaptureOptions;
    use crate::sinks::file::capture;
    use eventring::recorder::{ContentDescription, Recorder};
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
    fn the_newest_rings_are_kept_and_the_last_seqno_of_each() {
        let dir = tempfile::tempdir().unwrap();
        let captures: Vec<CaptureFile> = (0..3_u64).map(|number| captured(dir.path(), number)).collect();
        let path = dir.path().join("shop.ends");
        assert!(NextSeqnos::open(&path).unwrap().is_none());
        let mut next_seqnos = NextSeqnos::default();
        captures.iter().rev().for_each(|capture| next_seqnos.take_older(capture));
        next_seqnos.write(&path).unwrap();
        let of_file = |file: &CaptureFile| -> Vec<(String, u64)> {
            next_seqnos_after(file).map(|(identity, next)| (identity.to_string(), next)).collect()
        };
        let expected: Vec<(String, u64)> = captures.iter().flat_map(of_file).collect();
        assert_eq!(expected.iter().map(|(_, next)| *next).collect::<Vec<_>>(), [2, 3, 4]);
        let first = NextSeqnos::open(&path).unwrap().unwrap();
        assert_eq!(of_file(&first), expected);
        // What the file says already is kept, and the last of each ring counts.
        let mut next_seqnos = NextSeqnos::default();
        next_seqnos.take_older(&captures[0]);
        next_seqnos.take_older(&first);
        next_seqnos.write(&path).unwrap();
        let again = NextSeqnos::open(&path).unwrap().unwrap();
        assert_eq!(of_file(&again), [&expected[1..], &expected[..1]].concat());
    }

    #[test]
    fn a_damaged_file_is_not_an_empty_one_and_the_oldest_rings_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (path, capture) = (dir.path().join("shop.ends"), captured(dir.path(), 1));
        let mut next_seqnos = NextSeqnos::default();
        for number in 0..RINGS_MAX as u64 + 5 {
            next_seqnos
                .set(&CapturedRing { created_epoch_nanos: number + 1, ..capture.rings()[0].clone() }, number + 1);
        }
        next_seqnos.write(&path).unwrap();
        let file = NextSeqnos::open(&path).unwrap().unwrap();
        assert_eq!((file.rings().len(), file.rings()[0].created_epoch_nanos), (RINGS_MAX, 6));
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 30, 300, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let error = NextSeqnos::open(&path).map(drop).unwrap_err();
            assert!(error.kind() == CaptureErrorKind::Damaged && error.to_string().contains("remove it"), "{error}");
        }
    }
}
