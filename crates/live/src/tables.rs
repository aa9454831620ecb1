//! The rings, the programs that wrote them, and the names of their call sites and threads.

use eventring::reader::{Descriptor, SetRing, WriterInfo};
use eventring::schema::EventType;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{Catalog, Thread, ThreadKey};
use eventring_capture::recording::{EntryContent, NewRing, RecordedRings, RecordingEntry, ShardOrigin};
use eventring_capture::{CaptureFile, CapturedRing};
use std::path::Path;
use std::sync::Arc;

/// A program whose rings are read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LiveProgram {
    /// The process id in the program's pid namespace, or 0 if it is not known.
    pub pid: u32,
    /// The name of the program; empty if it is not known.
    pub name: String,
}

/// The rings, and the descriptions of their programs, call sites and threads.
#[derive(Default)]
pub struct LiveTables {
    pub(super) rings: Arc<RecordedRings>,
    /// The call sites and threads of each perf recorder.
    pub(super) catalogs: Vec<Catalog>,
    ring_names: Vec<String>,
    /// The times at which the rings were created, in nanoseconds since the epoch, or 0.
    pub(super) created_nanos: Vec<u64>,
    /// The programs, by the index of their process.
    pub programs: Vec<LiveProgram>,
    /// The writers of the rings, by the number of their process. It is `None` for a writer that is not known.
    writers: Vec<Option<WriterInfo>>,
}

impl LiveTables {
    /// Describes the rings of a capture.
    pub(super) fn of_capture(capture: &CaptureFile, rings: Arc<RecordedRings>) -> Self {
        let program = |process: &u32| {
            let ring = capture.rings().iter().find(|ring| ring.process == *process);
            ring.map(|ring| LiveProgram { pid: ring.pid, name: ring.program_name.clone() }).unwrap_or_default()
        };
        Self {
            catalogs: rings.recorders().iter().map(|recorder| capture.catalog(*recorder)).collect(),
            ring_names: capture.rings().iter().map(|ring: &CapturedRing| ring.name.clone()).collect(),
            created_nanos: capture.rings().iter().map(|ring| ring.created_epoch_nanos).collect(),
            programs: rings.processes().iter().map(program).collect(),
            writers: Vec::new(),
            rings,
        }
    }

    /// Adds the next ring of a set. All rings of the set before it were added.
    pub(super) fn add(&mut self, all: &[SetRing]) {
        let index = self.ring_names.len();
        let Some(ring) = all.get(index) else { return };
        let recorder = ring.recorder().unwrap_or(index);
        // A shard that could not be opened is described by shard 0.
        let Some(reader) = ring.reader().or_else(|| all.get(recorder)?.reader()) else { return };
        let info = reader.info();
        let is_perf = info.content_type == PerfEvent::CONTENT_TYPE && info.schema_hash == PerfEvent::schema_hash();
        let created_nanos = info.extension.as_ref().map_or(0, |extension| extension.created_epoch_nanos);
        let writer = info.extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
        let process = match ring.recorder() {
            Some(shard0) => self.rings.origin(shard0 as u32).process,
            None => self.process_of(writer),
        };
        let text = reader.schema_text();
        // Nobody else has the list of rings while rings are added.
        let Some(rings) = Arc::get_mut(&mut self.rings) else { return };
        rings.add(&NewRing {
            process,
            shard: is_perf.then_some((recorder as u32, ring.shard())),
            content_type: info.content_type,
            schema_hash: info.schema_hash,
            schema_text: text.as_deref(),
        });
        self.catalogs.resize_with(rings.recorders().len(), Catalog::live);
        let name = reader.path().and_then(Path::file_name).or(reader.name().map(Path::as_os_str));
        self.ring_names.push(name.unwrap_or("ring".as_ref()).to_string_lossy().into_owned());
        self.created_nanos.push(created_nanos);
        self.learn(index as u32, all);
    }

    /// Returns the number of the process that has written a ring. Adds the process if it is new. A writer that is not
    /// known is a process of its own.
    fn process_of(&mut self, writer: Option<WriterInfo>) -> u32 {
        if let Some(known) = self.writers.iter().position(|known| writer.is_some() && *known == writer) {
            return known as u32;
        }
        let program = writer.as_ref().map(|writer| LiveProgram { pid: writer.pid, name: writer.program_name.clone() });
        self.programs.push(program.unwrap_or_default());
        self.writers.push(writer);
        (self.writers.len() - 1) as u32
    }

    pub(super) fn len(&self) -> usize {
        self.ring_names.len()
    }

    /// Reads the call sites and threads that the recorder of a ring has added since the last call.
    fn learn(&mut self, ring: u32, all: &[SetRing]) {
        let Some(shard) = self.rings.origin(ring).shard else { return };
        if let Some(shard0) = all.get(shard.recorder as usize).and_then(SetRing::reader) {
            self.catalogs[shard.recorder_index].update(shard0);
        }
    }

    /// Makes sure that the call site and the thread of an event are known, if they can be. Returns the shard if the
    /// ring is a perf ring.
    #[inline]
    pub(super) fn know(&mut self, ring: u32, event: &Descriptor, all: &[SetRing]) -> Option<ShardOrigin> {
        let shard = self.rings.origin(ring).shard?;
        let catalog = &self.catalogs[shard.recorder_index];
        let ext = PerfExt::from_words(event.content_ext);
        let knows_call_site = ext.call_site_id == 0 || catalog.knows_call_site(ext.call_site_id);
        if !(knows_call_site && catalog.knows_thread(ext.thread_id)) {
            self.learn(ring, all);
        }
        Some(shard)
    }

    pub(super) fn entry<'e>(&self, ring: u32, content: EntryContent<'e>) -> RecordingEntry<'e> {
        let origin = self.rings.origin(ring);
        RecordingEntry { ring, process: origin.process, process_index: origin.process_index, content }
    }

    /// Makes the tables of one perf ring of one program, for tests.
    #[cfg(any(test, feature = "fixtures"))]
    pub(super) fn of_one_perf_ring() -> Self {
        let mut rings = RecordedRings::default();
        rings.add(&NewRing {
            process: 0,
            shard: Some((0, 0)),
            content_type: PerfEvent::CONTENT_TYPE,
            schema_hash: PerfEvent::schema_hash(),
            schema_text: None,
        });
        Self {
            rings: Arc::new(rings),
            catalogs: vec![Catalog::live()],
            ring_names: vec!["ring".to_owned()],
            created_nanos: vec![0],
            programs: vec![LiveProgram { pid: 1, name: "program".to_owned() }],
            writers: vec![None],
        }
    }

    pub(super) fn ring_name(&self, ring: u32) -> &str {
        &self.ring_names[ring as usize]
    }

    pub(super) fn thread(&self, thread: ThreadKey) -> Option<Arc<Thread>> {
        let recorder = self.rings.recorders().iter().position(|recorder| *recorder == thread.recorder)?;
        Some(self.catalogs.get(recorder)?.thread(thread.thread_id))
    }
}
