//! The columns of a line, and their widths. In a narrow terminal, columns are dropped until the payload has enough
//! room.

use super::rings::Rings;
use crate::text::table::column_width;

/// The smallest width of the column of event names. If all rings are perf rings, the column on a terminal starts with
/// this width. Otherwise it starts as wide as the longest event name of the rings. When a longer name is shown, the
/// column is widened.
const NAME_WIDTH: usize = 12;
/// The largest initial width of the column of event names on a terminal.
const NAME_WIDTH_MAX: usize = 16;
/// The width to which names of threads are cut. In a narrow terminal it is [`NARROW`] instead.
const THREAD_WIDTH: usize = 15;
/// The width to which names of threads and rings are cut in a narrow terminal.
const NARROW: usize = 11;
/// The initial width of the column of span ids. When a longer id is shown, the column is widened.
const SPAN_WIDTH: usize = 10;
/// The width of a time with nanoseconds, `03:04:05.123456789`.
const TIME_WIDTH: usize = 18;
/// The heading of the column of ring names.
pub(super) const RING_HEADING: &str = "RING";
/// The number of blanks between columns.
const GAP: usize = 2;

/// The columns of a line before the payload. Some values without a column are shown as a part of the payload. The
/// others are shown only with `--full`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Number of digits after the decimal point of the seconds.
    pub time_digits: usize,
    /// The width of the column of ring names, or `None` if the column is left out. The other optional widths mean the
    /// same for their columns.
    pub ring: Option<usize>,
    pub seqno: Option<usize>,
    pub event: usize,
    /// The width of the column of an execution event's block. If this column is left out, the column of the transaction
    /// is left out, too.
    pub block: Option<usize>,
    /// True if the account of execution events has a column.
    pub has_account: bool,
    pub thread: Option<usize>,
    pub span: Option<usize>,
    pub has_bytes: bool,
}

impl Columns {
    /// Makes the columns for a terminal of this width. If `width` is `None`, the output is no terminal. Then no column
    /// is left out, and all are wide enough to align the lines.
    pub(super) fn new(rings: &Rings, width: Option<usize>) -> Self {
        let has_exec = rings.iter().any(|ring| ring.is_exec);
        let has_perf = rings.iter().any(|ring| ring.is_perf);
        let names = rings.iter().map(|ring| ring.decoder.name_width());
        let labels = rings.iter().map(|ring| ring.label.chars().count());
        let label = labels.chain([RING_HEADING.len()]);
        let label = Some(column_width(label)).filter(|_| rings.has_several());
        let all = Self {
            time_digits: 9,
            ring: label,
            seqno: Some(11),
            event: names.max().unwrap_or(0).max(NAME_WIDTH),
            block: has_exec.then_some(11),
            has_account: has_exec,
            thread: has_perf.then_some(THREAD_WIDTH),
            span: has_perf.then_some(SPAN_WIDTH),
            has_bytes: true,
        };
        let Some(width) = width else { return all };
        let newest = rings.iter().map(|ring| ring.last_seqno()).max().unwrap_or(0);
        // The column is one digit wider than the newest seqno, because the seqnos grow while the watch runs.
        let digits = (newest.to_string().len() + 1).max(5);
        // In perf rings, only rare events have long names, so the column of names starts narrow.
        let name = if rings.iter().all(|ring| ring.is_perf) { NAME_WIDTH } else { all.event.min(NAME_WIDTH_MAX) };
        let fitted = Self { seqno: Some(digits), event: name, block: has_exec.then_some(digits), ..all };
        fitted.within(width, rings.are_of_one_name())
    }

    /// Narrows and removes columns, step by step, until nearly half of the line is left for the payload.
    fn within(mut self, width: usize, is_one_recorder: bool) -> Self {
        let room = width - width * 11 / 25;
        let steps: [fn(&mut Self, bool); 9] = [
            |columns, _| columns.has_bytes = false,
            |columns, _| columns.time_digits = 6,
            // This step removes the columns of shards and seqnos together. Each shard counts its own seqnos, so a
            // seqno means little if the line does not show its shard.
            |columns, is_one_recorder| {
                if is_one_recorder && columns.ring.is_some() {
                    (columns.ring, columns.seqno) = (None, None);
                }
            },
            |columns, _| columns.has_account = false,
            |columns, _| columns.ring = columns.ring.map(|width| width.min(NARROW)),
            |columns, _| columns.span = None,
            |columns, _| columns.thread = columns.thread.map(|width| width.min(NARROW)),
            |columns, _| columns.block = None,
            |columns, _| columns.seqno = None,
        ];
        for step in steps {
            if self.width() <= room {
                break;
            }
            step(&mut self, is_one_recorder);
        }
        self
    }

    /// Returns the width of a time.
    pub(super) fn time(&self) -> usize {
        TIME_WIDTH - (9 - self.time_digits)
    }

    /// Returns the number of characters before the payload.
    pub(super) fn width(&self) -> usize {
        let optional = [self.ring, self.seqno, self.block, self.thread, self.span];
        let optional: usize = optional.iter().flatten().map(|width| width + GAP).sum();
        let txn = if self.block.is_some() { 4 + GAP } else { 0 };
        let account = if self.has_account { 4 + GAP } else { 0 };
        let bytes = if self.has_bytes { 7 + GAP } else { 0 };
        self.time() + GAP + self.event + GAP + optional + txn + account + bytes
    }

    /// Returns true if `self` and `other` have the same columns, even if their widths differ.
    pub(super) fn has_those_of(&self, other: &Self) -> bool {
        let shape = |columns: &Self| {
            let Self { time_digits, ring, seqno, event: _, block, has_account, thread, span, has_bytes } = columns;
            let has = [ring, seqno, block, thread, span].map(Option::is_some);
            (*time_digits, has, *has_account, *has_bytes)
        };
        shape(self) == shape(other)
    }
}

/// Widens a column if `text` needs more room, up to the width that a column of a table has, and returns the column's
/// width. This line and the next ones are then aligned.
pub(super) fn fit(width: &mut usize, text: &str) -> usize {
    *width = (*width).max(column_width([text.chars().count()].into_iter()));
    *width
}
