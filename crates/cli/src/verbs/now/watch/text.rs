//! Events and losses for people: each on a line, with the aligned columns that [`super::columns`] chooses.

use super::columns::{Columns, RING_HEADING, fit};
use super::ring::Ring;
use super::rings::Rings;
use super::screen::Screen;
use super::{Printer, perf};
use crate::text::format::{TimeFormat, columns, events, grouped, rate, shown_name};
use crate::text::out::{Out, stdout};
use crate::text::paint::{self, BOLD, DIM, PLAIN, Style, WARNING};
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::exec::{ExecEvent, FlowTags};
use eventring::schema::perf::flags;
use eventring::schema::{MALFORMED, Value};
use eventring::tracing::{CallSite, PerfContent, PerfRecord};
use eventring_capture::recording::RecordingEntry;
use std::io::{self, BufWriter, IsTerminal as _, Write};

/// A printer of lines for people.
pub(super) struct Lines<O: Write> {
    out: O,
    clock: TimeFormat,
    /// A function that returns the width of the terminal, or `None` if lines are not cut.
    ask_width: fn() -> Option<usize>,
    width: Option<usize>,
    full: bool,
    columns: Columns,
    /// The date that was shown last.
    date: String,
    /// True if the columns have changed since the heading was shown, so that it must be shown again.
    needs_heading: bool,
    line: Line,
    /// The name of each ring, and the number of its events that had been overwritten before the watch began. One
    /// message shows their sum, because there may be many shards.
    before: Vec<(String, u64)>,
    /// The noun for what began after these events.
    began: &'static str,
}

/// Makes a printer to stdout. A terminal that cannot keep up with live rings leaves events out.
pub(super) fn to_stdout(rings: &Rings, full: bool, clock: TimeFormat) -> io::Result<Box<dyn Printer>> {
    let ask_width: fn() -> Option<usize> = if full { || None } else { || columns(&io::stdout()) };
    if io::stdout().is_terminal() && !rings.are_captured() {
        let to = BufWriter::with_capacity(1 << 13, Screen::start()?);
        let out = Out { to, is_plain: stdout().is_plain };
        let lines = Lines::new(out, ask_width, rings, full, clock);
        return Ok(Box::new(ScreenLines(lines)));
    }
    let Out { to, is_plain } = stdout();
    let out = Out { to: BufWriter::with_capacity(1 << 16, to.lock()), is_plain };
    Ok(Box::new(Lines::new(out, ask_width, rings, full, clock)))
}

/// Lines on a terminal that may be too slow.
struct ScreenLines(Lines<Out<BufWriter<Screen>>>);

impl ScreenLines {
    /// Says how much was left out, if the terminal takes events again.
    fn say_left_out(&mut self) -> io::Result<()> {
        let left_out = self.0.out.to.get_mut().takes_again();
        self.say(left_out)
    }

    fn say(&mut self, left_out: Option<(u64, f64)>) -> io::Result<()> {
        let lines = &mut self.0;
        let Some((count, per_second)) = left_out else { return Ok(()) };
        let text =
            format!("── {} not shown: {}/s are more than the terminal takes ──", events(count), rate(per_second));
        lines.line.push(WARNING, text);
        lines.end_line()
    }
}

impl Drop for ScreenLines {
    fn drop(&mut self) {
        // The terminal may have taken nothing until the end.
        let left_out = self.0.out.to.get_mut().take_left_out();
        let _ = self.say(left_out);
    }
}

impl Printer for ScreenLines {
    fn is_full(&self) -> bool {
        self.0.out.to.get_ref().is_full()
    }

    fn leaves_out(&mut self) -> io::Result<bool> {
        self.say_left_out()?;
        Ok(self.0.out.to.get_mut().leaves_out())
    }

    fn event(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()> {
        self.0.event(ring, entry)
    }

    fn gap(&mut self, ring: &Ring, gap: Gap) -> io::Result<()> {
        self.0.gap(ring, gap)
    }

    fn reopened(&mut self, ring: &Ring) -> io::Result<()> {
        self.0.reopened(ring)
    }

    fn flush(&mut self, rings: &Rings) -> io::Result<()> {
        self.say_left_out()?;
        self.0.flush(rings)
    }
}

impl<O: Write> Lines<O> {
    fn new(out: O, ask_width: fn() -> Option<usize>, rings: &Rings, full: bool, clock: TimeFormat) -> Self {
        let width = ask_width();
        let columns = Columns::new(rings, width);
        let (date, line, before) = (String::new(), Line::default(), Vec::new());
        let began = if rings.are_captured() { "capture" } else { "watch" };
        Self { out, clock, ask_width, width, full, columns, date, needs_heading: true, line, before, began }
    }

