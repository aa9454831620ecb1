//! The encoder of fields: a visitor that fills a buffer on the stack.

mod by_type;
mod text_args;

use super::formatting::{CappedText, FormattingDepth};
use crate::schema::perf::{Cut, FIELD_HEADER_BYTES, NotFormatted, TRUNCATED, TRUNCATION_BYTES, ValueType, flags};
use crate::tracing::record::fields::encoded::{EncodedFields, MessageText};
use crate::tracing::record::fields::limits::FieldLimits;
use crate::tracing::record::fields::redact::Redactable;
use crate::tracing::record::fields::values::FieldEncoder;
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE};
use crate::tracing::record::threads::thread::ThreadState;
use arrayvec::ArrayVec;
use std::error::Error;
use std::fmt::{self, Write as _};
use tracing_core::field::{Field, Visit};

/// The field that holds the text of a log record.
const MESSAGE: &str = "message";

/// Bytes of the largest value of a fixed size.
const FIXED_BYTES_MAX: usize = 16;

/// Value of [`Encoder::formatting`] that means: no field is being formatted.
const NONE: usize = usize::MAX;

/// Amount that is added to [`Encoder::word`] for each encoded field. The word is word 3 of the event's content
/// extension and holds the flags and the counts of fields. [`MISSING`] and [`FORMATTED`] belong to the same word.
const FIELD: u64 = 1 << 16;
/// Amount that is added to [`Encoder::word`] for each field that is missing.
const MISSING: u64 = 1 << 32;
/// Flag in [`Encoder::word`]: the formatting of a value may have recorded an event. Only the encoder needs the flag, so
/// it is removed before the event is recorded. Its bit lies above the bits of the counts.
const FORMATTED: u64 = 1 << 63;

/// An encoder that takes fields one by one and appends them to its buffer, while there is room.
pub(in crate::tracing::record) struct Encoder<'t, const N: usize> {
    bytes: ArrayVec<u8, N>,
    /// The length up to which the encoder may fill the buffer. If a field does not fit and another buffer is possible,
    /// the length is set to 0, so that this encoder encodes no more fields. The caller then encodes all fields again
    /// into the other buffer.
    end: usize,
    /// The index in `bytes` of the first byte of the field that is being formatted. [`NONE`] if no field is being
    /// formatted.
    formatting: usize,
    /// The index of the first byte of the text that an argument is just writing, behind its length. [`NONE`] if none
    /// is.
    writing: usize,
    /// The flags and counts of the event's descriptor, and [`FORMATTED`], all in one word. If each of them were stored
    /// separately, a load of the whole word soon after would have to wait for the stores.
    word: u64,
    limits: &'t FieldLimits,
    thread: &'t ThreadState,
    /// The call site of the log record, whose message may be a constant text; [`NO_CALL_SITE`] for a span.
    log_call_site_id: u32,
    /// True if the last text that was formatted was written whole, in one piece.
    is_one_piece: bool,
    /// True if this text was the expected one.
    is_expected: bool,
    /// How the message was written.
    message: Message,
}

/// How the message of a log record was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    /// There is none yet, or it cannot be a constant text.
    Other,
    /// It is the expected text, and its field is empty.
    Expected,
    /// It was written in one piece, which lies in the buffer from here on up to there.
    OnePiece(usize, usize),
}

impl<'t, const N: usize> Encoder<'t, N> {
    #[inline(always)]
    pub fn new(thread: &'t ThreadState, limits: &'t FieldLimits) -> Self {
        let end = N.min(limits.fields_bytes_max);
        Self {
            bytes: ArrayVec::new(),
            end,
            formatting: NONE,
            writing: NONE,
            word: 0,
            limits,
            thread,
            log_call_site_id: NO_CALL_SITE,
            is_one_piece: false,
            is_expected: false,
            message: Message::Other,
        }
    }

    /// Returns true if a field did not fit and another buffer is possible: a larger one, or one for a text that is
    /// formatted as a whole. Then the caller visits all fields again and encodes them into that buffer.
    #[inline(always)]
    pub(in crate::tracing::record) fn is_too_small(&self) -> bool {
        self.end == 0
    }

    /// Returns true if the limits allow more bytes than this buffer has, so that a larger buffer can help when a
    /// field does not fit.
    fn has_larger(&self) -> bool {
        N < self.limits.fields_bytes_max
    }

    /// Counts a field that is missing.
    #[cold]
    fn miss(&mut self) {
        // The count cannot run over into other bits of the word, because a call site has at most several hundred
        // fields.
        self.word = (self.word + MISSING) | u64::from(flags::FIELDS_MISSING);
    }

