//! The rings of a recording, with their schemas and the processes that wrote them.

use eventring::internal::{decode_event, ext_words};
use eventring::reader::{Descriptor, GapCause};
use eventring::schema::perf::PerfEvent;
use eventring::schema::{EventType as _, ExtWords, RECORD_ERROR_CODE, SchemaModel, Value};
use eventring::tracing::SpanId;
use eventring::tracing::context::ProcessIds;
use std::borrow::Cow;

/// A program of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecordedProgram {
    /// The process id in the program's pid namespace, or 0 if it is not known.
    pub pid: u32,
    /// The name of the program; empty if it is not known.
    pub name: String,
}

impl RecordedProgram {
    /// Describes a program.
    pub fn new(pid: u32, name: impl Into<String>) -> Self {
        Self { pid, name: name.into() }
    }
}

/// The rings of a recording, by index.
#[derive(Default)]
pub struct RecordedRings {
    rings: Vec<RecordedRing>,
    processes: Vec<u32>,
    /// The programs, by the index of their process.
    programs: Vec<RecordedProgram>,
    /// For each perf recorder, the index of the ring that is shard 0.
    recorders: Vec<u32>,
    /// For each process, true if it has a perf ring.
    have_spans: Vec<bool>,
    /// For each process, what makes the ids of its spans, and of which ring this was made.
    ids: Vec<(ProcessIds, Option<IdsOrigin>)>,
}

/// The ring of which the ids of a process are made: the first one with spans, or else the first one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IdsOrigin {
    has_no_spans: bool,
    created_epoch_nanos: u64,
}

/// A ring of a recording.
struct RecordedRing {
    origin: RingOrigin,
    name: String,
    created_epoch_nanos: u64,
    is_perf: bool,
    /// The schema; `None` if it is not known. The schemas of perf rings are not used.
    model: Option<Cow<'static, SchemaModel>>,
    /// The names of the extension words.
    words: ExtWords,
    /// True if one of them is the span. It is asked for each event.
    has_span: bool,
}

/// The program and the recorder that wrote a ring.
#[derive(Clone, Copy)]
pub struct RingOrigin {
    /// The number of the process that wrote the ring.
    pub process: u32,
    /// The index of the process in [`RecordedRings::processes`].
    pub process_index: usize,
    /// The recorder and the shard, if the ring is a perf ring.
    pub shard: Option<ShardOrigin>,
}

/// The place of a ring among the shards of its perf recorder.
#[derive(Clone, Copy)]
pub struct ShardOrigin {
    /// The index of the ring that is shard 0.
    pub recorder: u32,
    /// The number of the shard.
    pub shard: u32,
    /// The index of the recorder among the perf recorders of the recording.
    pub recorder_index: usize,
}

/// The description of a ring that comes into a recording.
pub struct NewRing<'r> {
    /// The number of the process that wrote the ring.
    pub process: u32,
    /// The index of the ring that is shard 0, and the number of the shard; `None` if the ring is not a perf ring.
    pub shard: Option<(u32, u32)>,
    /// The name of the ring.
    pub name: &'r str,
    /// The time at which the ring was created, in nanoseconds since the epoch; 0 if it is not known.
    pub created_epoch_nanos: u64,
    /// The content type of the ring.
    pub content_type: u16,
    /// The schema hash of the ring.
    pub schema_hash: [u8; 32],
    /// The schema text of the ring, if it has one.
    pub schema_text: Option<&'r str>,
}

impl RecordedRings {
    /// Adds a process, before its rings. It gets the next index.
    pub fn add_process(&mut self, process: u32, program: RecordedProgram) {
        self.processes.push(process);
        self.programs.push(program);
        self.have_spans.push(false);
        self.ids.push((ProcessIds::default(), None));
    }

    /// Adds a ring of a process that was added. It gets the next index.
    pub fn add(&mut self, ring: &NewRing<'_>) {
        let shard = ring.shard.map(|(recorder, shard)| {
            let recorder_index = index_of(&mut self.recorders, recorder);
            ShardOrigin { recorder, shard, recorder_index }
        });
        let process_index = self.processes.iter().position(|process| *process == ring.process).unwrap_or(0);
        let model = SchemaModel::of_ring(ring.content_type, ring.schema_hash, ring.schema_text).ok();
        let words = ext_words(ring.content_type, model.as_deref());
        let origin = RingOrigin { process: ring.process, process_index, shard };
        if let (Some(has_spans), Some(_)) = (self.have_spans.get_mut(process_index), shard) {
            *has_spans = true;
        }
        let is_perf = ring.content_type == PerfEvent::CONTENT_TYPE;
        if let (Some((ids, made_of)), Some(program)) =
            (self.ids.get_mut(process_index), self.programs.get(process_index))
        {
            let origin = IdsOrigin { has_no_spans: !is_perf, created_epoch_nanos: ring.created_epoch_nanos };
            if made_of.is_none_or(|known| origin < known) {
                *ids = ProcessIds::new(program.pid, &program.name, ring.created_epoch_nanos);
                *made_of = Some(origin);
            }
        }
        self.rings.push(RecordedRing {
            origin,
            name: ring.name.to_owned(),
            created_epoch_nanos: ring.created_epoch_nanos,
            is_perf,
            model,
            has_span: words.has_span(),
            words,
        });
    }

