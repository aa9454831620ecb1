//! The table `losses`: a row for each row of events that were lost.

use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers};
use super::sites::{RingNames, Words, words};
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_schema::Field;
use eventring::reader::Gap;
use std::io;

/// An estimate of the bytes that a loss takes without the name of its ring.
const LOSS_BYTES: u64 = 64;
/// The column with the time by which losses are sorted.
pub(super) const TIME: &str = "seen_ns";

#[derive(Default)]
pub(super) struct LossColumns {
    process: Numbers,
    ring: RingNames,
    first_seqno: Ids,
    count: Ids,
    cause: Words,
    seen: Amounts,
}

impl LossColumns {
    /// Appends a loss. `ring` is the index and the name of its ring. `seen_nanos` is the time of the last event before
    /// it, in any ring, if there is one. Returns an estimate of the bytes that the loss takes.
    pub(super) fn push(
        &mut self,
        process: u32,
        ring: (u32, &str),
        Gap { first_seqno, count, cause }: Gap,
        seen_nanos: Option<u64>,
    ) -> u64 {
        self.process.push(Some(process));
        let of_name = self.ring.push(ring);
        self.first_seqno.push(Some(first_seqno));
        self.count.push(Some(count));
        self.cause.push(cause.name());
        self.seen.push(seen_nanos);
        LOSS_BYTES + of_name
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
