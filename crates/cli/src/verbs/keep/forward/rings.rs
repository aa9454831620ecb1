//! Rings on this host that hold the received events of other hosts.

use super::ring_space::RingSpace;
use crate::exit::{Exit, Failure};
use crate::text::format::one_line;

use eventring::files::Shifts;
use eventring::internal::ReplayedRecorder;
use eventring::reader::Descriptor;
use eventring::recorder::{ContentDescription, Recorder};
use eventring_capture::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing, RingRole};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The size of the rings: a million events, 128 MiB.
const SHIFTS: Shifts = Shifts { descriptor: 20, payload: 27 };

/// The shortest time after which records are recorded although no further batch has come.
const IDLE_MIN: Duration = Duration::from_millis(300);
/// The longest such time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// The longest time for which records wait for those of a shard from which none come: its writer may be stalled.
const WAIT_NANOS: u64 = 1_000_000_000;

/// The most bytes of records that wait, of all rings together. Who sends a batch says what its records wait for, so
/// they could wait without end.
const WAITING_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// The bytes of records that come before it is looked whether too many wait.
const LOOK_BYTES: usize = WAITING_BYTES_MAX / 16;

/// The identity of a ring of another host.
type Identity = (String, String, u32, u64);

/// Rings in a directory, one for each recorder of each host. All shards of a recorder are one ring.
pub(super) struct LiveRings {
    directory: PathBuf,
    pub(super) room: RingSpace,
    /// Messages about rings that were not made.
    pub(super) unsaid: Vec<String>,
    rings: HashMap<Identity, LiveRing>,
    /// Rings whose program was followed by another one under the same name.
    former: HashSet<Identity>,
    /// The last record of each ring that came.
    last: HashMap<Identity, LastRecord>,
    /// The ring that has a path: its host and name.
    paths: HashMap<PathBuf, (String, String)>,
    /// Bytes of records that have come since it was looked whether too many wait.
    bytes_since_look: usize,
}

/// The ring of a recorder.
struct LiveRing {
    recorder: ReplayedRecorder,
    /// Records that wait for those of other shards which may be older: they may come with the next batch.
    waiting: Vec<WaitingRecord>,
    waiting_bytes: usize,
    /// The time at which the last batch came, and the time since the one before.
    came: Instant,
    pause: Duration,
}

struct WaitingRecord {
    sort_nanos: u64,
    descriptor: Descriptor,
    payload: Vec<u8>,
}

impl WaitingRecord {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.payload.len()
    }
}

/// The seqno of the last record of a ring, and the sort time.
#[derive(Clone, Copy, Default)]
struct LastRecord {
    seqno: u64,
    sort_nanos: u64,
}

impl LiveRing {
    fn new(recorder: ReplayedRecorder) -> Self {
        Self { recorder, waiting: Vec::new(), waiting_bytes: 0, came: Instant::now(), pause: Duration::ZERO }
    }

    fn wait(&mut self, record: WaitingRecord) {
        self.waiting_bytes += record.bytes();
        self.waiting.push(record);
    }

    /// Records what is older than a time. With `is_all`, records everything.
    fn record_waiting(&mut self, before_nanos: u64, is_all: bool) {
        self.waiting.sort_by_key(|record| record.sort_nanos);
        let count = self.waiting.partition_point(|record| is_all || record.sort_nanos < before_nanos);
        for record in self.waiting.drain(..count) {
            self.waiting_bytes -= record.bytes();
            let WaitingRecord { descriptor, payload, .. } = record;
            let (nanos, event_type, ext) =
                (descriptor.record_epoch_nanos, descriptor.event_type, descriptor.content_ext);
            self.recorder.record(nanos, event_type, ext, &payload);
        }
    }
}

