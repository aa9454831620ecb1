//! The table `losses`: a row for each row of events that were lost.

use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers};
use super::sites::{Words, words};
use super::table::RowColumns;
use crate::reader::GapCause;
use arrow_array::ArrayRef;
use arrow_schema::Field;
use std::io;

/// An estimate of the bytes that a loss takes.
pub(super) const LOSS_BYTES: u64 = 64;
/// The column with the time by which losses are sorted.
pub(super) const TIME: &str = "seen_ns";

#[derive(Default)]
pub(super) struct LossColumns {
    process: Numbers,
    ring: Words,
    first_seqno: Ids,
    count: Ids,
    cause: Words,
    seen: Amounts,
}

impl LossColumns {
    /// Appends a loss. `seen_nanos` is the time of the last event before it, in any ring.
    pub(super) fn push(
        &mut self,
        (process, ring): (u32, &str),
        (first_seqno, count, cause): (u64, u64, GapCause),
        seen_nanos: u64,
    ) {
        self.process.push(Some(process));
        self.ring.push(ring);
        self.first_seqno.push(Some(first_seqno));
        self.count.push(Some(count));
        self.cause.push(cause.name());
        self.seen.push(Some(seen_nanos));
    }
}

impl RowColumns for LossColumns {
    fn fields(&self) -> Vec<Field> {
        vec![numbers("process"), words("ring"), ids("first_seqno"), ids("count"), words("cause"), amounts(TIME)]
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        Ok(vec![
            self.process.finish(),
            self.ring.finish()?,
            self.first_seqno.finish(),
            self.count.finish(),
            self.cause.finish()?,
            self.seen.finish(),
        ])
    }
}
