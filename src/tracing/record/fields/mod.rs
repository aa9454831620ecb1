//! The encoding of `tracing`'s field values to the bytes of a payload. The encoding uses buffers on the stack and no
//! heap. Numbers, booleans and strings are copied without formatting.
//!
//! Fields are first encoded into a small buffer, so that most events touch little of the stack. If the fields do not
//! fit, all fields are encoded again, into a larger buffer. So a value's `Debug` code may run twice.
//!
//! If the `Debug` code of a field panics, the event is recorded with the fields that were encoded until then, and the
//! panic continues to the caller.

mod encoder;
pub(in crate::tracing) mod redact;
mod values;

use crate::tracing::record::threads::thread::ThreadState;
use encoder::Encoder;
use tracing_core::field::{Field, Visit};
pub(super) use values::visit_values;
pub use values::{AnyOf, FieldEncoder, FieldValues, RecordedAsDebug, RecordedAsIs, RecordedValue};

const SMALL_BYTES: usize = 1 << 10;
/// Size of the medium buffer in bytes. Fields within the default limits fit it. Only a program that sets higher
/// limits needs the large buffer on its threads' stacks.
const MEDIUM_BYTES: usize = 1 << 13;
const LARGE_BYTES: usize = 1 << 15;

/// Limits of the recorded fields, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldLimits {
    /// Limit of all fields of one span or event together, with the headers of the fields.
    pub(super) fields_bytes_max: usize,
    /// Limit of the text of one formatted value. 0 means that values are not formatted.
    pub(super) debug_bytes_max: usize,
    /// Largest number of bytes of a message, or of an error's text.
    pub(super) text_bytes_max: usize,
}

impl Default for FieldLimits {
    fn default() -> Self {
        Self { fields_bytes_max: MEDIUM_BYTES, debug_bytes_max: 1 << 10, text_bytes_max: 1 << 11 }
    }
}

impl FieldLimits {
    /// Lowers the limits to the size of the large buffer.
    pub(super) fn checked(self) -> Self {
        Self { fields_bytes_max: self.fields_bytes_max.min(LARGE_BYTES), ..self }
    }

    /// Returns true if no text in the small buffer is too long.
    pub(super) fn allow_any_small_text(&self) -> bool {
        self.text_bytes_max >= SMALL_BYTES
    }

    /// Returns true if the medium buffer is too small.
    fn need_the_large_buffer(&self) -> bool {
        self.fields_bytes_max > MEDIUM_BYTES
    }
}

/// The fields of a span or event, encoded.
#[derive(Clone, Copy)]
pub(super) struct EncodedFields<'b> {
    pub(super) payload: &'b [u8],
    /// The flags of the fields, and how many fields there are and how many are missing, as in word 3 of the event's
    /// content extension.
    pub(super) flags_and_counts: u64,
    /// The time before the fields were visited. `None` means that the clock must be read after the encoding. There are
    /// two reasons:
    /// - The caller has not read the clock.
    /// - The formatting of a value may have recorded other events, which come before this event in the ring. This event
    ///   must not have an earlier time than those events.
    pub(super) epoch_nanos: Option<u64>,
    /// True if the formatting of a value has panicked. Then the payload has the fields that were encoded until then,
    /// and the panic continues to the caller.
    pub(super) has_panicked: bool,
    /// The message of a log record.
    pub(super) message: MessageText<'b>,
}

/// What is known of the message of a log record.
#[derive(Clone, Copy)]
pub(super) enum MessageText<'b> {
    /// It is no constant text, or there is none.
    Other,
    /// It is the text that the caller has expected.
    Expected,
    /// It was written in one piece, and may be constant.
    OnePiece(&'b [u8]),
}

impl EncodedFields<'static> {
    pub(super) const NONE: Self =
        Self { payload: &[], flags_and_counts: 0, epoch_nanos: None, has_panicked: false, message: MessageText::Other };
}