impl LiveRings {
    pub(super) fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory).map_err(|error| Failure::writing(directory, &error))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            room: RingSpace::in_directory(directory),
            unsaid: Vec::new(),
            rings: HashMap::new(),
            former: HashSet::new(),
            last: HashMap::new(),
            paths: HashMap::new(),
            bytes_since_look: 0,
        })
    }

    /// Takes the events of a batch, as far as they are new, and records them in the order of time. Events without their
    /// payload are left out: they would not be the events that were recorded.
    pub(super) fn record(&mut self, batch: &CaptureFile) -> anyhow::Result<()> {
        let rings = batch.rings();
        for (index, ring) in rings.iter().enumerate() {
            if recorder_of(ring, index) == index && !self.former.contains(&identity(ring)) {
                if !self.rings.contains_key(&identity(ring)) {
                    self.forget_former(ring);
                    let Some(made) = self.make(ring)? else { continue };
                    self.rings.insert(identity(ring), LiveRing::new(made));
                }
                if let Some(made) = self.rings.get_mut(&identity(ring)) {
                    made.recorder.learn(&batch.catalog(index as u32));
                }
            }
        }
        for record in batch.events() {
            let index = record.ring as usize;
            let CapturedContent::Event { descriptor, payload: CapturedPayload::Valid(payload) } = record.content else {
                continue;
            };
            let last = self.last.entry(identity(&rings[index])).or_default();
            if descriptor.seqno <= last.seqno {
                continue;
            }
            let sort_nanos = descriptor.record_epoch_nanos.max(last.sort_nanos);
            *last = LastRecord { seqno: descriptor.seqno, sort_nanos };
            if let Some(ring) = self.rings.get_mut(&identity(&rings[recorder_of(&rings[index], index)])) {
                let record = WaitingRecord { sort_nanos, descriptor, payload };
                self.bytes_since_look += record.bytes();
                ring.wait(record);
            }
            if self.bytes_since_look > LOOK_BYTES {
                self.bytes_since_look = 0;
                self.record_what_is_too_much();
            }
        }
        let Some(end) = batch.end() else { return Ok(()) };
        for (index, ring) in rings.iter().enumerate() {
            if let Some(live) = self.rings.get_mut(&identity(ring)) {
                let of_shards = rings.iter().enumerate().filter(|(shard, ring)| recorder_of(ring, *shard) == index);
                let whole_until = of_shards.map(|(shard, ring)| match end.stats.rings.get(shard) {
                    // Everything that was recorded before the end of the batch has come.
                    Some(stats) if stats.unread == 0 => end.ended_epoch_nanos,
                    _ => self.last.get(&identity(ring)).map_or(0, |last| last.sort_nanos),
                });
                let whole_until = whole_until.min().unwrap_or(0).max(end.ended_epoch_nanos.saturating_sub(WAIT_NANOS));
                live.pause = std::mem::replace(&mut live.came, Instant::now()).elapsed();
                live.record_waiting(whole_until, end.reason.is_final());
            }
        }
        Ok(())
    }

    /// Records what has waited long enough for another batch.
    pub(super) fn record_what_is_idle(&mut self) {
        for ring in self.rings.values_mut().filter(|ring| !ring.waiting.is_empty()) {
            if ring.came.elapsed() > (ring.pause * 2).clamp(IDLE_MIN, IDLE_MAX) {
                ring.record_waiting(0, true);
            }
        }
    }

    /// Records what waits for the rings with the most waiting bytes, as long as too many bytes wait.
    fn record_what_is_too_much(&mut self) {
        while self.rings.values().map(|ring| ring.waiting_bytes).sum::<usize>() > WAITING_BYTES_MAX
            && let Some(ring) = self.rings.values_mut().max_by_key(|ring| ring.waiting_bytes)
        {
            ring.record_waiting(0, true);
        }
    }

    /// Records everything that has come.
    pub(super) fn record_all(&mut self) {
        self.rings.values_mut().for_each(|ring| ring.record_waiting(0, true));
    }

    /// Lets the ring of an earlier program under the same name go: its file is replaced.
    fn forget_former(&mut self, ring: &CapturedRing) {
        let is_former = |known: &Identity| (&known.0, &known.1) == (&ring.host, &ring.name);
        let former: Vec<Identity> = self.rings.keys().filter(|known| is_former(known)).cloned().collect();
        for known in former {
            if let Some(mut ring) = self.rings.remove(&known) {
                ring.record_waiting(0, true);
            }
            self.former.insert(known);
        }
    }

    /// Makes a ring. Returns `None` if there is no room.
    fn make(&mut self, ring: &CapturedRing) -> anyhow::Result<Option<ReplayedRecorder>> {
        let description = ContentDescription::new(ring.content_type, ring.content_name.clone())
            .schema_hash(ring.schema_hash)
            .schema_text(ring.schema_text.clone());
        let path = self.path_of(&file_name(&ring.host, &ring.name), ring);
        if !self.room.take(&path, ring_bytes(ring.is_perf())) {
            self.unsaid.extend(self.room.note_without(&ring.host, &ring.name));
            return Ok(None);
        }
        // Who receives a stream to its end wants to read the rings afterwards.
        let builder = Recorder::builder(description)
            .config(&path)
            .shifts(SHIFTS.descriptor, SHIFTS.payload)
            .prefault(false)
            .keep(true);
        let made = ReplayedRecorder::new(builder, ring.is_perf());
        made.map(Some)
            .map_err(|error| Exit::Failed.failure(format!("cannot make a ring for {}: {error}", ring.name)).into())
    }

    /// Returns the path of a ring. Another ring may have the same name: the ring `c` of the host `a.b`, and the ring
    /// `b.c` of the host `a`. The later one gets a number.
    fn path_of(&mut self, name: &str, ring: &CapturedRing) -> PathBuf {
        let owner = (ring.host.clone(), ring.name.clone());
        let numbered = (2_u32..).map(|number| self.directory.join(format!("{name}~{number}")));
        let mut paths = std::iter::once(self.directory.join(name)).chain(numbered);
        let is_free = |path: &PathBuf| self.paths.get(path).is_none_or(|known| *known == owner);
        let path = paths.find(is_free).unwrap_or_else(|| self.directory.join(name));
        self.paths.insert(path.clone(), owner);
        path
    }
}

