//! Traces as JSON for Chrome's trace viewer.
//!
//! Times are microseconds since the first event, with the nanoseconds as decimals. Times since the epoch would not be
//! exact in parsers that use doubles. `otherData.base_epoch_ns` is the time of the first event.

use super::json::JsonText;
use super::trace_writer::{Alert, FlowEnds, Label, SliceId, TraceWriter, Track, TrackId, TrackKind};
use crate::args::{ArgValue, Args};
use crate::slices::flows::SliceFlows;
use eventring::schema::perf::FieldValue;
use eventring::tracing::IdMap;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

/// The first of the numbers that this writer makes up. In a Chrome trace every track needs a thread number, even a
/// track that is not a thread. The numbers of Linux' threads and processes are smaller, at most 2^22. Perfetto reads
/// numbers of 32 bits, and takes all larger ones for 0.
const FIRST_FREE_TID: u64 = 1 << 30;

/// The name of the argument with the place in the program's source.
const SOURCE: &str = "source";

/// The largest number of texts that are kept for further slices, and the size from which on a text is not kept.
const SPARE_MAX: usize = 1 << 10;
const SPARE_BYTES_MAX: usize = 1 << 12;

/// The number of bytes that are passed on together.
const WRITE_BYTES: usize = 64 << 10;

/// The writer of a Chrome trace. It writes a slice when the slice ends, and every other event immediately.
pub(crate) struct ChromeWriter<'o> {
    out: &'o mut dyn Write,
    /// Text that was not passed to `out` yet.
    text: JsonText,
    base_nanos: u64,
    rows: IdMap<TrackId, Row>,
    /// The numbers that are in use: of the process and the thread.
    used: HashSet<(u64, u64)>,
    open: IdMap<SliceId, Begun>,
    /// The texts of slices that have ended.
    spare: Vec<SliceTexts>,
    has_begun: bool,
}

struct Row {
    pid: u64,
    /// The members `pid` and `tid`.
    place: Vec<u8>,
    name: String,
}

/// A slice that has begun.
struct Begun {
    track: TrackId,
    nanos: u64,
    texts: SliceTexts,
    /// All arguments of the beginning, unless they are in `texts`.
    args: Option<Args>,
    flows: SliceFlows,
}

/// The texts of a slice that has begun. They are used again for another slice.
#[derive(Default)]
struct SliceTexts {
    /// The members `name` and `cat`.
    names: JsonText,
    /// The arguments of the beginning as members, if there are no incomplete values, and if no name is there twice.
    args: JsonText,
}

impl<'o> ChromeWriter<'o> {
    pub(crate) fn new(out: &'o mut dyn Write, base_nanos: u64) -> Self {
        let (rows, used, open) = (IdMap::default(), HashSet::new(), IdMap::default());
        Self { out, text: JsonText::default(), base_nanos, rows, used, open, spare: Vec::new(), has_begun: false }
    }

    /// Begins the object of an event of this phase on this track.
    fn begin_event(&mut self, phase: &str, track: TrackId) -> io::Result<()> {
        if self.text.0.len() >= WRITE_BYTES {
            self.out.write_all(&self.text.0)?;
            self.text.0.clear();
        }
        if self.has_begun {
            self.text.raw(b",\n");
        } else {
            self.text.raw(b"{\"displayTimeUnit\":\"ns\",\"otherData\":{");
            self.text.member("base_epoch_ns", &self.base_nanos.to_string())?;
            self.text.member("recorder", "eventring")?;
            self.text.raw(b"},\"traceEvents\":[\n");
            self.has_begun = true;
        }
        self.text.begin();
        self.text.member("ph", phase)?;
        if let Some(row) = self.rows.get(&track) {
            self.text.raw_members(&row.place);
        }
        Ok(())
    }

    /// Writes the member `ts`.
    fn ts(&mut self, nanos: u64) -> io::Result<()> {
        self.text.key("ts");
        // The base is the time of the first event. A loss can begin before the first event, and then its time is
        // negative.
        if nanos < self.base_nanos {
            self.text.raw(b"-");
        }
        self.micros(nanos.abs_diff(self.base_nanos))
    }

