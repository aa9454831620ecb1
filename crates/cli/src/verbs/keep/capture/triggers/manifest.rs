//! The manifest of a file: the reason why the file was written, and its content.

use crate::input::ring::state::EndTimes;
use crate::text::format::duration;
use eventring::reader::RingEnd;
use eventring_capture::{CutSummary, Shortfall};
use eventring_live::Occurrence;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A span, as a manifest names it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShotSpan {
    name: Option<String>,
    id: String,
    target: Option<String>,
}

/// A program, as a manifest names it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ShotProgram {
    name: Option<String>,
    pid: Option<u32>,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Window {
    pub(super) from_epoch_nanos: u64,
    pub(super) to_epoch_nanos: u64,
}

impl Window {
    fn nanos(self) -> u64 {
        self.to_epoch_nanos.saturating_sub(self.from_epoch_nanos)
    }
}

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
    /// The span that it is about, or in which it was recorded.
    span: Option<ShotSpan>,
    program: ShotProgram,
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
            span: span.map(|span| ShotSpan {
                name: occurrence.span_name().map(Into::into),
                id: span.id.to_string(),
                target: span.call_site.as_ref().map(|call_site| call_site.target.clone()),
            }),
            program: ShotProgram {
                name: occurrence.program().map(|program| program.name.clone()),
                pid: occurrence.program().map(|program| program.pid),
            },
            end: occurrence.program_end(),
        }
    }
}

/// A file that was written.
#[derive(Clone, Debug)]
pub(super) struct WrittenFile {
    pub(super) path: PathBuf,
    pub(super) shot: Shot,
    pub(super) asked: Window,
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
    pub(super) fn row(&self) -> FileRow<'_> {
        FileRow {
            file: self.path.to_string_lossy(),
            reason: &self.shot.reason,
            what: &self.shot.what,
            epoch_nanos: self.shot.epoch_nanos,
            window_asked_ns: self.asked.nanos(),
            window_kept_ns: self.kept().nanos(),
            events: self.cut.events,
            lost: self.cut.lost,
            bytes: self.cut.bytes,
            shortfall: self.shortfall(),
            end: self.shot.end.map(|end| Some(end).into()),
        }
    }

    fn kept(&self) -> Window {
        Window { from_epoch_nanos: self.cut.from_epoch_nanos, to_epoch_nanos: self.cut.to_epoch_nanos }
    }

    /// Returns the manifest.
    pub(super) fn manifest(&self) -> Manifest<'_> {
        let span = self.shot.span.as_ref();
        Manifest { file: self.row(), span, program: &self.shot.program, asked: self.asked, kept: self.kept() }
    }
}

/// A file of `--on`.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileRow<'a> {
    file: Cow<'a, str>,
    /// The condition.
    reason: &'a str,
    /// The event in words.
    what: &'a str,
    epoch_nanos: u64,
    window_asked_ns: u64,
    window_kept_ns: u64,
    events: u64,
    lost: u64,
    bytes: u64,
    /// Why the file holds less than what was asked.
    shortfall: Option<String>,
    /// Only if the event is the end of a program.
    #[serde(flatten)]
    end: Option<EndTimes>,
}

/// The manifest of a file.
#[derive(Serialize)]
pub(super) struct Manifest<'a> {
    #[serde(flatten)]
    file: FileRow<'a>,
    /// Null if the event is neither about a span nor in one.
    span: Option<&'a ShotSpan>,
    program: &'a ShotProgram,
    asked: Window,
    kept: Window,
}
