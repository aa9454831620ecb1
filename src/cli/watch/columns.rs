//! The columns of a line and their widths. In a narrow terminal, columns are left out until the payload has enough
//! room.

use super::rings::Rings;

/// The width with which the column of event names begins, and the largest width with which it begins if the ring's
/// event names are long. A longer name widens the column when it is first shown.
const NAME_WIDTH: usize = 12;
const NAME_WIDTH_MAX: usize = 16;
/// The width to which names of threads are cut; in a narrow terminal it is [`NARROW`].
const THREAD_WIDTH: usize = 15;
/// The width to which names of threads and rings are cut if the line has little room.
const NARROW: usize = 11;
/// The width with which the column of span ids begins. A longer id widens the column.
const SPAN_WIDTH: usize = 10;
/// The width of a time with nanoseconds, `03:04:05.123456789`.
const TIME_WIDTH: usize = 18;
/// The number of blanks between columns.
const GAP: usize = 2;

/// The columns before the payload. A value that has no column is shown in the payload, or only with `--full`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Number of digits after the decimal point of the seconds.
    pub time_digits: usize,
    /// The width of the column of rings; `None` if the column is left out. The same holds for the other widths.
    pub ring: Option<usize>,
    pub seqno: Option<usize>,
    pub event: usize,
    /// The width of the column of the block and the transaction of execution events.
    pub block: Option<usize>,
    /// True if the account of execution events has a column.
    pub has_account: bool,
    pub thread: Option<usize>,
    pub span: Option<usize>,
    pub has_bytes: bool,
}

impl Columns {
    /// Makes the columns that fit a terminal of this width. Without a width the output is no terminal: all columns are
    /// there, wide enough to align the lines.
    pub(super) fn new(rings: &Rings, width: Option<usize>) -> Self {
        let has_exec = rings.iter().any(|ring| ring.is_exec);
        let has_perf = rings.iter().any(|ring| ring.perf.is_some());
        let names = rings.iter().map(|ring| ring.decoder.name_width());
        let labels = rings.iter().map(|ring| ring.label.chars().count());
        let label = labels.max().filter(|_| rings.has_several());
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
        let newest = rings.iter().map(|ring| ring.reader.info().last_seqno).max().unwrap_or(0);
        // The column is one digit wider than the newest seqno, because the seqnos grow while the watch runs.
        let digits = (newest.to_string().len() + 1).max(5);
        // In perf rings only rare events have long names, so the column begins narrow.
        let name =
            if rings.iter().all(|ring| ring.perf.is_some()) { NAME_WIDTH } else { all.event.min(NAME_WIDTH_MAX) };
        let fitted = Self { seqno: Some(digits), event: name, block: has_exec.then_some(digits), ..all };
        fitted.within(width, rings.are_of_one_name())
    }

    /// Removes and narrows columns until the payload has nearly half of the line.
    fn within(mut self, width: usize, is_one_recorder: bool) -> Self {
        let room = width - width * 11 / 25;
        let steps: [fn(&mut Self, bool); 9] = [
            |columns, _| columns.has_bytes = false,
            |columns, _| columns.time_digits = 6,
            // Each shard counts its own seqnos. So a seqno says little if the column with the shard is left out, and
            // goes, too.
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

    /// Returns true if both have the same columns. Their widths may differ.
    pub(super) fn has_those_of(&self, other: &Self) -> bool {
        let shape = |columns: &Self| {
            let Self { time_digits, ring, seqno, event: _, block, has_account, thread, span, has_bytes } = columns;
            let has = [ring, seqno, block, thread, span].map(Option::is_some);
            (*time_digits, has, *has_account, *has_bytes)
        };
        shape(self) == shape(other)
    }
}

/// Widens a column if `text` needs more room, so that this line and the next ones are aligned again.
pub(super) fn fit(width: &mut usize, text: &str) -> usize {
    *width = (*width).max(text.chars().count());
    *width
}