/// Encodes the fields that `visit` passes to the visitor, calls `then` with the encoded fields, and returns what
/// `then` returns. If the formatting of a value panics, `then` is called with the fields encoded until then, and the
/// panic continues. `epoch_nanos` is the present time, or `None` if the caller has not read the clock.
#[inline(always)]
pub(super) fn encode<R>(
    thread: &ThreadState,
    (limits, log_call_site_id): (&FieldLimits, u32),
    epoch_nanos: Option<u64>,
    visit: impl Fn(&mut dyn Redactable),
    then: impl Fn(EncodedFields<'_>) -> R,
) -> R {
    let mut small = SmallEncoder::new(thread, limits);
    small.set_log_call_site(log_call_site_id);
    visit_fields(&mut small, |encoder| visit(encoder), &then);
    if small.is_too_small() {
        return encode_large(thread, (limits, log_call_site_id), epoch_nanos, visit, then);
    }
    then(small.encoded(epoch_nanos))
}

/// Encodes fields that do not fit the small buffer. Uses the medium buffer if it is large enough for the limits,
/// otherwise the large buffer.
#[cold]
#[inline(never)]
pub(super) fn encode_large<R>(
    thread: &ThreadState,
    (limits, log_call_site_id): (&FieldLimits, u32),
    epoch_nanos: Option<u64>,
    visit: impl Fn(&mut dyn Redactable),
    then: impl Fn(EncodedFields<'_>) -> R,
) -> R {
    if limits.need_the_large_buffer() {
        encode_into::<LARGE_BYTES, R>(thread, (limits, log_call_site_id), epoch_nanos, visit, then)
    } else {
        encode_into::<MEDIUM_BYTES, R>(thread, (limits, log_call_site_id), epoch_nanos, visit, then)
    }
}

/// Encodes fields into a buffer of `N` bytes. The function is not inlined: the stack then holds only the buffer that
/// is in use, not one of each size.
#[inline(never)]
fn encode_into<const N: usize, R>(
    thread: &ThreadState,
    (limits, log_call_site_id): (&FieldLimits, u32),
    epoch_nanos: Option<u64>,
    visit: impl Fn(&mut dyn Redactable),
    then: impl Fn(EncodedFields<'_>) -> R,
) -> R {
    let mut encoder = Encoder::<N>::new(thread, limits);
    encoder.set_log_call_site(log_call_site_id);
    visit_fields(&mut encoder, |encoder| visit(encoder), &then);
    then(encoder.encoded(epoch_nanos))
}

/// Calls `visit`, which passes the fields to `encoder`. If the formatting of a field panics, calls `then` with the
/// fields encoded until then, and the panic continues. Without a panic, `then` is not called.
#[inline(always)]
pub(super) fn visit_fields<'t, const N: usize, R>(
    encoder: &mut Encoder<'t, N>,
    visit: impl FnOnce(&mut Encoder<'t, N>),
    then: impl Fn(EncodedFields<'_>) -> R,
) {
    let kept = OnPanic { encoder, then };
    visit(kept.encoder);
    std::mem::forget(kept);
}

/// A visitor that can leave a value out.
pub(super) trait Redactable: Visit {
    /// Records a field without its value.
    fn redacted(&mut self, field: &Field);
}

/// A guard that calls `then` with the encoded fields if a panic unwinds through it. It borrows the encoder instead of
/// owning it, because the encoder is too large to be moved.
struct OnPanic<'e, 't, const N: usize, R, F: Fn(EncodedFields<'_>) -> R> {
    encoder: &'e mut Encoder<'t, N>,
    then: F,
}

impl<const N: usize, R, F: Fn(EncodedFields<'_>) -> R> Drop for OnPanic<'_, '_, N, R, F> {
    // The function is inlined. Otherwise the variables that `then` captures would have to lie in memory, even if
    // nothing panics.
    #[inline(always)]
    fn drop(&mut self) {
        self.encoder.panicked();
        (self.then)(EncodedFields { has_panicked: true, ..self.encoder.encoded(None) });
    }
}

/// The encoder that nearly all events need.
pub(super) type SmallEncoder<'t> = Encoder<'t, SMALL_BYTES>;
