//! The open spans for people.

use super::locks;
use super::stacks::ThreadStacks;
use super::tree::{OpenNode, OpenTree};
use crate::input::ring::state::end_in_words;
use crate::text::format::{TimeFormat, bytes, counted, duration, grouped, rate, shown_name};
use crate::text::paint::{BOLD, DIM, PLAIN, WARNING};
use crate::text::perf::{field_value, thread_label};
use crate::text::table::shortened_end;
use eventring::reader::RingEnd;
use eventring_capture::numbers::time;
use eventring_export::{SharedNames, TimeSummary};
use eventring_live::{LiveState, OpenSpan, RecordedProgram, SeriesKind};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The number of neighbours of one shape that are shown.
const ALIKE_MAX: usize = 10;
/// The depth from which on lines are not indented any further.
const DEPTH_MAX: usize = 20;
/// The widths of the columns before the span.
pub(super) const AGE_WIDTH: usize = 12;
const THREAD_WIDTH: usize = 15;
const NO_THREAD: &str = "in no thread";

/// A screen of open spans: the spans, and how they are drawn.
pub(super) struct OpenScreen<'s, 't> {
    pub(super) state: LiveState<'s>,
    pub(super) tree: &'t OpenTree<'s>,
    pub(super) stacks: &'t ThreadStacks,
    /// The width at which lines are cut; `None` if they are not.
    pub(super) columns: Option<usize>,
    /// The largest number of lines.
    pub(super) rows: Option<usize>,
    pub(super) shows_all: bool,
    /// True if the spans that may have been closed are shown one by one.
    pub(super) shows_perhaps: bool,
    pub(super) time: &'t TimeFormat,
}

/// The neighbours of one shape that are not shown.
struct Hidden {
    spans: u64,
    inner: u64,
    youngest_nanos: u64,
    oldest_nanos: u64,
    name: String,
    may_have_closed: bool,
    depth: usize,
}

