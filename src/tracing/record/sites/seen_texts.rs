//! What is known about the texts of a call site's log records.

use crate::sync::AtomicU64;
use crate::tracing::record::fields::encoded::MessageText;
use std::sync::OnceLock;

/// The constant text of a call site.
#[derive(Debug)]
pub(in crate::tracing::record) struct ConstantText {
    pub(in crate::tracing::record) text: Box<str>,
    /// The id of the call site whose format string is the text.
    pub(in crate::tracing::record) call_site_id: u32,
}

/// What is known about the texts of a call site's log records.
#[derive(Debug)]
pub(in crate::tracing::record) struct SeenTexts {
    /// [`NOTHING`], [`CHANGES`], or the hash of the first text.
    pub(super) first: AtomicU64,
    pub(super) constant: OnceLock<Box<ConstantText>>,
}

/// Value of [`SeenTexts::first`] before the first record.
pub(super) const NOTHING: u64 = 0;
/// Value of [`SeenTexts::first`] if the texts are not looked at any more.
pub(super) const CHANGES: u64 = 1;

impl SeenTexts {
    pub(in crate::tracing::record) const fn new() -> Self {
        Self { first: AtomicU64::new(NOTHING), constant: OnceLock::new() }
    }

    /// Returns the constant text, if it is known.
    #[inline(always)]
    pub(in crate::tracing::record) fn constant(&self) -> Option<&ConstantText> {
        self.constant.get().map(|constant| &**constant)
    }

    /// Returns the id of the call site with which to record a log record of the call site `id`.
    #[inline(always)]
    pub(in crate::tracing::record) fn call_site_id(&self, id: u32, message: MessageText<'_>) -> u32 {
        match message {
            MessageText::Expected => self.constant().map_or(id, |constant| constant.call_site_id),
            MessageText::OnePiece(_) | MessageText::Other => id,
        }
    }
}
