//! The formatting of values.

use crate::tracing::record::threads::thread::{LastRing, ThreadState};
use arrayvec::ArrayVec;
use std::fmt;

/// Limit of nested formatting. The `Debug` code of a value may record an event, which formats another value. Without a
/// limit, the formatting of a value that records itself would never end.
const FORMATTING_DEPTH_MAX: u32 = 3;

/// A text that grows up to the length `end`. A write that does not fit fails, and so ends the formatting of the
/// value.
pub(super) struct CappedText<'b, const N: usize> {
    pub(super) bytes: &'b mut ArrayVec<u8, N>,
    pub(super) end: usize,
    pub(super) is_cut: bool,
    /// The number of writes.
    pub(super) pieces: u32,
    /// The text that the first write is expected to have. It is compared before it is appended: a comparison with bytes
    /// that were just stored would wait for the stores.
    pub(super) expected: Option<&'b str>,
    pub(super) is_expected: bool,
}

impl<const N: usize> fmt::Write for CappedText<'_, N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.pieces += 1;
        if let Some(expected) = self.expected.take() {
            self.is_expected = text == expected;
        }
        let kept = text.floor_char_boundary(self.end - self.bytes.len());
        // The extension cannot fail: the text then ends at `end` or earlier, and `end` is within the capacity.
        let _ = self.bytes.try_extend_from_slice(&text.as_bytes()[..kept]);
        if kept == text.len() {
            return Ok(());
        }
        self.is_cut = true;
        // This write was cut, so later writes must add nothing. Otherwise a shorter write could still fit, and its
        // text would follow the cut text as if nothing were missing between them.
        self.end = self.bytes.len();
        Err(fmt::Error)
    }
}

/// A guard that counts how deep formatting is nested.
///
/// It also makes the thread forget its last ring until the formatting is over. So an event that the formatting records
/// takes a slow path, and leaves a mark: the thread has a last ring again.
pub(super) struct FormattingDepth<'t> {
    thread: &'t ThreadState,
    last_ring: LastRing,
}

impl<'t> FormattingDepth<'t> {
    pub(super) fn enter(thread: &'t ThreadState) -> Option<Self> {
        let depth = thread.formatting_depth.get();
        if depth >= FORMATTING_DEPTH_MAX {
            return None;
        }
        thread.formatting_depth.set(depth + 1);
        thread.allocations.pause();
        Some(Self { thread, last_ring: thread.take_last_ring() })
    }

    /// Returns true if the thread may have recorded an event since.
    pub(super) fn has_recorded(&self) -> bool {
        !self.thread.has_recorded_nothing_since(self.last_ring)
    }
}

impl Drop for FormattingDepth<'_> {
    fn drop(&mut self) {
        self.thread.allocations.resume();
        self.thread.formatting_depth.set(self.thread.formatting_depth.get() - 1);
        self.thread.put_last_ring(self.last_ring);
    }
}
