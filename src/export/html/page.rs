//! The page: a header, the loss account, tables and charts, and a document with speedscope.

use super::super::numbers::{grouped, time};
use super::super::outline::Outline;
use super::super::recording::CaptureRecording;
use super::super::summary::Summary;
use super::figures::Figures;
use super::profile::EmbeddedProfile;
use super::text::{escape, fill, utc};
use super::{charts, frame, tables};
use crate::reader::GapCause;
use std::fmt::Write as _;

/// Everything that a page shows.
pub(super) struct CapturePage<'p> {
    pub(super) recording: &'p CaptureRecording<'p>,
    pub(super) summary: &'p Summary,
    pub(super) outline: &'p Outline,
    pub(super) figures: &'p Figures,
    pub(super) profile: &'p EmbeddedProfile,
}

impl CapturePage<'_> {
    pub(super) fn html(&self) -> String {
        fill(include_str!("page.html"), |name| match name {
            "policy" => frame::policy(),
            "style" => include_str!("page.css").into(),
            "title" => escape(&self.title()),
            "when" => self.when(),
            "tiles" => self.tiles(),
            "problems" => self.problems(),
            "spans" => tables::spans(self),
            "events" => charts::events(self.figures, self.outline),
            "durations" => self.durations(),
            "rings" => tables::rings(self),
            "cut" if self.profile.is_cut => "cut".into(),
            "cut" => "note".into(),
            "note" => escape(&self.profile.note),
            "speedscope" => escape(&frame::document(&self.profile.gzip)),
            "license" => escape(frame::LICENSE),
            _ => String::new(),
        })
    }

    /// Returns the number of events that were lost for a cause, in one ring or in all of them.
    pub(super) fn lost_by(&self, cause: GapCause, ring: Option<u32>) -> u64 {
        let losses = self.outline.losses.iter().filter(|loss| ring.is_none_or(|ring| ring == loss.ring));
        losses.fold(0, |sum, loss| sum.saturating_add(loss.by_cause[cause as usize]))
    }

    /// Returns the names of the programs, without repetition.
    fn title(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for ring in self.recording.capture.rings() {
            let name = if ring.program_name.is_empty() { &ring.name } else { &ring.program_name };
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        const NAMES_MAX: usize = 4;
        let more =
            if names.len() > NAMES_MAX { format!(" and {} more", names.len() - NAMES_MAX) } else { String::new() };
        names.truncate(NAMES_MAX);
        format!("{}{more}", names.join(", "))
    }

    fn when(&self) -> String {
        let (first, last) = (self.outline.first_nanos, self.outline.last_nanos);
        let length = time(last.saturating_sub(first));
        let mut pids: Vec<u32> = self.recording.capture.rings().iter().map(|ring| ring.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let process = match &pids[..] {
            [pid] if *pid > 0 => format!("process {pid}"),
            pids => format!("{} processes", pids.len()),
        };
        let rings = self.recording.capture.rings().len();
        format!("{} · {length} · {process} · {rings} {}", utc(first), if rings == 1 { "ring" } else { "rings" })
    }

    /// Returns the loss account and other sums.
    fn tiles(&self) -> String {
        let counts = &self.outline.counts;
        let events = self.figures.events_of_rings.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let tiles = [
            ("events captured", events, false),
            ("events lost", counts.lost, true),
            ("payloads lost", counts.lost_payloads(), true),
            ("spans", counts.spans, false),
            ("still open", counts.open_spans, false),
            ("log records", counts.events, false),
            ("errors", self.figures.all_errors, true),
            ("typed events", counts.typed_events, false),
        ];
        let mut out = String::new();
        for (what, count, is_bad) in tiles {
            let class = if is_bad && count > 0 { "tile bad" } else { "tile" };
            _ = write!(out, "<div class=\"{class}\"><b>{}</b><span>{what}</span></div>", grouped(count));
        }
        out
    }

    /// Returns the losses by cause, the problems of the capture, and what earlier files of it would have had.
    fn problems(&self) -> String {
        let mut out = String::new();
        let causes = GapCause::ALL.into_iter().map(|cause| (cause, self.lost_by(cause, None)));
        let causes = causes.filter(|(cause, count)| cause.is_loss() && *count > 0);
        let causes: Vec<String> =
            causes.map(|(cause, count)| format!("{} {}", grouped(count), cause.name().replace('_', " "))).collect();
        if !causes.is_empty() {
            _ = write!(out, "<p class=\"cut\">Lost events: {}.</p>", causes.join(", "));
        }
        for problem in &self.summary.problems {
            _ = write!(out, "<p class=\"cut\">{}</p>", escape(problem));
        }
        if self.summary.removed > 0 {
            let removed = grouped(self.summary.removed);
            _ = write!(out, "<p class=\"cut\">{removed} more events were in files that the capture has removed.</p>");
        }
        out
    }

    fn durations(&self) -> String {
        let mut out = String::new();
        for (histogram, span) in
            self.figures.histograms.iter().zip(&self.summary.spans).filter(|(_, span)| span.count > 0)
        {
            let chart = charts::durations(histogram, span);
            let name = escape(&span.name);
            let (p50, p99) = (time(span.p50_nanos), time(span.p99_nanos));
            _ = write!(out, "<figure><figcaption><b>{name}</b> p50 {p50} · p99 {p99}</figcaption>{chart}</figure>");
        }
        out
    }
}