impl OpenScreen<'_, '_> {
    /// Returns the lines.
    pub(super) fn draw(&self) -> Vec<String> {
        let mut lines = self.head();
        let is_summed = |node: &OpenNode| node.is_doubtful && !self.shows_perhaps;
        let summed = self.tree.nodes.iter().filter(|node| is_summed(node)).count();
        if self.tree.nodes.len() == summed {
            lines.extend(self.perhaps(summed, false));
            lines.extend(self.locks());
            return self.fit(lines);
        }
        let has_several = self.state.programs().len() > 1;
        let mut program = None;
        let mut at = 0;
        // The spans of each shape among the neighbours at each depth: how many were shown, and those that were not.
        let mut alike: Vec<BTreeMap<u64, (usize, Option<Hidden>)>> = Vec::new();
        if !has_several {
            lines.push(titles());
        }
        while let Some(node) = self.tree.nodes.get(at) {
            if is_summed(node) {
                at += 1;
                continue;
            }
            let (span, depth) = (self.tree.span(node), node.depth as usize);
            let index = span.program_index();
            if has_several && program != Some(index) {
                self.close(&mut alike, 0, &mut lines);
                let end = self.state.end_of(index).map(|end| format!(" {DIM}{}{DIM:#}", end_in_words(end, self.time)));
                let name = program_name(span.program());
                lines.push(format!("{BOLD}{name}{BOLD:#}{}", end.unwrap_or_default()));
                lines.push(titles());
            }
            program = Some(index);
            self.close(&mut alike, depth + 1, &mut lines);
            if alike.len() <= depth {
                alike.resize_with(depth + 1, BTreeMap::new);
            }
            let (shown, hidden) = alike[depth].entry(node.shape).or_default();
            if self.shows_all || *shown < ALIKE_MAX {
                *shown += 1;
                lines.push(self.line(node));
                at += 1;
                let left = AGE_WIDTH + 2 + THREAD_WIDTH + 2 + indent(depth + 1).chars().count();
                let room = self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(left).max(1));
                let next = self.tree.nodes.get(at).map(|node| self.tree.span(node));
                lines.extend(self.stacks.lines(&span, next.as_ref(), room, left));
            } else {
                hide(hidden, node, self.tree);
                at += 1 + node.inner as usize;
            }
        }
        self.close(&mut alike, 0, &mut lines);
        lines.extend(self.perhaps(summed, true));
        lines.extend(self.locks());
        self.fit(lines)
    }

    /// Returns lines about the threads that wait for locks, as wide as they are: names come last in them.
    fn locks(&self) -> Vec<String> {
        locks::lines(&self.state.thread_locks())
    }

    /// Returns the line for the spans that may have been closed, unless they are shown one by one.
    fn perhaps(&self, count: usize, has_others: bool) -> Option<String> {
        let more = if has_others { " more" } else { "" };
        let spans = counted(count as u64, &format!("span{more}"), &format!("spans{more}"));
        let text = format!("… and perhaps {spans}: events were lost since they were last seen; --perhaps shows them");
        let text = text.strip_prefix("… and ").filter(|_| !has_others).unwrap_or(&text);
        (count > 0).then(|| format!("{DIM}{}{DIM:#}", self.fitting(text, 0)))
    }

    /// Adds lines for the hidden spans of this depth and of greater depths, whose neighbours have all come.
    fn close(&self, alike: &mut Vec<BTreeMap<u64, (usize, Option<Hidden>)>>, depth: usize, lines: &mut Vec<String>) {
        while alike.len() > depth {
            let hidden = alike.pop().into_iter().flatten().filter_map(|(_, (_, hidden))| hidden);
            let mut hidden: Vec<Hidden> = hidden.collect();
            hidden.sort_by_key(|hidden| (hidden.may_have_closed, std::cmp::Reverse(hidden.oldest_nanos)));
            lines.extend(hidden.iter().map(|hidden| self.rest(hidden)));
        }
    }

    fn head(&self) -> Vec<String> {
        let count = self.tree.nodes.len() as u64;
        let of = match self.state.programs() {
            [program] => format!("{}: ", program_name(program)),
            _ => String::new(),
        };
        let at = self.time.date_and_time(self.state.now_epoch_nanos());
        let ends: Vec<RingEnd> = (0..self.state.programs().len()).filter_map(|it| self.state.end_of(it)).collect();
        let when = match *ends {
            [end] if self.state.programs().len() == 1 => {
                let were = if count == 1 { "was" } else { "were" };
                format!("{were} open when the program {}", end_in_words(end, self.time))
            }
            [] => format!("open at {at}"),
            _ => format!("open at {at}, or when their program ended"),
        };
        let perhaps = self.tree.nodes.iter().filter(|node| node.may_have_closed).count() as u64;
        let spans = match (count - perhaps, perhaps) {
            (0, 0) => "no spans".to_owned(),
            (0, _) => format!("perhaps {}", counted(perhaps, "span", "spans")),
            (surely, 0) => counted(surely, "span", "spans"),
            (surely, _) => format!("{} and perhaps {} more", counted(surely, "span", "spans"), grouped(perhaps)),
        };
        let bold = self.fitting(&format!("{of}{spans}"), 0);
        let dim = self.fitting(&when, bold.chars().count() + 1);
        let mut lines = vec![format!("{BOLD}{bold}{BOLD:#} {DIM}{dim}{DIM:#}")];
        if !self.state.have_span_rings() {
            lines.extend(self.typed());
        }
        let not_tracked = self.state.not_tracked();
        if not_tracked > 0 {
            let spans = counted(not_tracked, "span", "spans");
            let warning = self.fitting(&format!("{spans} more are open that could not be kept"), 0);
            lines.push(format!("{WARNING}{warning}{WARNING:#}"));
        }
        if self.tree.has_older {
            let older = self.fitting("> older than what the rings still hold: the beginning is overwritten", 0);
            lines.push(format!("{DIM}{older}{DIM:#}"));
        }
        if self.tree.has_ended {
            let least = self.fitting("≥ at least this old: until the last sign of life of the program", 0);
            lines.push(format!("{DIM}{least}{DIM:#}"));
        }
        if self.tree.nodes.iter().any(|node| node.may_have_closed && (self.shows_perhaps || !node.is_doubtful)) {
            let closed = self.fitting("? may have been closed: events were lost since it was last seen", 0);
            lines.push(format!("{DIM}{closed}{DIM:#}"));
        }
        lines
    }

    /// Returns lines about programs that record only typed events: what they have recorded in the last seconds.
    fn typed(&self) -> Vec<String> {
        let mut lines =
            vec![self.fitting("typed events have no end, so none is open; these came in the last seconds:", 0)];
        let series = self.state.series().filter(|series| series.kind() == SeriesKind::Events);
        let mut types: Vec<_> = series.map(|it| (it.window(0), it.name(), it.target())).collect();
        types.retain(|(stats, ..)| stats.count() > 0);
        types.sort_by_key(|(stats, name, content)| (std::cmp::Reverse(stats.count()), *name, *content));
        let shared = SharedNames::from_names(types.iter().map(|(_, name, content)| (*name, *content)));
        for (stats, name, content) in types {
            let name = shared.shown(name, content);
            let (per_second, payload) = (rate(stats.per_second()), bytes(stats.payload_bytes()));
            let text =
                format!("{:>12}  {per_second:>10}/s  {payload:>10}  {}", grouped(stats.count()), shown_name(&name));
            lines.push(self.fitting(&text, 0));
        }
        if lines.len() == 1 {
            lines[0] = self.fitting("typed events have no end, so none is open; none came in the last seconds", 0);
        }
        lines
    }

    /// Cuts a text so that it fits into the line, of which this number of columns is used.
    fn fitting(&self, text: &str, used: usize) -> String {
        self.columns.map_or(text.to_owned(), |columns| shortened_end(text, columns.saturating_sub(used)))
    }

    fn line(&self, node: &OpenNode) -> String {
        let span = &self.tree.span(node);
        let thread = threads(span, THREAD_WIDTH);
        let dim = if thread.is_some() { PLAIN } else { DIM };
        let thread = thread.unwrap_or_else(|| NO_THREAD.to_owned());
        let indent = indent(node.depth as usize);
        let name = shown_name(&self.tree.shared.shown(&span.name(), span.target()));
        let fields = fields(span) + &times(span);
        let left = AGE_WIDTH + 2 + THREAD_WIDTH + 2;
        let room = self.columns.map(|columns| columns.saturating_sub(left).max(1));
        let whole = format!("{indent}{name}{fields}");
        let shown = room.map_or(whole.clone(), |room| shortened_end(&whole, room));
        // The name stands out, and the rest is cut behind it.
        let (bold, rest) = match shown.strip_prefix(&format!("{indent}{name}")) {
            Some(rest) => (format!("{indent}{BOLD}{name}{BOLD:#}"), rest.to_owned()),
            None => (shown, String::new()),
        };
        format!(
            "{:>AGE_WIDTH$}  {dim}{thread:<THREAD_WIDTH$}{dim:#}  {bold}{rest}",
            age(span.age_nanos(), span.is_opened_before_window(), span.age_max_nanos(), node.may_have_closed)
        )
    }

    fn rest(&self, hidden: &Hidden) -> String {
        let Hidden { spans, inner, youngest_nanos, oldest_nanos, name, may_have_closed, depth } = hidden;
        let [youngest, oldest] = [youngest_nanos, oldest_nanos].map(|nanos| duration(Duration::from_nanos(*nanos)));
        let ages = if youngest == oldest { youngest } else { format!("{youngest} to {oldest}") };
        let within = if *inner > 0 { format!(" with {} in them", grouped(*inner)) } else { String::new() };
        let noun = if *spans == 1 { "span" } else { "spans" };
        let perhaps = if *may_have_closed { "perhaps " } else { "" };
        let count = grouped(*spans);
        let text = format!("{}… and {perhaps}{count} more `{name}` {noun}{within}, {ages} old", indent(*depth));
        let left = AGE_WIDTH + 2 + THREAD_WIDTH + 2;
        // A text that is too wide for the place of the names begins further left.
        let start = match self.columns {
            Some(columns) => left.min(columns.saturating_sub(text.chars().count())),
            None => left,
        };
        let text = self.fitting(&text, 0);
        format!("{:start$}{DIM}{text}{DIM:#}", "")
    }

    /// Cuts the lines at the height of the terminal.
    fn fit(&self, mut lines: Vec<String>) -> Vec<String> {
        if let Some(rows) = self.rows
            && lines.len() > rows
        {
            let more = lines.len() - rows + 1;
            lines.truncate(rows.saturating_sub(1));
            lines.push(format!("{DIM}… and {} more lines{DIM:#}", grouped(more as u64)));
        }
        lines
    }
}

