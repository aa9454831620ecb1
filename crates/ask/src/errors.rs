//! Errors in log records, grouped by their place in the program's source.

use crate::flag::BURST_ERRORS;
use eventring::schema::perf::{CallSiteLevel, PerfEvent};
use eventring::tracing::{CallSite, Catalog, RawRecord};
use eventring_capture::recording::PerDescription;
use std::collections::VecDeque;

/// The largest number of call sites that are looked at.
const SITES_MAX: usize = 1000;
/// The longest text that is kept.
const TEXT_BYTES: usize = 200;

/// The errors of one call site.
#[derive(Default)]
pub(crate) struct ErrorSite {
    /// Target, file and line.
    pub(crate) place: String,
    /// The text of one of them.
    pub(crate) text: String,
    pub(crate) count: u64,
    /// The span in which the first of them was.
    pub(crate) span: String,
    /// The times of the last ones.
    last: VecDeque<u64>,
    /// The first time at which there were many in a second.
    pub(crate) burst_nanos: Option<u64>,
    /// The first that says that a thread has panicked.
    pub(crate) panic_nanos: Option<u64>,
}

/// All errors.
#[derive(Default)]
pub(crate) struct Errors {
    pub(crate) sites: Vec<ErrorSite>,
    by_call_site: PerDescription<CallSite, usize>,
    pub(crate) all: u64,
}

impl Errors {
    /// Takes a record. `span` names the span in which it was.
    pub(crate) fn add(&mut self, record: &RawRecord<'_>, catalog: &Catalog, span: impl FnOnce() -> String) {
        if record.event != Some(PerfEvent::Event) {
            return;
        }
        let Some(site) = catalog.known_call_site(record.ext.call_site_id) else { return };
        if site.level != CallSiteLevel::Error {
            return;
        }
        self.all += 1;
        let at = match self.by_call_site.get(site) {
            Some(at) => *at,
            None if self.sites.len() >= SITES_MAX => return,
            None => {
                let line = |file: &String| format!(" ({file}:{})", site.line.unwrap_or(0));
                let place = format!("{}{}", site.target, site.file.as_ref().map(line).unwrap_or_default());
                // Threads that come to a call site at the same time may describe it twice.
                let known = self.sites.iter().position(|known| known.place == place);
                let at = known.unwrap_or_else(|| {
                    self.sites.push(ErrorSite { place, span: span(), ..ErrorSite::default() });
                    self.sites.len() - 1
                });
                self.by_call_site.insert(site, at);
                at
            }
        };
        let (found, nanos) = (&mut self.sites[at], record.epoch_nanos());
        found.count += 1;
        // The first texts are looked at, in case one tells of a panic.
        if found.count <= 16 {
            let fields = record.named_fields(catalog);
            let text_of = |name: &str| fields.get(name).map(ToString::to_string).unwrap_or_default();
            let text = text_of("message");
            // The second is what `trigger_on_panic` records.
            let is_panic = text.contains("panicked at") || site.name == "TRIGGER" && text_of("reason") == "panic";
            if found.panic_nanos.is_none() && is_panic {
                (found.panic_nanos, found.text) = (Some(nanos), crate::flag::cut(&text, TEXT_BYTES));
            } else if found.text.is_empty() {
                found.text = crate::flag::cut(&text, TEXT_BYTES);
            }
        }
        found.last.push_back(nanos);
        if found.last.len() == BURST_ERRORS {
            let first = found.last.pop_front().unwrap_or(nanos);
            if nanos.saturating_sub(first) <= 1_000_000_000 {
                found.burst_nanos.get_or_insert(first);
            }
        }
    }
}
