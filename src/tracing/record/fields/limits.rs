//! The limits of recorded fields, and the sizes of the buffers in which they are encoded.

pub(in crate::tracing::record) const SMALL_BYTES: usize = 1 << 10;
/// Size of the medium buffer in bytes. Fields within the default limits fit it. Only a program that sets higher
/// limits needs the large buffer on its threads' stacks.
pub(in crate::tracing::record) const MEDIUM_BYTES: usize = 1 << 13;
pub(in crate::tracing::record) const LARGE_BYTES: usize = 1 << 15;

/// Limits of the recorded fields, in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::tracing::record) struct FieldLimits {
    /// Limit of all fields of one span or event together, with the headers of the fields.
    pub(in crate::tracing::record) fields_bytes_max: usize,
    /// Limit of the text of one formatted value. 0 means that values are not formatted.
    pub(in crate::tracing::record) debug_bytes_max: usize,
    /// Largest number of bytes of a message, or of an error's text.
    pub(in crate::tracing::record) text_bytes_max: usize,
}

impl Default for FieldLimits {
    fn default() -> Self {
        Self { fields_bytes_max: MEDIUM_BYTES, debug_bytes_max: 1 << 10, text_bytes_max: 1 << 11 }
    }
}

impl FieldLimits {
    /// Lowers the limits to the size of the large buffer.
    pub(in crate::tracing::record) fn checked(self) -> Self {
        Self { fields_bytes_max: self.fields_bytes_max.min(LARGE_BYTES), ..self }
    }

    /// Returns true if no text in the small buffer is too long.
    pub(in crate::tracing::record) fn allow_any_small_text(&self) -> bool {
        self.text_bytes_max >= SMALL_BYTES
    }

    /// Returns true if the medium buffer is too small.
    pub(in crate::tracing::record) fn need_the_large_buffer(&self) -> bool {
        self.fields_bytes_max > MEDIUM_BYTES
    }
}