    /// Writes nanoseconds as microseconds, exactly.
    fn micros(&mut self, nanos: u64) -> io::Result<()> {
        self.text.value(&(nanos / 1000))?;
        let digit = |of: u64| b'0' + (nanos / of % 10) as u8;
        self.text.raw(&[b'.', digit(100), digit(10), digit(1)]);
        Ok(())
    }

    /// Writes the member `args`. It has the arguments twice: directly, and again under `data`. The Firefox Profiler
    /// shows only the values under `data`.
    fn args(&mut self, members: &[u8]) {
        let text = &mut self.text;
        text.key("args");
        text.begin();
        if !members.is_empty() {
            text.raw(members);
        }
        text.key("data");
        text.begin();
        text.raw(members);
        text.end();
        text.end();
    }

    /// Keeps texts for another slice.
    fn keep(&mut self, texts: SliceTexts) {
        if self.spare.len() < SPARE_MAX && texts.names.0.capacity().max(texts.args.0.capacity()) < SPARE_BYTES_MAX {
            self.spare.push(texts);
        }
    }

    /// Writes the flows of a slice or instant that begins at `nanos`. They come after it, because readers look for the
    /// slice in which the end of a flow lies among those that they have read.
    fn flows(&mut self, track: TrackId, nanos: u64, flows: FlowEnds<'_>) -> io::Result<()> {
        for (phase, flows) in [("s", flows.begins), ("f", flows.ends)] {
            for flow in flows {
                self.begin_event(phase, track)?;
                self.text.member("name", "flow")?;
                self.text.member("cat", "eventring")?;
                self.text.member("id", &flow.0)?;
                if phase == "f" {
                    // The flow ends at the slice that contains this time, not at the next one.
                    self.text.member("bp", "e")?;
                }
                self.ts(nanos)?;
                self.text.end();
            }
        }
        Ok(())
    }

    /// Returns a number that no thread of the process has had so far. A damaged recording can have any numbers.
    fn free_tid(&self, pid: u64, id: TrackId) -> u64 {
        let mut tid = FIRST_FREE_TID + id.0;
        while self.used.contains(&(pid, tid)) {
            tid += FIRST_FREE_TID;
        }
        tid
    }

    fn name_row(&mut self, what: &str, track: TrackId, name: &str) -> io::Result<()> {
        self.begin_event("M", track)?;
        self.text.member("name", what)?;
        self.text.single("args", "name", name)?;
        self.text.end();
        Ok(())
    }

    /// Writes a slice: a whole one if `end_nanos` is there, and otherwise one that never ends.
    fn slice(&mut self, track: TrackId, begun: &Begun, end_nanos: Option<u64>, more: &Args) -> io::Result<()> {
        self.begin_event(if end_nanos.is_some() { "X" } else { "B" }, track)?;
        self.text.raw_members(&begun.texts.names.0);
        self.args(&begun.args_with(more)?);
        self.ts(begun.nanos)?;
        if let Some(end_nanos) = end_nanos {
            self.text.key("dur");
            self.micros(end_nanos.saturating_sub(begun.nanos))?;
        }
        self.text.end();
        self.flows(track, begun.nanos, begun.flows.as_ends())
    }
}

impl Begun {
    /// Returns the arguments of the beginning and more of them, as the members of an object.
    fn args_with(&self, more: &Args) -> io::Result<Cow<'_, [u8]>> {
        let text = &self.texts.args.0;
        if let Some(args) = &self.args {
            let mut args = args.clone();
            args.0.extend_from_slice(&more.0);
            return members_of(&args.to_json()).map(Cow::Owned);
        }
        if more.0.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        let mut members = JsonText(text.clone());
        if members.try_args(more)? {
            return Ok(Cow::Owned(members.0));
        }
        let mut values: Map<String, Value> = serde_json::from_slice(&[b"{", &text[..], b"}"].concat())?;
        values.extend(more.to_json());
        members_of(&values).map(Cow::Owned)
    }
}

