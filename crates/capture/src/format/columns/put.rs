//! The interface of a maker of columns.

use super::ints::{IntsScratch, PutForm, put_ints};
use std::io;

/// A maker of columns: of those of all events, and of those of a group.
pub(super) trait PutColumns {
    /// Adds a column of numbers.
    fn put_values(&mut self, code: u64, group: u64, values: &[u64]) -> io::Result<()> {
        self.put_with(code, group, |out, ints| put_ints(values, out, ints))
    }

    /// Adds a column. `put` appends its bytes and returns its form.
    fn put_with(
        &mut self,
        code: u64,
        group: u64,
        put: impl FnOnce(&mut Vec<u8>, &mut IntsScratch) -> PutForm,
    ) -> io::Result<()>;
}
