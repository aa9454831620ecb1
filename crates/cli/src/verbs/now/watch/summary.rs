//! The summary at the end of a watch.

use super::rings::Rings;
use crate::input::ring::state::end_in_words;
use crate::text::format::{TimeFormat, columns, duration, events, grouped};
use crate::text::paint::{BREAK, DIM, PLAIN, WARNING, seen_chars};
use eventring::reader::{Gap, GapCause, PayloadRead, RingEnd, RingState};
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Instant;

/// The reason of the end if the user has stopped the watch.
pub(super) const STOPPED: &str = "stopped";

/// The counts of a watch.
pub(super) struct WatchSummary {
    since: Instant,
    pub(super) shown: u64,
    /// The number of events that were recorded before the place at which the watch was to begin.
    pub(super) earlier: u64,
    not_selected: u64,
    /// The number of events that were more than the terminal could take.
    not_shown: u64,
    /// The number of events that were not shown, because they only describe call sites and threads.
    descriptions: u64,
    /// Events that had been overwritten before the watch began.
    overwritten_before: u64,
    lost: u64,
    /// The number of seqnos that writers skipped. A seqno that was skipped never had an event, so it is no loss.
    skipped: u64,
    /// Events without payload that are shown, or are not because the selection depends on it.
    expired: u64,
    /// The reason why the watch was stopped although more events may come. `None` if it was not stopped.
    reason: Option<&'static str>,
    /// True if the watch waits for new rings. It cannot know of a ring that was made and removed between two looks.
    reopens: bool,
}

impl WatchSummary {
    pub(super) fn new(since: Instant, reopens: bool) -> Self {
        Self {
            since,
            shown: 0,
            earlier: 0,
            not_selected: 0,
            not_shown: 0,
            descriptions: 0,
            overwritten_before: 0,
            lost: 0,
            skipped: 0,
            expired: 0,
            reason: None,
            reopens,
        }
    }

    pub(super) fn event(&mut self, payload: &PayloadRead<'_>) {
        self.shown += 1;
        self.expired += u64::from(payload.valid().is_none());
    }

    /// Counts events that are not selected because their payload was lost.
    pub(super) fn untested(&mut self, count: u64) {
        self.expired += count;
    }

    /// Counts an event that is not selected. Returns the number of such events.
    pub(super) fn not_selected(&mut self) -> u64 {
        self.not_selected += 1;
        self.not_selected
    }

    /// Counts the events, of all of a capture, that its reader has not selected.
    pub(super) fn selected_of(&mut self, all: u64) {
        self.not_selected = all.saturating_sub(self.shown + self.not_shown + self.descriptions);
    }

    pub(super) fn not_shown(&mut self) {
        self.not_shown += 1;
    }

    pub(super) fn description(&mut self) {
        self.descriptions += 1;
    }

    pub(super) fn gap(&mut self, gap: Gap) {
        let count = match gap.cause {
            GapCause::OverwrittenBefore => &mut self.overwritten_before,
            // The note about the filter of the capture has them.
            GapCause::Filtered => return,
            _ if gap.is_loss() => &mut self.lost,
            _ => &mut self.skipped,
        };
        *count = count.saturating_add(gap.count);
    }

    /// Notes that no more events shall be shown.
    pub(super) fn complete(&mut self, reason: &'static str) {
        self.reason = Some(reason);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.reason.is_some()
    }

    /// Returns true if an event came, shown or not.
    pub(super) fn has_seen_events(&self) -> bool {
        self.shown > 0 || self.not_selected > 0 || self.descriptions > 0
    }

    /// Returns the number of events that were lost or came without their payload.
    pub(super) fn lost(&self) -> u64 {
        self.lost.saturating_add(self.expired)
    }

