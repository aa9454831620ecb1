//! Traces as JSON for Chrome's trace viewer.
//!
//! Times are microseconds since the first event, with the nanoseconds as decimals. They do not count from the epoch:
//! JSON parsers use doubles for numbers, and nanoseconds since the epoch do not fit into doubles exactly.
//! `otherData.base_epoch_ns` is the time of the first event.

use super::args::{ArgValue, Args};
use super::trace_writer::{FlowEnds, FlowId, Label, SliceId, TraceWriter, Track, TrackId, TrackKind};
use crate::schema::perf::FieldValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// The first of the numbers that this writer makes up. In a Chrome trace every track needs a thread number, even a
/// track that is not a thread. The numbers of the system's threads and processes are smaller.
const FIRST_FREE_TID: u64 = 1 << 32;

/// The writer of a Chrome trace. It writes a slice when the slice ends, and every other event immediately.
pub(super) struct ChromeWriter<'o> {
    out: &'o mut dyn Write,
    base_nanos: u64,
    rows: HashMap<TrackId, Row>,
    open: HashMap<SliceId, Begun>,
    has_begun: bool,
}

#[derive(Clone)]
struct Row {
    pid: u64,
    tid: u64,
    name: String,
}

struct Begun {
    track: TrackId,
    nanos: u64,
    name: String,
    category: String,
    args: Args,
    flows: OwnedFlows,
}

/// The flows of a slice that has begun.
struct OwnedFlows {
    begins: Vec<FlowId>,
    ends: Vec<FlowId>,
}

impl From<FlowEnds<'_>> for OwnedFlows {
    fn from(flows: FlowEnds<'_>) -> Self {
        Self { begins: flows.begins.to_vec(), ends: flows.ends.to_vec() }
    }
}

impl<'o> ChromeWriter<'o> {
    pub(super) fn new(out: &'o mut dyn Write, base_nanos: u64) -> Self {
        Self { out, base_nanos, rows: HashMap::new(), open: HashMap::new(), has_begun: false }
    }

    /// Writes an event. `times` is the JSON text of the event's `ts` and `dur`. They are passed as text, because
    /// numbers in a [`Map`] would lose digits.
    fn write(&mut self, event: &Map<String, Value>, times: &str) -> io::Result<()> {
        if self.has_begun {
            self.out.write_all(b",\n")?;
        } else {
            let head = json!({ "base_epoch_ns": self.base_nanos.to_string(), "recorder": "eventring" });
            writeln!(self.out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{head},\"traceEvents\":[")?;
            self.has_begun = true;
        }
        let event = serde_json::to_string(event).map_err(io::Error::other)?;
        // `event` ends with `}` and has at least one member. `times` begins with a comma. So the text without the `}`
        // can be continued with `times`.
        let open = event.strip_suffix('}').unwrap_or(&event);
        write!(self.out, "{open}{times}}}")
    }

    fn ts(&self, nanos: u64) -> String {
        // The base is the time of the first event. A loss can begin before the first event, and then its time is
        // negative.
        match nanos.checked_sub(self.base_nanos) {
            Some(since) => format!(",\"ts\":{}", micros(since)),
            None => format!(",\"ts\":-{}", micros(self.base_nanos - nanos)),
        }
    }

    fn row(&self, track: TrackId) -> (u64, u64) {
        self.rows.get(&track).map_or((0, 0), |row| (row.pid, row.tid))
    }

