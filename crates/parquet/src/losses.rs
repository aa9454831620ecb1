//! The table `losses`: a row for each row of events that were lost.

use super::columns::{Column, amount};
use super::sites::Words;
use super::table::RowColumns;
use arrow_array::builder::{Int64Builder, UInt32Builder, UInt64Builder};
use eventring::reader::Gap;

/// An estimate of the bytes that a loss takes without the name of its ring.
const LOSS_BYTES: u64 = 64;
/// The column with the time by which losses are sorted.
pub(super) const TIME: &str = "seen_ns";

#[derive(Default)]
pub(super) struct LossColumns {
    process: UInt32Builder,
    ring: Words,
    first_seqno: UInt64Builder,
    count: UInt64Builder,
    cause: Words,
    seen: Int64Builder,
}

impl LossColumns {
    /// Appends a loss. `seen_nanos` is the time of the last event before it, in any ring, if there is one. Returns an
    /// estimate of the bytes that the loss takes.
    pub(super) fn push(
        &mut self,
        process: u32,
        ring_name: &str,
        Gap { first_seqno, count, cause }: Gap,
        seen_nanos: Option<u64>,
    ) -> u64 {
        self.process.append_value(process);
        let of_name = self.ring.push(Some(ring_name));
        self.first_seqno.append_value(first_seqno);
        self.count.append_value(count);
        self.cause.push(Some(cause.name()));
        self.seen.append_option(seen_nanos.map(amount));
        LOSS_BYTES + of_name
    }
}

impl RowColumns for LossColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        vec![
            ("process", &mut self.process),
            ("ring", &mut self.ring),
            ("first_seqno", &mut self.first_seqno),
            ("count", &mut self.count),
            ("cause", &mut self.cause),
            (TIME, &mut self.seen),
        ]
    }
}
