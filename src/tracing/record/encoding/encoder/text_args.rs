//! The arguments of a text, encoded one by one.

use super::{Encoder, FORMATTED};
use crate::schema::perf::{ArgKind, TRUNCATION_BYTES};
use crate::tracing::record::encoding::formatting::{CappedText, FormattingDepth};
use crate::tracing::record::fields::args::ArgSink;
use std::fmt;

/// The arguments of a text, on their way into the buffer.
pub(super) struct TextArgs<'e, 't, const N: usize> {
    encoder: &'e mut Encoder<'t, N>,
    /// True if an argument did not fit.
    pub(super) has_overflowed: bool,
    /// True if the `Display` or `Debug` of an argument has failed. The text ends there.
    pub(super) has_failed: bool,
}

impl<'e, 't, const N: usize> TextArgs<'e, 't, N> {
    pub(super) fn new(encoder: &'e mut Encoder<'t, N>) -> Self {
        Self { encoder, has_overflowed: false, has_failed: false }
    }
}

impl<const N: usize> ArgSink for TextArgs<'_, '_, N> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        // Room for the mark of a cut text is left, as everywhere.
        match self.encoder.has_room_for(bytes.len() + TRUNCATION_BYTES) {
            _ if self.has_failed => {}
            true => self.encoder.append(bytes),
            false => self.has_overflowed = true,
        }
    }

    #[inline(always)]
    fn put_text(&mut self, kind: u8, text: &str) {
        // A text that fits the buffer has less than 64 KiB.
        let [low, high] = (text.len() as u16).to_le_bytes();
        if self.has_failed {
            return;
        }
        if self.encoder.has_room_for(3 + text.len() + TRUNCATION_BYTES) {
            self.encoder.append(&[kind, low, high]);
            self.encoder.append(text.as_bytes());
        } else {
            self.has_overflowed = true;
        }
    }

    fn put_formatted(&mut self, write: &mut dyn FnMut(&mut dyn fmt::Write) -> fmt::Result) {
        if self.has_failed {
            return;
        }
        let encoder = &mut *self.encoder;
        let Some(depth) = FormattingDepth::enter(encoder.thread) else {
            return self.put_text(ArgKind::Formatted as u8, "<not formatted>");
        };
        if !encoder.has_room_for(3 + TRUNCATION_BYTES) {
            self.has_overflowed = true;
            return;
        }
        encoder.append(&[ArgKind::Formatted as u8, 0, 0]);
        encoder.writing = encoder.bytes.len();
        let end = encoder.end - TRUNCATION_BYTES;
        let mut text =
            CappedText { bytes: &mut encoder.bytes, end, is_cut: false, pieces: 0, expected: None, is_expected: false };
        // An error of a value ends the text, as in a message of `tracing`.
        let has_failed = write(&mut text).is_err();
        self.has_overflowed |= text.is_cut;
        self.has_failed = has_failed && !text.is_cut;
        if depth.has_recorded() {
            encoder.word |= FORMATTED;
        }
        drop(depth);
        encoder.end_argument();
    }
}
