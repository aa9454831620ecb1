//! Reading many events in one call. During the call, the cursor's position stays in a register.

use super::cursor::{Cursor, Next};
use super::payload::PayloadRead;
use crate::layout::Descriptor;
use crate::reader::source::Source;
use crate::ring::observe::{self, Slot};
use std::ops::ControlFlow;

/// An event in [`Cursor::each_ready`].
#[derive(Clone, Copy)]
pub struct ReadyEvent<'c> {
    descriptor: Descriptor,
    pub(in crate::reader) source: &'c Source,
}

impl ReadyEvent<'_> {
    /// Returns the descriptor, whole and validated.
    #[inline(always)]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Copies the payload, as [`Cursor::payload`] does.
    #[inline(always)]
    pub fn payload<'b>(&self, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        self.source.payload(&self.descriptor, buffer)
    }
}

impl std::fmt::Debug for ReadyEvent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.descriptor.fmt(f)
    }
}

/// A guard that writes the position back into the cursor when the guard is dropped. So the position is right even if
/// the caller's code panics.
struct PositionGuard<'c> {
    cursor: &'c mut u64,
    next_seqno: u64,
}

impl Drop for PositionGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.cursor = self.next_seqno;
    }
}

impl Cursor {
    /// Calls `f` with each event that is ready, in order. If `f` breaks, stops and returns `None`. Otherwise stops at
    /// the first event that is not ready or is missing, and returns for it what [`Self::next`] would return:
    /// [`Next::NotReady`] or [`Next::Gap`]. Never waits. After a gap, call this function again to read on.
    ///
    /// Does the same as a loop that calls [`Self::next`], but a little faster, because the position stays in a
    /// register. Use it in programs that read millions of events.
    ///
    /// # Panics
    /// Panics if `f` panics. The event for which `f` panicked counts as read.
    ///
    /// ```
    /// use eventring::reader::{Next, Reader};
    /// use eventring::recorder::{ContentDescription, Recorder};
    /// use std::ops::ControlFlow;
    ///
    /// let recorder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).build()?;
    /// let mut cursor = Reader::options().open_fd(recorder.as_fd())?.cursor();
    /// for n in 0..3u8 {
    ///     recorder.record(2, [0; 4], &[n]);
    /// }
    /// let (mut payload, mut sum) = (Vec::new(), 0);
    /// let end = cursor.each_ready(|event| {
    ///     sum += event.payload(&mut payload).valid().map_or(0, |bytes| bytes[0]);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!((sum, end), (3, Some(Next::NotReady)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn each_ready(&mut self, mut f: impl FnMut(ReadyEvent<'_>) -> ControlFlow<()>) -> Option<Next> {
        let seen = {
            let (source, next_seqno) = self.parts();
            let mut position = PositionGuard { next_seqno: *next_seqno, cursor: next_seqno };
            loop {
                match observe::slot(source.memory(), position.next_seqno) {
                    Slot::Event(descriptor) => {
                        position.next_seqno += 1;
                        if f(ReadyEvent { descriptor, source }).is_break() {
                            return None;
                        }
                    }
                    Slot::Other(seen) => break Some(seen),
                    Slot::Overrun => break None,
                }
            }
        };
        Some(self.not_in_its_slot(seen))
    }
}
