//! The encoding of `tracing`'s field values to the bytes of a payload, without use of the heap. Numbers, booleans and
//! strings are copied without formatting.
//!
//! Fields are first encoded into a small buffer, so that most events touch little of the stack. If the fields do not
//! fit, all fields are encoded again into a larger buffer. So a value's `Debug` code may run twice.
//!
//! If the `Debug` code of a field panics, the event is recorded with the fields encoded before, and the panic continues
//! to the caller.

mod encoder;
mod formatting;

use crate::tracing::record::fields::encoded::EncodedFields;
use crate::tracing::record::fields::limits::{FieldLimits, LARGE_BYTES, MEDIUM_BYTES, SMALL_BYTES};
use crate::tracing::record::fields::redact::Redactable;
use crate::tracing::record::threads::thread::ThreadState;
use encoder::Encoder;

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