    /// Prints how many events of all rings had been overwritten before the watch began. (The JSON output has a line
    /// for each ring instead.)
    fn say_before(&mut self) -> io::Result<()> {
        let of = match self.before.as_slice() {
            [] => return Ok(()),
            [(label, _)] if self.columns.ring.is_some() => format!(" of {label}"),
            [_] => String::new(),
            several => format!(" of {} rings", several.len()),
        };
        let count = self.before.drain(..).fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        self.line
            .push(DIM, format!("── {}{of} had been overwritten before the {} began ──", events(count), self.began));
        self.end_line()
    }

    /// Shows the date if it has changed, and the heading if the columns have changed.
    fn headings(&mut self, epoch_nanos: u64) -> io::Result<()> {
        let date = self.clock.date(epoch_nanos);
        if date != self.date {
            self.line.push(DIM, format!("── {date} ──"));
            self.end_line()?;
            self.date = date;
        }
        if !std::mem::take(&mut self.needs_heading) {
            return Ok(());
        }
        let columns = &self.columns;
        let left = |width: Option<usize>, head: &str| width.map_or(String::new(), |width| format!("{head:<width$}  "));
        let right = |width: Option<usize>, head: &str| width.map_or(String::new(), |width| format!("{head:>width$}  "));
        let heads = [
            left(Some(columns.time()), "TIME"),
            left(columns.ring, RING_HEADING),
            right(columns.seqno, "SEQNO"),
            left(Some(columns.event), "EVENT"),
            right(columns.block, "BLOCK"),
            right(columns.block.and(Some(4)), "TXN"),
            right(columns.has_account.then_some(4), "ACCT"),
            left(columns.thread, "THREAD"),
            right(columns.span, "SPAN"),
            right(columns.has_bytes.then_some(7), "BYTES"),
        ];
        self.line.push(DIM, heads.concat() + "PAYLOAD");
        self.end_line()
    }

    fn columns(&mut self, ring: &Ring, event: &Descriptor, record: Option<&PerfRecord>, tags: Option<&Tags>) {
        let (line, columns) = (&mut self.line, &mut self.columns);
        let time = self.clock.time(event.record_epoch_nanos);
        line.push(DIM, format!("{}  ", time.get(..columns.time()).unwrap_or(&time)));
        if let Some(width) = columns.ring {
            let label = &ring.label;
            // If a path does not fit, only its last part is shown: the file name distinguishes the rings.
            let label =
                if label.chars().count() > width { label.rsplit('/').next().unwrap_or_default() } else { label };
            let label: String = label.chars().take(width).collect();
            line.push(DIM, format!("{label:<width$}  "));
        }
        if let Some(width) = &mut columns.seqno {
            let seqno = event.seqno.to_string();
            line.push(PLAIN, format!("{seqno:>0$}  ", fit(width, &seqno)));
        }
        let known = ring.decoder.name(event.event_type);
        let name = known.map_or_else(|| format!("type {}", event.event_type), str::to_owned);
        line.push(paint::event_type(event.event_type, known), format!("{name:<0$}  ", fit(&mut columns.event, &name)));
        if let Some(width) = &mut columns.block {
            let [block, txn] = tags.map_or([""; 2], |tags| [&tags.block, &tags.txn]);
            line.push(DIM, format!("{block:>0$}  {txn:>4}  ", fit(width, block)));
        }
        if columns.has_account {
            line.push(DIM, format!("{:>4}  ", tags.map_or("", |tags| &tags.account)));
        }
        if let Some(width) = columns.thread {
            let thread = record.map(|record| crate::text::perf::thread_label(&record.thread)).unwrap_or_default();
            let thread: String = thread.chars().take(width).collect();
            line.push(DIM, format!("{thread:<width$}  "));
        }
        if let Some(width) = &mut columns.span {
            let span = match ring.span_id(event) {
                0 => NONE.to_owned(),
                span => span.to_string(),
            };
            line.push(PLAIN, format!("{span:>0$}  ", fit(width, &span)));
        }
        if columns.has_bytes {
            line.push(PLAIN, format!("{:>7}  ", event.payload_size));
        }
        // A value whose column was left out is shown in the payload.
        if let Some(tags) = tags {
            self.tag(self.columns.block.is_none(), "txn", &tags.txn);
            self.tag(!self.columns.has_account, "acct", &tags.account);
        }
    }

    fn tag(&mut self, is_wanted: bool, name: &str, tag: &str) {
        if is_wanted && tag != NONE {
            self.line.push(DIM, format!("{name}={tag} "));
        }
    }

