//! Fields that are encoded.

/// The fields of a span or event, encoded.
#[derive(Clone, Copy)]
pub(in crate::tracing::record) struct EncodedFields<'b> {
    pub(in crate::tracing::record) payload: &'b [u8],
    /// The flags of the fields, and how many fields there are and how many are missing, as in word 3 of the event's
    /// content extension.
    pub(in crate::tracing::record) flags_and_counts: u64,
    /// The time before the fields were visited. `None` means that the clock must be read after the encoding. There are
    /// two reasons:
    /// - The caller has not read the clock.
    /// - The formatting of a value may have recorded other events, which come before this event in the ring. This event
    ///   must not have an earlier time than those events.
    pub(in crate::tracing::record) epoch_nanos: Option<u64>,
    /// True if the formatting of a value has panicked. Then the payload has the fields that were encoded until then,
    /// and the panic continues to the caller.
    pub(in crate::tracing::record) has_panicked: bool,
    /// The message of a log record.
    pub(in crate::tracing::record) message: MessageText<'b>,
}

/// What is known of the message of a log record.
#[derive(Clone, Copy)]
pub(in crate::tracing::record) enum MessageText<'b> {
    /// It is no constant text, or there is none.
    Other,
    /// It is the text that the caller has expected.
    Expected,
    /// It was written in one piece, and may be constant.
    OnePiece(&'b [u8]),
}

impl EncodedFields<'static> {
    pub(in crate::tracing::record) const NONE: Self =
        Self { payload: &[], flags_and_counts: 0, epoch_nanos: None, has_panicked: false, message: MessageText::Other };
}