    /// Returns true if that many bytes are left.
    #[inline(always)]
    fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= self.end
    }

    /// Handles a field for which there is no room.
    #[cold]
    fn no_room(&mut self) {
        if self.has_larger() {
            self.end = 0;
        } else {
            self.miss();
        }
    }

    /// Appends bytes that fit.
    #[inline(always)]
    fn append(&mut self, bytes: &[u8]) {
        // The extension cannot fail: the caller has checked that the bytes fit, and `end` is never above the
        // capacity.
        let _ = self.bytes.try_extend_from_slice(bytes);
    }

    /// Encodes a value of fixed size.
    #[inline(always)]
    fn fixed<const K: usize>(&mut self, index: usize, ty: ValueType, value: [u8; K]) {
        let Ok(index) = u8::try_from(index) else { return self.miss() };
        if !self.has_room_for(FIELD_HEADER_BYTES + K) {
            return self.no_room();
        }
        // Header and value are appended together. Each append loads and stores the buffer's length, so a second
        // append would have to wait for the store of the first.
        let mut bytes = [0; FIELD_HEADER_BYTES + FIXED_BYTES_MAX];
        bytes[..FIELD_HEADER_BYTES].copy_from_slice(&[index, ty as u8, K as u8, 0]);
        bytes[FIELD_HEADER_BYTES..FIELD_HEADER_BYTES + K].copy_from_slice(&value);
        self.append(&bytes[..FIELD_HEADER_BYTES + K]);
        self.word += FIELD;
    }

    /// Encodes a value of any length. A value that is too long is cut. `floor` gets the number of bytes that fit, and
    /// lowers this number until no character is split.
    fn sized(&mut self, index: usize, ty: ValueType, value: &[u8], floor: impl Fn(usize) -> usize) {
        let Ok(index) = u8::try_from(index) else { return self.miss() };
        if !self.has_room_for(FIELD_HEADER_BYTES + TRUNCATION_BYTES) {
            return self.no_room();
        }
        let room = self.end - self.bytes.len() - FIELD_HEADER_BYTES;
        if value.len() <= room {
            // The room is less than 64 KiB, so the cast loses nothing.
            let [low, high] = (value.len() as u16).to_le_bytes();
            self.append(&[index, ty as u8, low, high]);
            self.append(value);
        } else if self.has_larger() {
            return self.no_room();
        } else {
            let kept = floor(room - TRUNCATION_BYTES);
            let [low, high] = ((kept + TRUNCATION_BYTES) as u16).to_le_bytes();
            self.append(&[index, ty as u8 | TRUNCATED, low, high]);
            self.append(&value[..kept]);
            self.append(&Cut::Limit { original_bytes: u32::try_from(value.len()).ok() }.code().to_le_bytes());
            self.word |= u64::from(flags::TRUNCATED);
        }
        self.word += FIELD;
    }

    /// Encodes the text that `write` formats. A text longer than `bytes_max` is cut. Notes whether the text is the
    /// `expected` one.
    fn formatted(
        &mut self,
        index: usize,
        ty: ValueType,
        bytes_max: usize,
        expected: Option<&str>,
        write: impl FnOnce(&mut CappedText<'_, N>) -> fmt::Result,
    ) {
        let Ok(index) = u8::try_from(index) else { return self.miss() };
        if !self.has_room_for(FIELD_HEADER_BYTES + TRUNCATION_BYTES) {
            return self.no_room();
        }
        let Some(depth) = FormattingDepth::enter(self.thread) else {
            return self.fixed(index.into(), ValueType::NotFormatted, [NotFormatted::Nested as u8]);
        };
        let start = self.bytes.len();
        self.append(&[index, ty as u8, 0, 0]);
        let room = self.end - self.bytes.len() - TRUNCATION_BYTES;
        let end = self.bytes.len() + room.min(bytes_max);
        self.formatting = start;
        let mut text =
            CappedText { bytes: &mut self.bytes, end, is_cut: false, pieces: 0, expected, is_expected: false };
        let written = write(&mut text);
        let (is_cut, pieces, is_expected) = (text.is_cut, text.pieces, text.is_expected);
        self.formatting = NONE;
        if depth.has_recorded() {
            self.word |= FORMATTED;
        }
        drop(depth);
        self.is_one_piece = pieces == 1 && !is_cut && written.is_ok();
        self.is_expected = self.is_one_piece && is_expected;
        if is_cut && self.has_larger() && room < bytes_max {
            self.bytes.truncate(start);
            return self.no_room();
        }
        self.end_formatted(
            start,
            match written {
                _ if is_cut => Some(Cut::Limit { original_bytes: None }),
                Ok(()) => None,
                Err(fmt::Error) => Some(Cut::Failed),
            },
        );
    }

    /// Completes the encoded bytes after a panic. If a field was being formatted, what was written of it stays and is
    /// marked as cut. Otherwise the field counts as missing.
    pub(super) fn panicked(&mut self) {
        match std::mem::replace(&mut self.formatting, NONE) {
            NONE => self.miss(),
            start => {
                self.end_argument();
                self.end_formatted(start, Some(Cut::Panicked));
            }
        }
    }

    /// Writes the length of the text that an argument has written, if one was writing.
    fn end_argument(&mut self) {
        let start = std::mem::replace(&mut self.writing, NONE);
        if start != NONE {
            let bytes = (self.bytes.len() - start) as u16;
            self.bytes[start - 2..start].copy_from_slice(&bytes.to_le_bytes());
        }
    }

    /// Says that this is a log record of that call site. Its message is not encoded if it is the call site's constant
    /// text.
    #[inline(always)]
    pub(in crate::tracing::record) fn set_log_call_site(&mut self, id: u32) {
        self.log_call_site_id = id;
    }

    /// Returns the encoded fields. `epoch_nanos` is the time before the fields were visited, or `None` if the caller
    /// has not read the clock.
    #[inline(always)]
    pub(in crate::tracing::record) fn encoded(&self, epoch_nanos: Option<u64>) -> EncodedFields<'_> {
        let epoch_nanos = epoch_nanos.filter(|_| self.word & FORMATTED == 0);
        let message = match self.message {
            Message::Other => MessageText::Other,
            Message::Expected => MessageText::Expected,
            Message::OnePiece(start, end) => MessageText::OnePiece(&self.bytes[start..end]),
        };
        EncodedFields {
            payload: &self.bytes,
            flags_and_counts: self.word & !FORMATTED,
            epoch_nanos,
            has_panicked: false,
            message,
        }
    }

    /// Completes the formatted field whose header begins at `start`: writes its length, and marks it if it was cut.
    /// The caller has left room for the mark.
    fn end_formatted(&mut self, start: usize, cut: Option<Cut>) {
        if let Some(cut) = cut {
            self.bytes[start + 1] |= TRUNCATED;
            self.append(&cut.code().to_le_bytes());
            self.word |= u64::from(flags::TRUNCATED);
        }
        let bytes = (self.bytes.len() - start - FIELD_HEADER_BYTES) as u16;
        self.bytes[start + 2..start + 4].copy_from_slice(&bytes.to_le_bytes());
        self.word += FIELD;
    }
}