    /// Returns the numbers of the processes that wrote the rings.
    pub fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Returns the programs, by the index of their process.
    pub fn programs(&self) -> &[RecordedProgram] {
        &self.programs
    }

    /// Returns what makes the ids of the spans of a process, as other programs know them.
    pub fn ids(&self, process_index: usize) -> &ProcessIds {
        &self.ids[process_index].0
    }

    /// Returns true if a process has a perf ring. If it has none, only typed events name its spans, and nothing is
    /// known of them.
    #[inline]
    pub fn has_spans(&self, process_index: usize) -> bool {
        self.have_spans.get(process_index).is_some_and(|has_spans| *has_spans)
    }

    /// Returns the perf recorders: for each, the index of the ring that is shard 0.
    pub fn recorders(&self) -> &[u32] {
        &self.recorders
    }

    /// Returns the number of rings.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Returns the program and the recorder that wrote a ring.
    #[inline]
    pub fn origin(&self, ring: u32) -> RingOrigin {
        self.rings[ring as usize].origin
    }

    /// Returns the name of a ring.
    pub fn name(&self, ring: u32) -> &str {
        &self.rings[ring as usize].name
    }

    /// Returns the time at which a ring was created, in nanoseconds since the epoch; 0 if it is not known.
    pub fn created_epoch_nanos(&self, ring: u32) -> u64 {
        self.rings[ring as usize].created_epoch_nanos
    }

    /// Returns true if a ring is a perf ring, of whichever version.
    pub fn is_perf(&self, ring: u32) -> bool {
        self.rings[ring as usize].is_perf
    }

    /// Returns the rings of a process.
    pub fn of_process(&self, process_index: usize) -> impl Iterator<Item = u32> {
        let rings = self.rings.iter().zip(0..);
        rings.filter(move |(ring, _)| ring.origin.process_index == process_index).map(|(_, index)| index)
    }

    /// Returns the schema of a ring that is no perf ring.
    pub fn model(&self, ring: u32) -> Option<&SchemaModel> {
        self.rings.get(ring as usize)?.model.as_deref()
    }

    /// Returns the span in which a typed event was recorded. Returns `None` if the event was in no span, or if the
    /// events of its ring do not name their spans.
    pub fn span(&self, ring: u32, descriptor: &Descriptor) -> Option<SpanId> {
        let has_span = self.rings[ring as usize].has_span;
        has_span.then(|| SpanId::new(descriptor.content_ext[ExtWords::SPAN_INDEX])).flatten()
    }

    /// Returns the names of the extension words of `ring`, which is not a perf ring.
    pub fn words(&self, ring: u32) -> &ExtWords {
        &self.rings[ring as usize].words
    }

    /// Returns the recorder and the number of the shard that lost events. Returns `None` if no record of a span is
    /// missing. This is so for a ring that is no perf ring, and for the cause [`GapCause::NeverCommitted`]. (With this
    /// cause, the thread never finished recording the event, so it stayed in its spans.)
    pub fn losing_shard(&self, ring: u32, cause: GapCause) -> Option<(u32, u32)> {
        let shard = self.origin(ring).shard.filter(|_| cause != GapCause::NeverCommitted);
        shard.map(|of| (of.recorder, of.shard))
    }

    /// Returns true if the event stands in place of one that could not be recorded. Code 1 means that in every schema
    /// but the oldest ones of EXEC. So if the schema is not known, the payload decides.
    pub fn is_record_error(&self, ring: u32, code: u16, payload: Option<&[u8]>) -> bool {
        let is_decoded = |payload| matches!(decode_event(None, code, payload), Value::Struct(_));
        code == RECORD_ERROR_CODE && (self.model(ring).is_some() || payload.is_some_and(is_decoded))
    }

    /// Returns the name of a typed event.
    pub fn event_name(&self, ring: u32, code: u16) -> Cow<'_, str> {
        match self.model(ring).and_then(|model| model.event(code)) {
            Some(event) => event.name().into(),
            None => format!("event {code}").into(),
        }
    }

    /// Returns the name of a ring's content type, or an empty text if its schema is not known. Types of different
    /// content types may have one name.
    #[must_use]
    pub fn content_name(&self, ring: u32) -> &str {
        self.model(ring).map_or("", SchemaModel::name)
    }
}

/// Returns the index of a number in a list. Adds the number if it is missing.
fn index_of(list: &mut Vec<u32>, number: u32) -> usize {
    list.iter().position(|known| *known == number).unwrap_or_else(|| {
        list.push(number);
        list.len() - 1
    })
}
