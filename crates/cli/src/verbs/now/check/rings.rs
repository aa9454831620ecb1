//! The rings of a name or of a process.

use super::system::Allowed;
use crate::input::directories::is_first_shard;
use crate::input::programs::holder::holder;
use crate::input::programs::{process, processes};
use crate::input::ring::report::RingReport;
use crate::text::format::{counted, duration};
use crate::text::perf::is_description;
use eventring::files::CONTENT_TYPE_PERF;
use eventring::internal::MeasuredTimes;
use eventring::reader::{Reader, ReaderError, RingState};
use eventring_capture::foreign::MappedFile;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A ring, or a recorder with its shards.
pub(super) struct CheckedRing {
    pub name: String,
    pub ring: RingReport,
    /// The process that writes it, as this process counts, if it lives.
    pub writer: Option<u32>,
}

impl CheckedRing {
    fn new(name: String, reader: Reader, was_at: Option<PathBuf>) -> Self {
        let (writer, mut ring) = (holder(&reader), RingReport::new(reader).with_events());
        ring.was_at = was_at.or(ring.was_at);
        Self { name, ring, writer }
    }

    /// Returns true if something was recorded since the ring was made. Descriptions of threads and call sites do not
    /// count: they are recorded also if a filter leaves out everything.
    pub(super) fn has_events(&self) -> bool {
        let total = &self.ring.total;
        total.lost > 0 || total.by_type.keys().any(|code| !(self.is_perf() && is_description(*code)))
    }

    pub(super) fn is_perf(&self) -> bool {
        self.ring.info.content_type == CONTENT_TYPE_PERF
    }

    /// Returns true if its writer lives, whether that is seen here or not.
    pub(super) fn is_live(&self) -> bool {
        self.ring.state == RingState::Live
    }

    /// Returns true if something was recorded since the ring was made, and its writer lives.
    pub(super) fn is_recorded(&self) -> bool {
        self.is_live() && self.has_events()
    }
}

/// Returns whether the times of threads are measured, and what this costs.
pub(super) fn thread_times(rings: &[CheckedRing]) -> Allowed {
    let of_ring = |ring: &CheckedRing| {
        let MeasuredTimes { state, cost_nanos, asked, merged } = MeasuredTimes::read(&ring.ring.reader)?;
        let cost = duration(Duration::from_nanos(cost_nanos));
        let merged = match merged {
            0 => String::new(),
            merged => format!("; {} measured together", counted(merged, "switch was", "switches were")),
        };
        let text = match state.is_measured() {
            true => format!("{}, {} asked, {cost} in all{merged}", state.text(), counted(asked, "time", "times")),
            false => state.text().to_owned(),
        };
        Some(Allowed { is_allowed: state.is_measured(), text })
    };
    let all: Vec<_> =
        rings.iter().filter(|ring| ring.is_perf()).filter_map(|ring| Some((&ring.name, of_ring(ring)?))).collect();
    match all.as_slice() {
        [] => Allowed { is_allowed: false, text: "no ring of spans says anything".to_owned() },
        [(_, only)] => Allowed { is_allowed: only.is_allowed, text: only.text.clone() },
        all => Allowed {
            is_allowed: all.iter().all(|(_, of)| of.is_allowed),
            text: all.iter().map(|(name, of)| format!("{name}: {}", of.text)).collect::<Vec<_>>().join("; "),
        },
    }
}

/// Opens the rings of this name or pattern, or that a server has.
pub(super) fn named(name: &Path) -> anyhow::Result<(Vec<CheckedRing>, Vec<ReaderError>)> {
    let (mut rings, mut errors) = (Vec::new(), Vec::new());
    for name in processes::expand(&[name.to_path_buf()])? {
        match Reader::open(&name) {
            Ok(reader) => rings.push(CheckedRing::new(name.display().to_string(), reader, None)),
            Err(error) => errors.push(error),
        }
    }
    Ok((rings, errors))
}

/// Opens the rings that a process has mapped for writing or holds open, with a server or without. The second list has
/// the rings that its parent writes: the process was forked from it.
pub(super) fn of_process(pid: u32) -> (Vec<CheckedRing>, Vec<CheckedRing>) {
    let mapped = MappedFile::list(pid).unwrap_or_default();
    let written: HashSet<_> = mapped.iter().filter(|mapped| mapped.is_written).map(|mapped| mapped.file).collect();
    let (mut own, mut inherited, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for (name, path, was_at) in process::rings_of(pid) {
        let Some(ring) = open(name, &path, was_at).filter(|ring| seen.insert(ring.ring.reader.file_id())) else {
            continue;
        };
        let by = ring.ring.reader.info().extension.map(|extension| extension.writer);
        let is_own = by.is_none_or(|by| by.is_process(pid)) && written.contains(&ring.ring.reader.file_id());
        if is_own { &mut own } else { &mut inherited }.push(ring);
    }
    (own, inherited)
}

/// Opens a ring that is no further shard of a recorder.
fn open(name: String, path: &Path, was_at: Option<PathBuf>) -> Option<CheckedRing> {
    let reader = Reader::open(path).ok()?;
    is_first_shard(&reader).then(|| CheckedRing::new(name, reader, was_at))
}