    /// Prints the summary to stderr.
    pub(super) fn print(&self, rings: &Rings) {
        if self.reason == Some(STOPPED) && std::io::stderr().is_terminal() {
            // After Ctrl-C, the terminal shows `^C`. This line break makes the summary begin on a new line.
            say!();
        }
        let mut parts = vec![format!("{} shown", events(self.shown))];
        let counts = [
            (self.earlier, PLAIN, "before them not shown"),
            (self.not_selected, PLAIN, "not selected"),
            (self.not_shown, WARNING, "more than the terminal takes"),
            (self.descriptions, PLAIN, "of call sites and threads left out"),
            (self.overwritten_before, PLAIN, "overwritten before"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        parts.extend(counts.map(|(count, style, what)| format!("{style}{} {what}{style:#}", grouped(count))));
        parts.push(match self.lost {
            0 if rings.check_whole().is_err() => format!("{WARNING}the rest lost{WARNING:#}"),
            // Events that were overwritten before the watch began are lost, too, but they do not count here. So the
            // text says "since".
            0 if self.overwritten_before > 0 => "none lost since".to_owned(),
            0 if self.reopens => "none lost in the rings that were seen".to_owned(),
            0 => "none lost".to_owned(),
            lost => format!("{WARNING}{} lost{WARNING:#}", grouped(lost)),
        });
        if self.skipped > 0 {
            let numbers = if self.skipped == 1 { "number" } else { "numbers" };
            parts.push(format!("{} {numbers} without an event", grouped(self.skipped)));
        }
        if self.expired > 0 {
            parts.push(format!("{WARNING}{} without payload{WARNING:#}", grouped(self.expired)));
        }
        parts.push(duration(self.since.elapsed()));
        let end = format!("{DIM}· {}{DIM:#}", self.reason.map_or_else(|| end(rings), str::to_owned));
        say!("{DIM}──{DIM:#} {}", lines(&parts, &end, columns(&std::io::stderr())));
    }
}

/// Returns a text about how the rings ended.
fn end(rings: &Rings) -> String {
    if rings.are_captured() {
        return "end of the capture".to_owned();
    }
    let readers = rings.iter().filter_map(|ring| ring.reader.as_ref());
    let ends: Vec<_> = readers.map(|reader| (reader.state(), reader.path().is_some_and(Path::exists))).collect();
    let noticed = rings.iter().filter_map(|ring| ring.reader.as_ref()?.end()).reduce(RingEnd::and);
    let death = noticed.map_or_else(|| "died".to_owned(), |end| end_in_words(end, &TimeFormat::new(false)));
    let is_there = ends.iter().all(|(_, is_there)| *is_there);
    let words = match ends.first().map(|(state, _)| *state) {
        Some(first) if ends.iter().all(|(other, _)| *other == first) => match (first, is_there) {
            (RingState::Live | RingState::Unknown, _) => STOPPED,
            (RingState::Ended, true) => "ended by its program",
            (RingState::Ended, false) => "ended and removed by its program",
            (RingState::WriterDied, true) => return format!("its program {death}; the ring is left"),
            (RingState::WriterDied, false) => return format!("its program {death}; the ring was removed"),
            (RingState::Saved, _) => "end of the snapshot",
            (RingState::Truncated, _) => "the file was truncated",
            (RingState::NoMemory | RingState::Unreadable, _) => "the file could not be read",
        },
        _ if ends.iter().any(|(state, _)| *state == RingState::WriterDied) => {
            "all rings have ended; not all programs in good order"
        }
        _ => "all rings have ended",
    };
    words.to_owned()
}

/// The indent of each line.
const INDENT: usize = 3;

/// Joins the parts with commas, adds `end`, and breaks the text into lines that fit a terminal of this width. The
/// first line leaves room for a prefix of [`INDENT`] characters. The other lines are indented by as many blanks.
fn lines(parts: &[String], end: &str, width: Option<usize>) -> String {
    let last = parts.len().saturating_sub(1);
    let pieces =
        parts.iter().enumerate().map(|(index, part)| if index < last { format!("{part},") } else { part.clone() });
    let mut out = String::new();
    let mut column = INDENT;
    for piece in pieces.chain([end.to_owned()]) {
        let piece_width = seen_chars(&piece);
        if column > INDENT {
            if width.is_some_and(|width| column + 1 + piece_width > width) {
                out.push(BREAK);
                out.push_str(&" ".repeat(INDENT));
                column = INDENT;
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(&piece);
        column += piece_width;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::out;
    use std::io::Write as _;

    #[test]
    fn a_summary_takes_as_many_lines_as_the_terminal_is_narrow() {
        let parts = ["3 events shown".to_owned(), format!("{WARNING}1,234 lost{WARNING:#}"), "1.2 s".to_owned()];
        let end = format!("{DIM}· its program died; the ring is left{DIM:#}");
        let shown = |width| out::shown(|out| write!(out, "{}", lines(&parts, &end, width)));
        let whole = "3 events shown, 1,234 lost, 1.2 s · its program died; the ring is left";
        assert_eq!(shown(None), whole);
        assert_eq!(shown(Some(INDENT + whole.chars().count())), whole);
        let two = "3 events shown, 1,234 lost, 1.2 s\n   · its program died; the ring is left";
        assert_eq!(shown(Some(INDENT + whole.chars().count() - 1)), two);
        assert_eq!(shown(Some(40)), two);
        let four = "3 events shown,\n   1,234 lost,\n   1.2 s\n   · its program died; the ring is left";
        assert_eq!(shown(Some(1)), four);
    }
}