/// Returns the members of an object as text.
fn members_of(values: &Map<String, Value>) -> io::Result<Vec<u8>> {
    let mut text = JsonText::default();
    for (name, value) in values {
        text.any_key(name)?;
        text.value(value)?;
    }
    Ok(text.0)
}

/// Returns the member `cname` of an alert: a colour of Chrome's trace viewer. `terrible` is red, `bad` is orange,
/// and `generic_work` is grey.
fn colour(alert: Alert) -> &'static str {
    match alert {
        Alert::Loss | Alert::Error => "terrible",
        Alert::Warning => "bad",
        Alert::Notice => "generic_work",
    }
}

fn category<'l>(label: &Label<'l>) -> &'l str {
    if label.category.is_empty() { "eventring" } else { label.category }
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
                (pid, if self.used.contains(&(pid, tid)) { self.free_tid(pid, id) } else { tid })
            }
            TrackKind::Plain { parent } => (in_process(parent), self.free_tid(in_process(parent), id)),
            TrackKind::Counter { process } => (in_process(process), 0),
        };
        self.used.insert((pid, tid));
        let mut place = JsonText::default();
        place.member("pid", &pid)?;
        place.member("tid", &tid)?;
        self.rows.insert(id, Row { pid, place: place.0, name: track.name.to_owned() });
        match track.kind {
            TrackKind::Process => self.name_row("process_name", id, track.name),
            TrackKind::Counter { .. } => Ok(()),
            _ => self.name_row("thread_name", id, track.name),
        }
    }

    fn begin(&mut self, track: TrackId, slice: SliceId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        let mut texts = self.spare.pop().unwrap_or_default();
        let SliceTexts { names, args: members } = &mut texts;
        names.0.clear();
        members.0.clear();
        names.member("name", label.name)?;
        names.member("cat", category(&label))?;
        if let Some(alert) = label.alert {
            names.member("cname", colour(alert))?;
        }
        let is_plain = members.try_args(args)?;
        let mut all = (!is_plain).then(|| args.clone());
        if let Some((file, line)) = label.source {
            match &mut all {
                Some(all) => all.push(SOURCE, ArgValue::Text(format!("{file}:{line}").into())),
                None => {
                    members.key(SOURCE);
                    members.display(&format_args!("{file}:{line}"))?;
                }
            }
        }
        self.open.insert(slice, Begun { track, nanos, texts, args: all, flows: label.flows.into() });
        Ok(())
    }

    fn end(&mut self, track: TrackId, slice: SliceId, nanos: u64, args: &Args) -> io::Result<()> {
        let Some(begun) = self.open.remove(&slice) else { return Ok(()) };
        self.slice(track, &begun, Some(nanos), args)?;
        self.keep(begun.texts);
        Ok(())
    }

    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        let mut texts = self.spare.pop().unwrap_or_default();
        let members = &mut texts.args;
        members.0.clear();
        if !members.try_args(args)? {
            members.0 = members_of(&args.to_json())?;
        }
        self.begin_event("i", track)?;
        self.text.member("name", label.name)?;
        self.text.member("cat", category(&label))?;
        if let Some(alert) = label.alert {
            self.text.member("cname", colour(alert))?;
        }
        self.text.member("s", "t")?;
        self.args(&texts.args.0);
        self.keep(texts);
        self.ts(nanos)?;
        self.text.end();
        self.flows(track, nanos, label.flows)
    }

    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()> {
        self.begin_event("C", track)?;
        let name = self.rows.get(&track).map_or("", |row| &row.name);
        self.text.member("name", name)?;
        self.text.single("args", "value", value)?;
        self.ts(nanos)?;
        self.text.end();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut open: Vec<(SliceId, Begun)> = self.open.drain().collect();
        open.sort_by_key(|(slice, _)| slice.0);
        for (_, begun) in open {
            self.slice(begun.track, &begun, None, &Args::default())?;
        }
        if !self.has_begun {
            self.text.raw(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        }
        self.text.raw(b"\n]}\n");
        self.out.write_all(&self.text.0)
    }
}
