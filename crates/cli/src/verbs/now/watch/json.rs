//! Events and losses as JSON, one object a line.

use super::ring::Ring;
use super::rings::Rings;
use super::{Printer, perf};
use crate::args::limit::{Cut, Part};
use eventring::reader::{Gap, PayloadRead};
use eventring::schema::{ExtWords, Value};
use eventring_capture::recording::RecordingEntry;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write};

/// A line of `watch --json`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WatchLine<'a> {
    Event(EventLine<'a>),
    Loss {
        gap: Loss,
        #[serde(flatten)]
        place: Place<'a>,
    },
    /// Later events of that name are those of a new ring.
    MadeAnew {
        made_anew: NewRing<'a>,
        #[serde(flatten)]
        place: Place<'a>,
    },
    /// The last line, if a part was asked for.
    Cut(Cut),
}

/// An event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventLine<'a> {
    seqno: u64,
    #[serde(rename = "type")]
    code: u16,
    name: Option<&'a str>,
    ts_ns: u64,
    size: u32,
    ext: [u64; 4],
    /// The words that the schema names: NAME, or NAME_KIND (an index is the word minus one, null for 0). Those of
    /// execution events are in `ext` alone.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Option<u64>>")]
    words: Words<'a>,
    /// Of execution events.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_number: Option<Option<u64>>,
    /// Of typed events whose schema has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Option<u64>>,
    /// Hex if it cannot be decoded, null if it was lost. That of a perf event has `thread` {`id`, `tid`, `name`},
    /// `span`, and, as it needs, `name`, `target`, `level`, `parent`, `follows`, `fields`, `cut` (the whole length of
    /// each cut field, or `failed`, `panicked`), `missing_fields`, `value`, `text`, `file`, `line`, `error`, `problem`.
    /// That of a THREAD_TIME has `since_ns`, `cpu_ns`, `queue_ns` (null if the kernel does not say), and counts.
    #[schemars(with = "serde_json::Value")]
    payload: Option<Value<'a>>,
    #[serde(skip_serializing_if = "is_false")]
    expired: bool,
    #[serde(skip_serializing_if = "is_false")]
    malformed: bool,
    #[serde(flatten)]
    place: Place<'a>,
}

/// Where a line comes from, if that may be several places. Without `ring`, it is the ring that the command names: a line
/// of another shard always has `ring`.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct Place<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Loss {
    first_seqno: u64,
    count: u64,
    cause: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct NewRing<'a> {
    name: &'a str,
    pid: Option<u32>,
}

/// The named extension words of an event, with two exceptions: the words of execution events, and words with the name
/// of another key of the line. These are only in `ext`.
struct Words<'a>(Option<&'a ExtWords>, [u64; 4]);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let named = self.0.iter().flat_map(|words| words.iter_own()).filter(|(_, word)| !word.is_reserved());
        to.collect_map(named.map(|(index, word)| (word.key(), word.value(self.1[index]))))
    }
}

fn is_false(it: &bool) -> bool {
    !it
}

/// The printer of JSON lines.
pub(super) struct JsonLines<'l> {
    out: BufWriter<StdoutLock<'static>>,
    line: Vec<u8>,
    /// True if each line names the ring of its event, because there are several rings.
    says_ring: bool,
    /// The file that each line names, if events of several files are shown.
    file: Option<&'l str>,
    /// Which lines are wanted.
    part: &'l mut Part,
    /// The id of a line.
    id: String,
}

impl<'l> JsonLines<'l> {
    pub(super) fn new(says_ring: bool, part: &'l mut Part) -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Self { out, line: Vec::new(), says_ring, file: None, part, id: String::new() }
    }

    /// Names the file of the events in each line.
    pub(super) fn of_file(self, file: &'l str) -> Self {
        Self { file: Some(file), ..self }
    }

    fn place<'a>(&self, ring: &'a Ring) -> Place<'a>
    where
        'l: 'a,
    {
        Place { ring: (self.says_ring || ring.is_shard).then_some(&ring.label), file: self.file }
    }

    /// Writes a line, if it is wanted. Its id is that of file, ring and seqno, or what stands for that.
    fn line(&mut self, ring: &Ring, seqno: impl Display, line: &WatchLine<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        if self.part.is_asked_for {
            self.id.clear();
            let _ = match self.file {
                Some(file) => write!(self.id, "{file}:{}:{seqno}", ring.label),
                None => write!(self.id, "{}:{seqno}", ring.label),
            };
        }
        if self.part.takes(self.line.len(), &self.id) {
            self.out.write_all(&self.line)?;
        }
        self.line.clear();
        Ok(())
    }
}

impl Printer for JsonLines<'_> {
    fn is_over(&self) -> bool {
        self.part.is_over()
    }

    fn event(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()> {
        let Some((event, payload)) = entry.event() else { return Ok(()) };
        let record = entry.decoded();
        let value = match (&record, payload) {
            (Some(record), _) => Some(perf::value(record, true)),
            (None, PayloadRead::Valid(payload)) => Some(ring.decoder.decode(event.event_type, payload)),
            (None, _) => None,
        };
        let line = EventLine {
            seqno: event.seqno,
            code: event.event_type,
            name: ring.decoder.name(event.event_type),
            ts_ns: event.record_epoch_nanos,
            size: event.payload_size,
            ext: event.content_ext,
            words: Words((!ring.is_exec).then_some(&ring.words), event.content_ext),
            block_number: ring.is_exec.then(|| ring.block_number(event, payload)),
            span: ring.words.has_span().then(|| Some(ring.span_id(event)).filter(|span| *span > 0)),
            payload: value,
            expired: matches!(payload, PayloadRead::Expired),
            malformed: matches!(payload, PayloadRead::Malformed),
            place: self.place(ring),
        };
        self.line(ring, event.seqno, &WatchLine::Event(line))
    }

    fn gap(&mut self, ring: &Ring, Gap { first_seqno, count, cause, .. }: Gap) -> io::Result<()> {
        let gap = Loss { first_seqno, count, cause: cause.name() };
        self.line(ring, first_seqno, &WatchLine::Loss { gap, place: self.place(ring) })
    }

    fn reopened(&mut self, ring: &Ring) -> io::Result<()> {
        let info = ring.reader.as_ref().map(eventring::reader::Reader::info);
        let pid = info.and_then(|info| info.extension).map(|extension| extension.writer.pid);
        let made_anew = NewRing { name: &ring.label, pid };
        self.line(ring, "made anew", &WatchLine::MadeAnew { made_anew, place: self.place(ring) })
    }

    fn flush(&mut self, _: &Rings) -> io::Result<()> {
        self.out.flush()
    }
}
