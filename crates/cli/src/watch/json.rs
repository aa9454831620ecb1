//! Events and losses as JSON, one object a line.

use super::ring::Ring;
use super::rings::Rings;
use super::{Printer, perf};
use crate::args::limit::Part;
use eventring::reader::{Descriptor, Gap, PayloadRead};
use eventring::schema::Value;
use serde_json::json;
use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write};

/// The printer of JSON lines; `docs/CLI.md` lists their fields.
pub(super) struct JsonLines<'l> {
    out: BufWriter<StdoutLock<'static>>,
    line: String,
    /// True if each line names the ring of its event, because there are several rings.
    says_ring: bool,
    /// The file that each line names, if events of several files are shown.
    file: Option<String>,
    /// Which lines are wanted.
    part: &'l mut Part,
    /// The id of a line.
    id: String,
}

impl<'l> JsonLines<'l> {
    pub(super) fn new(says_ring: bool, part: &'l mut Part) -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Self { out, line: String::new(), says_ring, file: None, part, id: String::new() }
    }

    /// Names the file of the events in each line.
    pub(super) fn of_file(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    fn write_event(&mut self, ring: &Ring, event: &Descriptor, payload: PayloadRead<'_>) -> std::fmt::Result {
        let line = &mut self.line;
        let [a, b, c, d] = event.content_ext;
        write!(line, "{{\"seqno\":{},\"type\":{},\"name\":", event.seqno, event.event_type)?;
        match ring.decoder.name(event.event_type) {
            // The name comes from the ring's file and may hold any characters. So it is written as a JSON string, with
            // escapes.
            Some(name) => write!(line, "{}", json!(name))?,
            None => line.push_str("null"),
        }
        write!(
            line,
            ",\"ts_ns\":{},\"size\":{},\"ext\":[{a},{b},{c},{d}],",
            event.record_epoch_nanos, event.payload_size
        )?;
        // An extension word with a name gets a key of its own in the line, with two exceptions: the words of execution
        // events, and words with the name of another key of the line. These words are only in `ext`.
        for (index, word) in ring.words.iter_own().filter(|_| !ring.is_exec) {
            if !word.is_reserved() {
                write!(line, "\"{}\":{},", word.key(), json!(word.value(event.content_ext[index])))?;
            }
        }
        if ring.is_exec {
            write!(line, "\"block_number\":{},", json!(ring.block_number(event, || payload)))?;
        }
        if ring.words.has_span() {
            match ring.span_id(event) {
                0 => line.push_str("\"span\":null,"),
                span => write!(line, "\"span\":{span},")?,
            }
        }
        line.push_str("\"payload\":");
        match payload {
            payload if ring.perf.is_some() => {
                if let Some(perf) = &ring.perf {
                    line.push_str(&to_json(&perf::value(&perf.record(event, payload), true)));
                }
                line.push_str(match payload {
                    PayloadRead::Valid(_) => "",
                    PayloadRead::Expired => ",\"expired\":true",
                    PayloadRead::Malformed => ",\"malformed\":true",
                });
            }
            PayloadRead::Valid(payload) => line.push_str(&to_json(&ring.decoder.decode(event.event_type, payload))),
            PayloadRead::Expired => line.push_str("null,\"expired\":true"),
            PayloadRead::Malformed => line.push_str("null,\"malformed\":true"),
        }
        Ok(())
    }

    /// Writes the line, if it is wanted. Its id is that of file, ring and seqno, or what stands for that.
    fn end_line(&mut self, ring: &Ring, seqno: impl Display) -> io::Result<()> {
        if self.says_ring {
            self.line.push_str(",\"ring\":");
            self.line.push_str(&json!(ring.label).to_string());
        }
        if let Some(file) = &self.file {
            self.line.push_str(",\"file\":");
            self.line.push_str(&json!(file).to_string());
        }
        self.line.push_str("}\n");
        if self.part.is_asked_for {
            self.id.clear();
            let _ = match &self.file {
                Some(file) => write!(self.id, "{file}:{}:{seqno}", ring.label),
                None => write!(self.id, "{}:{seqno}", ring.label),
            };
        }
        if self.part.takes(self.line.len(), &self.id) {
            self.out.write_all(self.line.as_bytes())?;
        }
        self.line.clear();
        Ok(())
    }
}

/// Returns the value as JSON on one line.
fn to_json(value: &Value<'_>) -> String {
    // A `Value` can always be serialized: its map keys are strings, and each of its numbers has a JSON form.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

impl Printer for JsonLines<'_> {
    fn is_over(&self) -> bool {
        self.part.is_over()
    }

    fn event(&mut self, ring: &Ring, event: &Descriptor, payload: PayloadRead<'_>) -> io::Result<()> {
        // Writing to a String does not fail.
        let _ = self.write_event(ring, event, payload);
        self.end_line(ring, event.seqno)
    }

    fn gap(&mut self, ring: &Ring, gap: Gap) -> io::Result<()> {
        let seqno = gap.first_seqno;
        let gap = json!({ "first_seqno": seqno, "count": gap.count, "cause": gap.cause.name() });
        let _ = write!(self.line, "{{\"gap\":{gap}");
        self.end_line(ring, seqno)
    }

    fn reopened(&mut self, ring: &Ring) -> io::Result<()> {
        let info = ring.reader.as_ref().map(eventring::reader::Reader::info);
        let pid = info.and_then(|info| info.extension).map(|extension| extension.writer.pid);
        let reopened = json!({ "name": ring.label, "pid": pid });
        let _ = write!(self.line, "{{\"made_anew\":{reopened}");
        self.end_line(ring, "made anew")
    }

    fn flush(&mut self, _: &Rings) -> io::Result<()> {
        self.out.flush()
    }
}