impl<const N: usize> Encoder<'_, N> {
    /// Encodes what `Debug` writes, at most `bytes_max` bytes of it.
    fn debug_text(&mut self, index: usize, value: &dyn fmt::Debug, bytes_max: usize, expected: Option<&str>) {
        if bytes_max == 0 {
            return self.fixed(index, ValueType::NotFormatted, [NotFormatted::SwitchedOff as u8]);
        }
        self.formatted(index, ValueType::Debug, bytes_max, expected, |text| write!(text, "{value:?}"));
    }
}

impl<const N: usize> Redactable for Encoder<'_, N> {
    fn redacted(&mut self, field: &Field) {
        self.fixed(field.index(), ValueType::NotFormatted, [NotFormatted::Redacted as u8]);
    }
}

macro_rules! visit_by_index {
    ($($method:ident: $ty:ty => $encode:ident),*) => {
        $(#[inline]
        fn $method(&mut self, field: &Field, value: $ty) {
            self.$encode(field.index(), value);
        })*
    };
}

impl<const N: usize> Visit for Encoder<'_, N> {
    visit_by_index! {
        record_i64: i64 => i64, record_u64: u64 => u64, record_i128: i128 => i128, record_u128: u128 => u128,
        record_f64: f64 => f64, record_bool: bool => bool, record_str: &str => str, record_bytes: &[u8] => bytes,
        record_error: &(dyn Error + 'static) => error
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != MESSAGE {
            return self.debug(field.index(), value);
        }
        let start = self.bytes.len();
        self.is_one_piece = false;
        let expected = CALL_SITES.constant_text(self.log_call_site_id);
        self.debug_text(field.index(), value, self.limits.text_bytes_max, expected);
        self.message = Message::Other;
        if !self.is_one_piece {
            return;
        }
        let text = start + FIELD_HEADER_BYTES;
        if self.is_expected {
            self.bytes.truncate(text);
            self.bytes[start + 1..].copy_from_slice(&[ValueType::Text as u8, 0, 0]);
            self.message = Message::Expected;
        } else {
            self.message = Message::OnePiece(text, self.bytes.len());
        }
    }
}
