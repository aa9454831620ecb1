//! Rows as the members of a JSON object.

use super::json::{JsonText, SiteText};
use crate::rows::{Cell, Column, Columns, InJson, Row, RowFields, RowSite};
use eventring::tracing::{CallSite, SpanId, Thread};
use eventring_capture::recording::PerDescription;
use std::io;
use std::sync::Arc;

/// Text of JSON objects, with the texts of call sites and threads that come again.
#[derive(Default)]
pub(crate) struct JsonRows {
    pub(crate) text: JsonText,
    call_sites: PerDescription<CallSite, SiteText>,
    threads: PerDescription<Thread, Vec<u8>>,
}

impl JsonRows {
    /// Begins the object of a line.
    pub(crate) fn begin(&mut self, kind: &str, row: &impl Row) -> io::Result<()> {
        self.text.begin();
        self.text.member("type", kind)?;
        row.put_columns(self)
    }

    /// Writes the members that describe a call site.
    fn call_site(&mut self, call_site: &Arc<CallSite>) -> io::Result<()> {
        if !call_site.is_known {
            self.text.raw_members(&SiteText::new(call_site)?.members);
            return Ok(());
        }
        if self.call_sites.get(call_site).is_none() {
            self.call_sites.insert(call_site, SiteText::new(call_site)?);
        }
        if let Some(site) = self.call_sites.get(call_site) {
            self.text.raw_members(&site.members);
        }
        Ok(())
    }

    /// Writes a thread.
    pub(crate) fn thread(&mut self, thread: &Arc<Thread>) -> io::Result<()> {
        // The catalog makes a new description of an unknown thread each time, so its text is not kept.
        if thread.started_epoch_nanos.is_none() {
            return self.text.thread(thread);
        }
        if self.threads.get(thread).is_none() {
            let mut text = JsonText::default();
            text.thread(thread)?;
            self.threads.insert(thread, text.0);
        }
        if let Some(text) = self.threads.get(thread) {
            self.text.raw(text);
        }
        Ok(())
    }

    fn fields(&mut self, fields: &RowFields<'_>) -> io::Result<()> {
        if let RowFields::Raw(record, call_site) = fields
            && let Some(site) = self.call_sites.get(call_site)
            && self.text.try_raw_fields(record, site)?
        {
            return Ok(());
        }
        self.text.fields(&fields.decoded())
    }

    fn spans(&mut self, spans: &[SpanId]) -> io::Result<()> {
        self.text.raw(b"[");
        for id in spans {
            self.text.comma();
            self.text.value(&id.get())?;
        }
        self.text.raw(b"]");
        Ok(())
    }
}

impl Columns for JsonRows {
    // Each row gives cells of known kinds: what is left of the match is one arm.
    #[inline(always)]
    fn put(&mut self, Column { name, in_json }: Column, cell: Cell<'_>) -> io::Result<()> {
        if in_json == InJson::Never || (matches!(in_json, InJson::IfAny | InJson::Only) && cell.is_nothing()) {
            return Ok(());
        }
        let text = &mut self.text;
        match cell {
            Cell::U32(number) => text.member(name, &number),
            Cell::U64(number) | Cell::Amount(number) | Cell::Block(Some(number)) => text.member(name, &number),
            Cell::Bool(is_true) => text.member(name, &is_true),
            Cell::Word(word) => text.member(name, &word),
            Cell::Text(value) | Cell::EventName(value) => text.member(name, &value),
            Cell::Trace(id) => text.plain_member(name, id),
            Cell::Context(id) => text.plain_member(name, id),
            Cell::Spans(spans) => {
                text.key(name);
                self.spans(spans)
            }
            Cell::Site(RowSite::Of(call_site)) => self.call_site(call_site),
            Cell::Thread(Some(thread)) => {
                text.key(name);
                self.thread(thread)
            }
            Cell::Fields(Some(fields)) => self.fields(&fields),
            Cell::Value(value) | Cell::Number(value) => text.member(name, &value.as_deref()),
            Cell::Words(Some(words)) => {
                let named = || words.names.iter_own().filter(|(_, word)| !word.is_reserved());
                // If every extension word has a name, the object has each word under its name. Then the object has no
                // `content_ext`, which would only repeat the words.
                if named().count() + usize::from(words.names.has_span()) < words.words.len() {
                    text.member("content_ext", &words.words)?;
                }
                for (index, word) in named() {
                    text.any_key(&word.key())?;
                    text.value(&word.value(words.words[index]))?;
                }
                Ok(())
            }
            Cell::Payload(Some(payload)) => text.member(name, &payload.decoded()),
            Cell::Site(RowSite::Lost(span)) => {
                text.plain_member("name", Some(format_args!("span {span}")))?;
                text.raw_members(b"\"target\":null,\"level\":null,\"file\":null,\"line\":null");
                Ok(())
            }
            Cell::Site(RowSite::None)
            | Cell::Thread(None)
            | Cell::Fields(None)
            | Cell::Words(None)
            | Cell::Block(None)
            | Cell::Payload(None) => text.member(name, &None::<u64>),
        }
    }
}