fn titles() -> String {
    format!("{DIM}{:>AGE_WIDTH$}  {:<THREAD_WIDTH$}  span{DIM:#}", "age", "thread")
}

fn hide(hidden: &mut Option<Hidden>, node: &OpenNode, tree: &OpenTree<'_>) {
    let (span, age_nanos) = (tree.span(node), tree.age_nanos(node));
    let hidden = hidden.get_or_insert_with(|| Hidden {
        spans: 0,
        inner: 0,
        youngest_nanos: age_nanos,
        oldest_nanos: age_nanos,
        name: shown_name(&tree.shared.shown(&span.name(), span.target())),
        may_have_closed: node.may_have_closed,
        depth: node.depth as usize,
    });
    hidden.spans += 1;
    hidden.inner += u64::from(node.inner);
    hidden.youngest_nanos = hidden.youngest_nanos.min(age_nanos);
    hidden.oldest_nanos = hidden.oldest_nanos.max(age_nanos);
}

/// Returns the name of a program with its pid.
pub(crate) fn program_name(program: &RecordedProgram) -> String {
    let name = if program.name.is_empty() { "unknown program" } else { &program.name };
    match program.pid {
        0 => name.to_owned(),
        pid => format!("{name} (pid {pid})"),
    }
}

/// Returns an age, with a mark if it is not the whole age, and one if the span may have been closed.
pub(crate) fn age(nanos: u64, is_opened_before_window: bool, max_nanos: Option<u64>, may_have_closed: bool) -> String {
    let older = match (is_opened_before_window, max_nanos) {
        (true, _) => "> ",
        (false, Some(_)) => "≥ ",
        (false, None) => "",
    };
    let closed = if may_have_closed { "? " } else { "" };
    format!("{closed}{older}{}", duration(Duration::from_nanos(nanos)))
}

