//! Events and losses for people: aligned columns, a line each.

use super::rings::{Ring, Rings};
use super::{Printer, perf};
use crate::cli::format::{Clock, grouped, one_line};
use crate::cli::paint::{self, BOLD, DIM, PLAIN, WARNING};
use anstyle::Style;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::exec::{ExecEvent, flow};
use eventring::schema::{MALFORMED, SPAN_WORD, Value};
use eventring::tracing::{PerfContent, PerfRecord};
use std::io::{self, BufWriter, IsTerminal as _, Write};

/// Names are at least this wide, and not cut.
const NAME_WIDTH: usize = 12;
/// Names of threads are cut to this.
const THREAD_WIDTH: usize = 15;

/// Prints lines.
pub(super) struct Lines {
    out: BufWriter<anstream::AutoStream<io::StdoutLock<'static>>>,
    clock: Clock,
    /// Columns of the terminal, if lines are cut.
    width: Option<usize>,
    full: bool,
    name_width: usize,
    /// 0 if there is one ring only.
    label_width: usize,
    has_exec: bool,
    has_perf: bool,
    /// The date that was shown last.
    date: String,
    line: Line,
}

impl Lines {
    pub(super) fn new(rings: &Rings, full: bool, clock: Clock) -> Self {
        let names = rings.iter().map(|ring| ring.decoder.name_width());
        let labels = rings.iter().map(|ring| ring.label.chars().count());
        Self {
            width: if full { None } else { terminal_columns() },
            out: BufWriter::with_capacity(1 << 16, anstream::stdout().lock()),
            clock,
            full,
            name_width: names.max().unwrap_or(0).max(NAME_WIDTH),
            label_width: if rings.has_several() { labels.max().unwrap_or(0) } else { 0 },
            has_exec: rings.iter().any(|ring| ring.is_exec),
            has_perf: rings.iter().any(|ring| ring.perf.is_some()),
            date: String::new(),
            line: Line::default(),
        }
    }

    /// The heading, and the date where it changes.
    fn headings(&mut self, epoch_nanos: u64) -> io::Result<()> {
        let date = self.clock.date(epoch_nanos);
        if date == self.date {
            return Ok(());
        }
        let is_first = self.date.is_empty();
        self.line.push(DIM, format!("── {date} ──"));
        self.end_line()?;
        self.date = date;
        if !is_first {
            return Ok(());
        }
        self.line.push(DIM, format!("{:<18}  ", "TIME"));
        if self.label_width > 0 {
            self.line.push(DIM, format!("{:<1$}  ", "RING", self.label_width));
        }
        self.line.push(DIM, format!("{:>11}  {:<2$}  ", "SEQNO", "EVENT", self.name_width));
        if self.has_exec {
            self.line.push(DIM, format!("{:>11}  {:>4}  {:>4}  ", "BLOCK", "TXN", "ACCT"));
        }
        if self.has_perf {
            self.line.push(DIM, format!("{:<THREAD_WIDTH$}  {:>8}  ", "THREAD", "SPAN"));
        }
        self.line.push(DIM, format!("{:>7}  PAYLOAD", "BYTES"));
        self.end_line()
    }

    fn columns(&mut self, ring: &Ring, event: &Descriptor, record: Option<&PerfRecord>) {
        let line = &mut self.line;
        line.push(DIM, format!("{}  ", self.clock.time(event.record_epoch_nanos)));
        if self.label_width > 0 {
            line.push(DIM, format!("{:<1$}  ", one_line(&ring.label), self.label_width));
        }
        line.push(PLAIN, format!("{:>11}  ", event.seqno));
        let name = match ring.decoder.name(event.event_type) {
            Some(name) => one_line(name),
            None => format!("type {}", event.event_type),
        };
        line.push(paint::event_type(event.event_type), format!("{name:<0$}  ", self.name_width));
        if self.has_exec {
            self.flow_tags(ring, event);
        }
        if self.has_perf {
            let thread = record.map(|record| one_line(&perf::thread_label(&record.thread))).unwrap_or_default();
            let thread: String = thread.chars().take(THREAD_WIDTH).collect();
            let span = match ring.span_id(event) {
                0 => "–".into(),
                span => span.to_string(),
            };
            self.line.push(DIM, format!("{thread:<THREAD_WIDTH$}  "));
            self.line.push(PLAIN, format!("{span:>8}  "));
        }
        self.line.push(PLAIN, format!("{:>7}  ", event.payload_size));
    }

    /// Block, transaction and account of an execution event.
    fn flow_tags(&mut self, ring: &Ring, event: &Descriptor) {
        let mut shown = [String::new(), String::new(), String::new()];
        if ring.is_exec {
            let tags = flow::FlowTags::from_ext(event.content_ext);
            let has_account = event.event_type == ExecEvent::StorageAccess as u16 || tags.account_index != 0;
            shown = [
                if tags.block_seqno == 0 { "–".into() } else { tags.block_seqno.to_string() },
                tags.txn_index.map_or("–".into(), |index| index.to_string()),
                if has_account { tags.account_index.to_string() } else { "–".into() },
            ];
        }
        let [block, txn, account] = shown;
        self.line.push(DIM, format!("{block:>11}  {txn:>4}  {account:>4}  "));
    }