    /// Shows the content of a perf event: its level, its name, its fields, and last its target, which is often long.
    /// The name of a log record is shown if the program has given it one. Its message is one of its fields.
    fn record(&mut self, record: &PerfRecord) {
        let site = perf::site(&record.content);
        if let Some(site) = site {
            let level = site.level.name().unwrap_or_default();
            self.line.push(paint::level(site.level), format!("{level:<5} "));
            if !matches!(record.content, PerfContent::Event { .. }) || has_own_name(site) {
                self.line.push(BOLD, format!("{} ", shown_name(&site.name)));
            }
        }
        let Value::Struct(said) = perf::value(record, false) else { return };
        for (name, value) in said {
            match value {
                Value::Struct(fields) if name == "fields" => self.fields(&fields),
                // These values have their own places in the line. A NaN stands for an unknown value and is not shown.
                _ if ["name", "target", "level", "parent", "kind"].contains(&name) => {}
                Value::F64(number) if number.is_nan() => {}
                value => self.fields(&[(name, value)]),
            }
        }
        if matches!(record.content, PerfContent::SpanNew { flags, .. } if flags & flags::SCOPE != 0) {
            self.line.push(DIM, "scope ".to_owned());
        }
        if let PerfContent::SpanNew { parent: Some(parent), .. } = &record.content {
            self.line.push(DIM, format!("parent={parent} "));
        }
        if let (None, Some(span)) = (self.columns.span, record.content.span()) {
            self.line.push(DIM, format!("span={span} "));
        }
        if let Some(site) = site.filter(|site| !site.target.is_empty()) {
            self.line.push(DIM, format!("{} ", site.target));
        }
    }