/// Returns the thread that has entered a span last, and how many others are in it, in so many columns: `worker-1 +2`.
/// Returns `None` if no thread is in it.
pub(crate) fn threads(span: &OpenSpan<'_>, width: usize) -> Option<String> {
    let threads = span.threads();
    let (last, others) = threads.split_last()?;
    let others = if others.is_empty() { String::new() } else { format!(" +{}", grouped(others.len() as u64)) };
    let name = shortened_end(&thread_label(last), width.saturating_sub(others.len()));
    Some(name + &others)
}

fn indent(depth: usize) -> String {
    match depth.checked_sub(DEPTH_MAX) {
        None | Some(0) => "  ".repeat(depth),
        Some(_) => format!("{}{depth}» ", "  ".repeat(DEPTH_MAX)),
    }
}

/// Returns how threads have spent the time in the span so far, or nothing if it was not measured.
fn times(span: &OpenSpan<'_>) -> String {
    let Some(times) = span.times() else { return String::new() };
    let times = TimeSummary::from(times);
    let parts = times.parts().into_iter().filter(|(_, nanos)| *nanos > 0);
    let about = if times.is_estimated { "~" } else { "" };
    let parts = parts.map(|(name, nanos)| format!("{name} {about}{}", time(nanos)));
    format!(" [{}]", parts.collect::<Vec<_>>().join(", "))
}

/// Returns the fields in braces, or nothing if there are none.
fn fields(span: &OpenSpan<'_>) -> String {
    let (mut text, fields) = (String::new(), span.fields());
    for (name, field) in fields.known().iter() {
        let before = if text.is_empty() { " {" } else { " " };
        let name = if name.is_empty() { "?" } else { name };
        // Writing to a string cannot fail.
        let _ = write!(text, "{before}{name}={}", field_value(&field.to_value()));
    }
    if fields.are_missing() {
        text.push_str(if text.is_empty() { " {…" } else { " …" });
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::schema::EventPayload as _;
    use eventring::schema::perf::{PerfEvent, PerfExt, ThreadTime};
    use eventring_live::LiveOptions;
    use eventring_live::fixture::{START, StreamFixture};

    #[test]
    fn an_open_span_says_how_its_thread_spent_the_time_if_that_was_measured() {
        let said = |is_measured: bool, merged: u32| {
            let mut stream = StreamFixture::new(&LiveOptions::new());
            stream.call_site(1, "query");
            let ext = PerfExt::of_span(1, 1);
            let times = |stream: &mut StreamFixture, times: ThreadTime, nanos| {
                times.with_bytes(|bytes| stream.quiet(nanos, PerfEvent::ThreadTime, PerfExt::of_span(0, 0), bytes));
            };
            let since = ThreadTime { since_epoch_nanos: START, ..ThreadTime::default() };
            if is_measured {
                times(&mut stream, since, START);
            }
            stream.quiet(START, PerfEvent::SpanNew, ext, &[]);
            stream.quiet(START, PerfEvent::SpanEnter, ext, &[]);
            if is_measured {
                let ran = ThreadTime { cpu_nanos: 1_000_000, voluntary_switches: 1, slices: 1, merged, ..since };
                times(&mut stream, ran, START + 4_000_000);
            }
            stream.tick(START + 10_000_000, &mut |_, _| ());
            let said: Vec<String> = stream.state().open_spans().to_vec().iter().map(self::times).collect();
            said.concat()
        };
        assert_eq!(said(false, 0), "");
        assert_eq!(said(true, 0), " [cpu 1.00 ms, sleep 3.00 ms, unmeasured 6.00 ms]");
        assert_eq!(said(true, 1), " [cpu ~1.00 ms, sleep ~3.00 ms, unmeasured ~6.00 ms]");
    }
}