    /// What an event of a perf ring says: level, place, fields; the text of a log record stands first.
    fn record(&mut self, record: &PerfRecord) {
        let is_log_record = matches!(record.content, PerfContent::Event { .. });
        if let Some(site) = perf::site(&record.content) {
            let level = perf::level(site.level).unwrap_or_default();
            self.line.push(paint::level(site.level), format!("{level:<5} "));
            if is_log_record {
                self.line.push(DIM, format!("{}: ", one_line(&site.target)));
            } else {
                self.line.push(BOLD, format!("{} ", one_line(&site.name)));
                self.line.push(DIM, format!("{} ", one_line(&site.target)));
            }
        }
        let Value::Struct(said) = perf::value(record, false) else { return };
        for (name, value) in said {
            match value {
                Value::Struct(fields) if name == "fields" => self.fields(&fields),
                // Said above, or nothing to say.
                _ if ["name", "target", "level"].contains(&name) => {}
                Value::F64(number) if number.is_nan() => {}
                value => self.fields(&[(name, value)]),
            }
        }
    }

    fn fields(&mut self, fields: &[(&str, Value<'_>)]) {
        let (message, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == "message");
        if let Some((_, Value::Text(text))) = message.first() {
            self.line.push(PLAIN, format!("{} ", one_line(text)));
        }
        for (name, value) in others {
            self.line.push(DIM, format!("{}=", one_line(name)));
            self.line.push(PLAIN, if self.full { format!("{value:#} ") } else { format!("{value} ") });
        }
    }

    fn payload(&mut self, value: &Value<'_>) {
        let full = self.full;
        let shown = |value: &Value<'_>| if full { format!("{value:#}") } else { value.to_string() };
        let Value::Struct(fields) = value else {
            if !matches!(value, Value::Bytes([])) {
                self.line.push(PLAIN, shown(value));
            }
            return;
        };
        for (name, value) in fields {
            let style = if *name == MALFORMED { WARNING } else { PLAIN };
            self.line.push(DIM, format!("{}=", one_line(name)));
            let value = match value {
                // Only the outermost stands without braces.
                Value::Struct(_) => format!("{{{}}} ", shown(value)),
                _ => format!("{} ", shown(value)),
            };
            self.line.push(style, value);
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.write(&mut self.out, self.width)?;
        self.out.write_all(b"\n")
    }
}

impl Printer for Lines {
    fn event(&mut self, ring: &Ring, event: &Descriptor, payload: PayloadRead<'_>) -> io::Result<()> {
        self.headings(event.record_epoch_nanos)?;
        let record = ring.perf.as_ref().map(|perf| perf.record(event, payload));
        self.columns(ring, event, record.as_ref());
        if let Some(record) = &record {
            self.record(record);
            return self.end_line();
        }
        let own_words = if ring.carries_span { &event.content_ext[..SPAN_WORD] } else { &event.content_ext[..] };
        if !ring.is_exec && own_words.iter().any(|word| *word != 0) {
            self.line.push(DIM, format!("ext={own_words:?} "));
        }
        match payload {
            PayloadRead::Valid(payload) => self.payload(&ring.decoder.decode(event.event_type, payload)),
            PayloadRead::Expired => self.line.push(WARNING, "the payload was overwritten before it was read".into()),
            PayloadRead::Malformed => self.line.push(WARNING, "the payload is larger than the ring: damaged".into()),
        }
        let span = ring.span_id(event);
        if !self.has_perf && span != 0 {
            self.line.push(DIM, format!(" span={span}"));
        }
        self.end_line()
    }

    fn gap(&mut self, ring: &Ring, gap: Gap) -> io::Result<()> {
        let of = if self.label_width > 0 { format!(" of {}", one_line(&ring.label)) } else { String::new() };
        let last = gap.first_seqno.saturating_add(gap.count - 1);
        if gap.cause == GapCause::NeverOpened {
            let text = format!("── {} events{of} are missing: a shard could not be opened ──", grouped(gap.count));
            self.line.push(WARNING, text);
            return self.end_line();
        }
        if !gap.is_loss() {
            let text = format!("── the numbers {} to {last}{of} stand for no event ──", gap.first_seqno);
            self.line.push(DIM, text);
            return self.end_line();
        }
        let why = match gap.cause {
            GapCause::Overwritten => "overwritten before they were read",
            GapCause::NeverCommitted => "reserved and never committed",
            _ => "lost",
        };
        let text = format!("── {} events{of} are missing, {} to {last}: {why} ──", grouped(gap.count), gap.first_seqno);
        self.line.push(WARNING, text);
        self.end_line()
    }

    fn made_anew(&mut self, _: &Ring) -> io::Result<()> {
        // Told on stderr.
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.full {
            // The window may have changed its size.
            self.width = terminal_columns();
        }
        self.out.flush()
    }
}

/// A line that is being put together.
#[derive(Default)]
struct Line {
    parts: Vec<(Style, String)>,
}

impl Line {
    fn push(&mut self, style: Style, text: String) {
        self.parts.push((style, text));
    }

    /// Writes at most `width` characters of it, and empties it.
    fn write(&mut self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        if let Some((_, last)) = self.parts.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let length: usize = self.parts.iter().map(|(_, text)| text.chars().count()).sum();
        let mut left = width.filter(|width| *width < length).map_or(usize::MAX, |width| width.saturating_sub(1));
        for (style, text) in self.parts.drain(..) {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            write!(out, "{style}{kept}{style:#}")?;
            if left == 0 {
                write!(out, "{DIM}…{DIM:#}")?;
                break;
            }
        }
        Ok(())
    }
}

/// The width of the terminal behind stdout, if there is one.
fn terminal_columns() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