    fn object(&self, phase: &str, track: TrackId) -> Map<String, Value> {
        let (pid, tid) = self.row(track);
        [("ph", json!(phase)), ("pid", json!(pid)), ("tid", json!(tid))]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// Writes the flows of a slice or instant that begins at `nanos`. They come after it, because readers look for the
    /// slice in which the end of a flow lies among those that they have read.
    fn flows(&mut self, track: TrackId, nanos: u64, flows: &OwnedFlows) -> io::Result<()> {
        let ts = self.ts(nanos);
        for (phase, flows) in [("s", &flows.begins), ("f", &flows.ends)] {
            for flow in flows {
                let mut event = self.object(phase, track);
                event.insert("name".into(), json!("flow"));
                event.insert("cat".into(), json!("eventring"));
                event.insert("id".into(), json!(flow.0));
                if phase == "f" {
                    // The flow ends at the slice that contains this time, not at the next one.
                    event.insert("bp".into(), json!("e"));
                }
                self.write(&event, &ts)?;
            }
        }
        Ok(())
    }

    fn name_row(&mut self, what: &str, track: TrackId, name: &str) -> io::Result<()> {
        let mut event = self.object("M", track);
        event.insert("name".into(), json!(what));
        event.insert("args".into(), json!({ "name": name }));
        self.write(&event, "")
    }
}

/// Returns nanoseconds as microseconds, exactly.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

/// Returns the arguments twice in one object: directly, and again under `data`. The Firefox Profiler shows only the
/// values under `data`.
fn with_data(args: &Args) -> Map<String, Value> {
    let mut out = args.to_json();
    let data = Value::Object(out.clone());
    out.insert("data".into(), data);
    out
}

fn category(label: &Label<'_>) -> String {
    if label.category.is_empty() { "eventring".into() } else { label.category.into() }
}

impl TraceWriter for ChromeWriter<'_> {
    fn track(&mut self, id: TrackId, track: &Track<'_>) -> io::Result<()> {
        let in_process = |process: TrackId| self.rows.get(&process).map_or(0, |row| row.pid);
        let (pid, tid) = match track.kind {
            // The id of this process is not known, so it gets a number that no process has.
            TrackKind::Process if track.pid == 0 => (FIRST_FREE_TID + id.0, 0),
            TrackKind::Process => (track.pid.into(), 0),
            TrackKind::Thread { process, os_thread_id } => {
                let pid = in_process(process);
                let tid = u64::from(os_thread_id);
                // The system may have given the number of an ended thread to a new thread. The new thread then gets
                // another number here.
                let is_used = self.rows.values().any(|row| (row.pid, row.tid) == (pid, tid));
                (pid, if is_used { FIRST_FREE_TID + id.0 } else { tid })
            }
            TrackKind::Plain { parent } => (in_process(parent), FIRST_FREE_TID + id.0),
            TrackKind::Counter { process } => (in_process(process), 0),
        };
        self.rows.insert(id, Row { pid, tid, name: track.name.to_owned() });
        match track.kind {
            TrackKind::Process => self.name_row("process_name", id, track.name),
            TrackKind::Counter { .. } => Ok(()),
            _ => self.name_row("thread_name", id, track.name),
        }
    }

    fn begin(&mut self, track: TrackId, slice: SliceId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        let mut args = args.clone();
        if let Some((file, line)) = label.source {
            args.push("source", ArgValue::Text(format!("{file}:{line}")));
        }
        let begun = Begun {
            track,
            nanos,
            name: label.name.to_owned(),
            category: category(&label),
            args,
            flows: label.flows.into(),
        };
        self.open.insert(slice, begun);
        Ok(())
    }

    fn end(&mut self, track: TrackId, slice: SliceId, nanos: u64, args: &Args) -> io::Result<()> {
        let Some(mut begun) = self.open.remove(&slice) else { return Ok(()) };
        begun.args.0.extend_from_slice(&args.0);
        let mut event = self.object("X", track);
        event.insert("name".into(), json!(begun.name));
        event.insert("cat".into(), json!(begun.category));
        event.insert("args".into(), Value::Object(with_data(&begun.args)));
        let times = format!("{},\"dur\":{}", self.ts(begun.nanos), micros(nanos.saturating_sub(begun.nanos)));
        self.write(&event, &times)?;
        self.flows(track, begun.nanos, &begun.flows)
    }

    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        let mut event = self.object("i", track);
        event.insert("name".into(), json!(label.name));
        event.insert("cat".into(), json!(category(&label)));
        event.insert("s".into(), json!("t"));
        event.insert("args".into(), Value::Object(with_data(args)));
        let ts = self.ts(nanos);
        self.write(&event, &ts)?;
        self.flows(track, nanos, &OwnedFlows::from(label.flows))
    }

    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()> {
        let mut event = self.object("C", track);
        let name = self.rows.get(&track).map_or("", |row| &row.name);
        event.insert("name".into(), json!(name));
        event.insert("args".into(), json!({ "value": value }));
        let ts = self.ts(nanos);
        self.write(&event, &ts)
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut open: Vec<(SliceId, Begun)> = self.open.drain().collect();
        open.sort_by_key(|(slice, _)| slice.0);
        for (_, begun) in open {
            let mut event = self.object("B", begun.track);
            event.insert("name".into(), json!(begun.name));
            event.insert("cat".into(), json!(begun.category));
            event.insert("args".into(), Value::Object(with_data(&begun.args)));
            let ts = self.ts(begun.nanos);
            self.write(&event, &ts)?;
            self.flows(begun.track, begun.nanos, &begun.flows)?;
        }
        if !self.has_begun {
            self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        }
        self.out.write_all(b"\n]}\n")
    }
}