    fn fields(&mut self, fields: &[(&str, Value<'_>)]) {
        let (message, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == "message");
        if let Some((_, Value::Text(text))) = message.first() {
            self.line.push(PLAIN, format!("{text} "));
        }
        for (name, value) in others {
            self.line.push(DIM, format!("{name}="));
            self.line.push(PLAIN, format!("{} ", shown(value, self.full)));
        }
    }

    fn payload(&mut self, value: &Value<'_>) {
        let shown = |value: &Value<'_>| shown(value, self.full);
        let Value::Struct(fields) = value else {
            if !matches!(value, Value::Bytes([])) {
                self.line.push(PLAIN, shown(value) + " ");
            }
            return;
        };
        for (name, value) in fields {
            let style = if *name == MALFORMED { WARNING } else { PLAIN };
            self.line.push(DIM, format!("{name}="));
            let value = match value {
                // Only the outermost struct is shown without braces, so this inner struct gets them.
                Value::Struct(_) => format!("{{{}}} ", shown(value)),
                _ => format!("{} ", shown(value)),
            };
            self.line.push(style, value);
        }
    }

    /// Shows the extension words that have names, each with its name. If a word without a name is not 0, also shows
    /// all words as numbers.
    fn words(&mut self, ring: &Ring, event: &Descriptor) {
        let mut unnamed = event.content_ext;
        for (index, word) in ring.words.iter() {
            unnamed[index] = 0;
            if let Some(value) = word.value(event.content_ext[index]).filter(|_| event.content_ext[index] != 0)
                && word.name() != "span"
            {
                self.line.push(DIM, format!("{}={value} ", word.name()));
            }
        }
        if unnamed != [0; 4] {
            let shown = if ring.words.has_span() { &event.content_ext[..3] } else { &event.content_ext[..] };
            self.line.push(DIM, format!("ext={shown:?} "));
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.write(&mut self.out, self.width)?;
        self.out.write_all(b"\n")
    }
}

/// The most characters of the text of bytes that are shown, unless all shall be.
const TEXT_MAX: usize = 64;

/// Returns a value for people. Bytes that are text are shown as text, too.
fn shown(value: &Value<'_>, full: bool) -> String {
    let mut shown = if full { format!("{value:#}") } else { value.to_string() };
    if let Value::Bytes(bytes) = value
        && let Ok(text) = std::str::from_utf8(bytes)
        && text.chars().count() >= 2
        && !text.chars().any(char::is_control)
    {
        let is_cut = !full && text.chars().count() > TEXT_MAX;
        let text: String = text.chars().take(if is_cut { TEXT_MAX } else { usize::MAX }).collect();
        shown.push_str(&format!(" {text:?}{}", if is_cut { "…" } else { "" }));
    }
    shown
}

impl<O: Write> Printer for Lines<O> {
    fn event(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()> {
        let Some((event, payload)) = entry.event() else { return Ok(()) };
        self.say_before()?;
        self.headings(event.record_epoch_nanos)?;
        let record = entry.decoded();
        let tags = ring.is_exec.then(|| Tags::new(event, ring.block_number(event, payload)));
        self.columns(ring, event, record.as_ref(), tags.as_ref());
        if let Some(record) = &record {
            self.record(record);
            return self.end_line();
        }
        if !ring.is_exec {
            self.words(ring, event);
        }
        match payload {
            PayloadRead::Valid(payload) => self.payload(&ring.decoder.decode(event.event_type, payload)),
            PayloadRead::Expired => self.line.push(WARNING, "the payload was overwritten before it was read ".into()),
            PayloadRead::Malformed => self.line.push(WARNING, "the payload is larger than the ring: damaged ".into()),
        }
        let span = ring.span_id(event);
        if self.columns.span.is_none() && span != 0 {
            self.line.push(DIM, format!("span={span} "));
        }
        if let Some(tags) = tags {
            self.tag(self.columns.block.is_none(), "block", &tags.block);
        }
        self.end_line()
    }

    fn gap(&mut self, ring: &Ring, gap: Gap) -> io::Result<()> {
        if gap.cause == GapCause::OverwrittenBefore {
            // A cursor may report the events from before the watch as two gaps, if a fast writer overwrites more of
            // them meanwhile. So the counts of a ring's gaps are added up.
            match self.before.iter_mut().find(|(label, _)| *label == ring.label) {
                Some((_, count)) => *count = count.saturating_add(gap.count),
                None => self.before.push((ring.label.clone(), gap.count)),
            }
            return Ok(());
        }
        // A filter leaves gaps all over. A note at the end has their sum.
        if gap.cause == GapCause::Filtered {
            return Ok(());
        }
        self.say_before()?;
        let of = if self.columns.ring.is_some() { format!(" of {}", ring.label) } else { String::new() };
        let (first, last) = (gap.first_seqno, gap.first_seqno.saturating_add(gap.count.saturating_sub(1)));
        let is_one = gap.count == 1;
        if gap.cause == GapCause::NeverOpened {
            let are = if is_one { "is" } else { "are" };
            let text = format!("── {}{of} {are} missing: a shard could not be opened ──", events(gap.count));
            self.line.push(WARNING, text);
            return self.end_line();
        }
        if !gap.is_loss() {
            let text = match is_one {
                true => format!("── the number {first}{of} stands for no event ──"),
                false => format!("── the numbers {first} to {last}{of} stand for no event ──"),
            };
            self.line.push(DIM, text);
            return self.end_line();
        }
        let why = match gap.cause {
            GapCause::Overwritten if is_one => "overwritten before it was read",
            GapCause::Overwritten => "overwritten before they were read",
            GapCause::NeverCommitted => "reserved and never committed",
            GapCause::Damaged => "in a damaged part of the file",
            _ => "lost",
        };
        let text = match is_one {
            true => format!("── event {first}{of} is missing: {why} ──"),
            false => format!("── {} events{of} are missing, {first} to {last}: {why} ──", grouped(gap.count)),
        };
        self.line.push(WARNING, text);
        self.end_line()
    }

    fn reopened(&mut self, _: &Ring) -> io::Result<()> {
        // The caller prints the message about the new ring on stderr. So nothing goes to stdout here.
        Ok(())
    }

    fn flush(&mut self, rings: &Rings) -> io::Result<()> {
        self.say_before()?;
        // The terminal may have another size now, and shards may have been added. So the columns are chosen again.
        self.width = (self.ask_width)();
        let columns = Columns::new(rings, self.width);
        if !columns.has_those_of(&self.columns) {
            self.columns = columns;
            self.needs_heading = true;
        }
        self.out.flush()
    }
}

/// The block, transaction and account of an execution event. The block is its number if it is known, and otherwise `#`
/// and the seqno of its BLOCK_START.
struct Tags {
    block: String,
    txn: String,
    account: String,
}

/// The content of an empty column.
const NONE: &str = "–";

impl Tags {
    fn new(event: &Descriptor, block_number: Option<u64>) -> Self {
        let tags = FlowTags::from_ext(event.content_ext);
        let has_account = event.event_type == ExecEvent::StorageAccess as u16 || tags.account_index != 0;
        let shown = |is_there: bool, tag: u64| if is_there { tag.to_string() } else { NONE.to_owned() };
        Self {
            block: match block_number {
                Some(number) => number.to_string(),
                None if tags.block_seqno != 0 => format!("#{}", tags.block_seqno),
                None => NONE.to_owned(),
            },
            txn: shown(tags.txn_index.is_some(), tags.txn_index.unwrap_or(0)),
            account: shown(has_account, tags.account_index),
        }
    }
}

/// A line under construction.
#[derive(Default)]
struct Line {
    parts: Vec<(Style, String)>,
}

impl Line {
    fn push(&mut self, style: Style, text: String) {
        self.parts.push((style, text));
    }

    /// Writes at most `width` characters of the line, or all of them if `width` is `None`. Then empties the line.
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

/// Returns true if the program has given the log record a name, as in `info!(name: "NAME", …)`. Otherwise `tracing`
/// makes a name from file and line, and all records of the `log` crate have the same name.
fn has_own_name(site: &CallSite) -> bool {
    !site.name.starts_with("event ") && site.name != "log event"
}

#[cfg(test)]
mod tests;
