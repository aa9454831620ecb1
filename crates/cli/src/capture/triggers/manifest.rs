//! The manifest of a file: why it was written, and what it holds.

use crate::input::state::add_end;
use crate::text::format::duration;
use eventring::reader::RingEnd;
use eventring_capture::{CutSummary, Shortfall};
use eventring_live::Occurrence;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An occurrence for which a file is written.
#[derive(Clone, Debug)]
pub(super) struct Shot {
    /// The condition as text.
    pub(super) reason: String,
    /// The event in words.
    pub(super) what: String,
    /// The name of the span or event, for the name of the file.
    pub(super) name: String,
    pub(super) epoch_nanos: u64,
    /// The span that it is about, or in which it was recorded; null if there is none.
    span: Value,
    program: Option<(String, u32)>,
    /// The times between which the program ended, if this is its end.
    pub(super) end: Option<RingEnd>,
}

impl Shot {
    pub(super) fn new(reason: &dyn std::fmt::Display, occurrence: &Occurrence<'_>) -> Self {
        let span = occurrence.span();
        Self {
            reason: reason.to_string(),
            what: occurrence.to_string(),
            name: occurrence.name().into_owned(),
            epoch_nanos: occurrence.epoch_nanos(),
            span: span.map_or(Value::Null, |span| {
                let target = span.call_site.as_ref().map(|call_site| &call_site.target);
                json!({ "name": occurrence.span_name(), "id": span.id.to_string(), "target": target })
            }),
            program: occurrence.program().map(|program| (program.name.clone(), program.pid)),
            end: occurrence.program_end(),
        }
    }
}

/// A file that was written.
#[derive(Clone, Debug)]
pub(super) struct WrittenFile {
    pub(super) path: PathBuf,
    pub(super) shot: Shot,
    pub(super) asked_nanos: (u64, u64),
    pub(super) cut: CutSummary,
}

impl WrittenFile {
    /// Returns the path of the manifest.
    pub(super) fn manifest_path(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".json");
        name.into()
    }

    /// Returns the reason why the file holds less than what was asked, in words, with a remedy.
    pub(super) fn shortfall(&self) -> Option<String> {
        let missing = duration(Duration::from_nanos(self.cut.missing_nanos));
        let why = match self.cut.shortfall? {
            Shortfall::Overwritten => {
                "had been overwritten in the ring before the watch read it; a larger ring would hold it"
            }
            Shortfall::Memory => "did not fit into the memory of the watch; give a larger --memory, or a --spool",
            Shortfall::Forgotten => "was forgotten while other files were written; give a larger --debounce",
            Shortfall::Late => "could not be copied in time; the machine is too busy",
            Shortfall::Failed => "is missing because the capture has failed; its error says why",
            _ => "is missing",
        };
        Some(format!("{missing} of the time {why}"))
    }

    /// Returns what the result of the whole capture says of the file.
    pub(super) fn object(&self) -> Value {
        let window_nanos = |(from, to): (u64, u64)| to.saturating_sub(from);
        let kept_nanos = (self.cut.from_epoch_nanos, self.cut.to_epoch_nanos);
        let mut object = json!({
            "file": self.path.to_string_lossy(), "reason": self.shot.reason, "what": self.shot.what,
            "epoch_nanos": self.shot.epoch_nanos, "window_asked_ns": window_nanos(self.asked_nanos),
            "window_kept_ns": window_nanos(kept_nanos), "events": self.cut.events, "lost": self.cut.lost,
            "bytes": self.cut.bytes, "shortfall": self.shortfall(),
        });
        if self.shot.end.is_some() {
            add_end(&mut object, self.shot.end);
        }
        object
    }

    /// Returns the manifest.
    pub(super) fn manifest(&self) -> Value {
        let mut object = self.object();
        let program = self.shot.program.as_ref();
        object["span"] = self.shot.span.clone();
        object["program"] = json!({ "name": program.map(|it| &it.0), "pid": program.map(|it| it.1) });
        let window = |(from, to): (u64, u64)| json!({ "from_epoch_nanos": from, "to_epoch_nanos": to });
        object["asked"] = window(self.asked_nanos);
        object["kept"] = window((self.cut.from_epoch_nanos, self.cut.to_epoch_nanos));
        object
    }
}