/// Returns the size of a ring, in bytes.
fn ring_bytes(is_perf: bool) -> u64 {
    SHIFTS.ring_bytes(if is_perf { 1 << ReplayedRecorder::CONTEXT_SHIFT } else { 0 })
}

/// Returns the name of the file of a ring. The names come from the stream, and are not trusted: they may be paths,
/// change a terminal, or be too long together.
fn file_name(host: &str, ring: &str) -> String {
    /// The longest name, in bytes. Numbers of paths and shards have room after it.
    const BYTES_MAX: usize = 200;
    let name = one_line(&format!("{host}.{ring}")).replace(['/', ':'], "_");
    match name.trim_start_matches('.') {
        "" => "_".to_owned(),
        name => name[..name.floor_char_boundary(BYTES_MAX)].to_owned(),
    }
}

fn identity(ring: &CapturedRing) -> Identity {
    (ring.host.clone(), ring.name.clone(), ring.pid, ring.created_epoch_nanos)
}

/// Returns the index of the ring with which a ring is one recorder.
fn recorder_of(ring: &CapturedRing, index: usize) -> usize {
    match ring.role {
        RingRole::Shard { recorder, .. } => recorder as usize,
        RingRole::Single => index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring_capture::{CaptureOptions, capture};
    use std::ops::ControlFlow;

    /// Makes a ring with so many records of 1,000 bytes whose time has not come, and returns a capture of it.
    fn of_the_future(directory: &Path, name: &str, records: usize) -> CaptureFile {
        let path = directory.join(name);
        let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(path.to_str().unwrap());
        let recorder = ReplayedRecorder::new(builder.shifts(15, 24).prefault(false), false).unwrap();
        (0..records).for_each(|_| recorder.record(u64::MAX / 2, 7, [0; 4], &[0; 1000]));
        let (file, options) = (path.with_extension("evc"), CaptureOptions::new());
        capture(&[path], &file, &options, &mut |_| ControlFlow::Break(())).unwrap();
        CaptureFile::open(&file).unwrap()
    }

    #[test]
    fn records_that_wait_without_end_are_bounded_and_those_of_other_rings_wait_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut rings = LiveRings::in_directory(&directory.path().join("live")).unwrap();
        let (few, many) = (of_the_future(directory.path(), "few", 3), of_the_future(directory.path(), "many", 5000));
        rings.record(&few).unwrap();
        rings.record(&many).unwrap();
        let waiting = |of: &CaptureFile| rings.rings[&identity(&of.rings()[0])].waiting.len();
        assert!(waiting(&few) == 3 && (1..1500).contains(&waiting(&many)), "{} {}", waiting(&few), waiting(&many));
        rings.record_all();
        assert!(rings.rings.values().all(|ring| ring.waiting.is_empty() && ring.waiting_bytes == 0));
    }

    #[test]
    fn the_room_that_is_counted_is_that_which_a_ring_takes() {
        let directory = tempfile::tempdir().unwrap();
        for is_perf in [false, true] {
            let path = directory.path().join(format!("{is_perf}"));
            let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(path.to_str().unwrap());
            let builder = builder.shifts(SHIFTS.descriptor, SHIFTS.payload).prefault(false);
            let _recorder = ReplayedRecorder::new(builder, is_perf).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), ring_bytes(is_perf));
        }
    }

    #[test]
    fn names_of_the_stream_become_names_of_files_that_a_directory_can_have() {
        assert_eq!(file_name("web-1.example", "shop"), "web-1.example.shop");
        assert_eq!(file_name("..", "../etc/passwd:15"), "_etc_passwd_15");
        assert_eq!(file_name("a\n\u{1b}[2J", "b\0"), "a\u{fffd}\u{fffd}[2J.b\u{fffd}");
        assert_eq!(file_name(".", "."), "_");
        let long = file_name(&"ü".repeat(127), &"r".repeat(255));
        assert!(long.len() <= 200 && long.starts_with('ü'), "{long}");
    }
}
