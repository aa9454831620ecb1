//! Constant texts of log records. Most log records have the same text each time, as in `info!("started")`, but
//! `tracing` does not mark the text as constant.
//!
//! So the recorder compares the first two records of a call site. If both have the same text, written in one piece, the
//! recorder stores the text once, as the format string of an additional call site. Later records with this text carry
//! only the id of this call site.

use crate::sync::Ordering;
use crate::tracing::record::fields::encoded::MessageText;
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE, view_of};
use crate::tracing::record::sites::seen_texts::{CHANGES, ConstantText, NOTHING, SeenTexts};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// The largest text that is stored with a call site, in bytes. The tables have little room.
const TEXT_BYTES_MAX: usize = 256;

impl SeenTexts {
    /// Looks at the message of a log record of the call site `id`, as long as it is not known whether the texts are
    /// constant. This may record the description of a call site, so it comes after the log record.
    #[inline(always)]
    pub(in crate::tracing::record) fn learn(&self, id: u32, message: MessageText<'_>) {
        // Relaxed: the word publishes no other memory. A thread that sees an old value looks once more.
        if let MessageText::OnePiece(text) = message
            && self.first.load(Ordering::Relaxed) != CHANGES
        {
            self.see(id, text);
        }
    }

    /// Looks at the text of one of the first records of the call site `id`.
    #[cold]
    #[inline(never)]
    fn see(&self, id: u32, text: &[u8]) {
        let Some(text) = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_BYTES_MAX) else {
            return self.first.store(CHANGES, Ordering::Relaxed);
        };
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one(text).max(CHANGES + 1);
        match self.first.compare_exchange(NOTHING, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Err(first) if first == hash => {
                self.first.store(CHANGES, Ordering::Relaxed);
                self.store(id, text);
            }
            Err(_) => self.first.store(CHANGES, Ordering::Relaxed),
            Ok(_) => {}
        }
    }

    fn store(&self, id: u32, text: &str) {
        let Some(metadata) = CALL_SITES.metadata(id) else { return };
        let format = text.replace('{', "{{").replace('}', "}}");
        // This is a part of the call site's entry, which never moves.
        let key = std::ptr::from_ref(self).addr();
        let call_site_id = CALL_SITES.id_of_key(key, || view_of(metadata).with_format(&format).encode());
        if call_site_id != NO_CALL_SITE {
            let _ = self.constant.set(Box::new(ConstantText { text: text.into(), call_site_id }));
        }
    }
}
