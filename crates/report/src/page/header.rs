//! The head of a page about a capture: the captured rings, the counts of losses, and other sums.

use super::charts;
use super::figures::CaptureFigures;
use crate::page::html::{escape, shortened, utc};
use eventring::reader::GapCause;
use eventring_export::ProgramSummary;
use eventring_export::numbers::{counted, grouped, time};
use std::fmt::Write as _;

impl CaptureFigures<'_> {
    /// Returns the names of the programs, without repetition.
    pub(crate) fn title(&self) -> String {
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
        let names: Vec<_> = names.into_iter().map(shortened).collect();
        format!("{}{more}", names.join(", "))
    }

    /// Returns when and where the events were recorded, as HTML.
    pub(crate) fn when(&self) -> String {
        let mut pids: Vec<u32> = self.recording.capture.rings().iter().map(|ring| ring.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let process = match &pids[..] {
            [pid] if *pid > 0 => format!("process {pid}"),
            pids => counted(pids.len() as u64, "process", "processes"),
        };
        let rings = self.recording.capture.rings().len();
        let when = match self.events() {
            0 => "no events".to_owned(),
            _ => format!("{} · {}", utc(self.outline.counts.first_nanos), time(self.length_nanos())),
        };
        format!("{when} · {process} · {rings} {}{}", if rings == 1 { "ring" } else { "rings" }, self.deaths())
    }

    /// Says which programs died, and between which times, as HTML.
    fn deaths(&self) -> String {
        let died = |program: &&ProgramSummary| program.end.is_some_and(|end| end.has_died);
        let words = self.summary.programs.iter().filter(died).filter_map(|program| {
            let end = program.end?;
            let [after, before] = [end.after_epoch_nanos, end.before_epoch_nanos].map(utc);
            let who = if self.summary.programs.len() > 1 { shortened(&program.name) } else { "the program".into() };
            Some(format!(" · <b>{} died between {after} and {before}</b>", escape(&who)))
        });
        words.collect()
    }

    /// Returns the loss account and other sums, as HTML.
    pub(crate) fn tiles(&self) -> String {
        let (counts, chain) = (self.counts(), &self.blocks.summary);
        let mut tiles = vec![
            ("events captured", self.events(), false),
            ("overwritten before", counts.overwritten_before, false),
            ("events lost", counts.lost_since(), true),
            ("payloads lost", counts.lost_payloads(), true),
        ];
        if counts.filtered > 0 {
            tiles.push(("left out by the filter", counts.filtered, false));
        }
        if self.has_span_rings() || chain.blocks == 0 {
            tiles.extend([
                ("spans", counts.spans, false),
                ("times entered", counts.slices, false),
                ("still open", counts.open_spans, false),
                ("log records", counts.events, false),
                ("errors", self.errors, true),
            ]);
        }
        tiles.push(("typed events", counts.typed_events, false));
        if chain.blocks > 0 {
            tiles.extend([("blocks", chain.blocks, false), ("transactions", chain.transactions, false)]);
            tiles.push(("blocks not complete", chain.blocks - chain.complete, true));
        }
        let mut out = String::new();
        for (what, count, is_bad) in tiles {
            let class = if is_bad && count > 0 { "tile bad" } else { "tile" };
            _ = write!(out, "<div class=\"{class}\"><b>{}</b><span>{what}</span></div>", grouped(count));
        }
        out
    }

    /// Returns true if the capture can have spans.
    pub(crate) fn has_span_rings(&self) -> bool {
        self.recording.capture.rings().iter().any(eventring_capture::CapturedRing::is_perf)
    }

    /// Returns the largest number of events a second.
    pub(crate) fn rate_max(&self) -> f64 {
        self.activity.rate_max()
    }

    /// Returns the chart of the events a second. `rate_max` is the rate at the top of its scale.
    pub(crate) fn events_chart(&self, rate_max: f64) -> String {
        if self.events() == 0 {
            return "<p class=\"note\">No events.</p>".into();
        }
        charts::events(&self.activity, &self.outline, rate_max)
    }

    /// Returns the losses by cause, the problems of the capture, and what earlier files of it would have had, as HTML.
    pub(crate) fn problems(&self) -> String {
        let mut out = String::new();
        let causes = GapCause::ALL.into_iter().map(|cause| (cause, self.lost_by(cause, None)));
        let before = self.lost_by(GapCause::OverwrittenBefore, None);
        if before > 0 {
            let events = counted(before, "event", "events");
            _ = write!(out, "<p class=\"note\">{events} had been overwritten before the capture began.</p>");
        }
        let is_past = |cause: GapCause| cause == GapCause::OverwrittenBefore;
        let causes = causes.filter(|(cause, count)| cause.is_loss() && !is_past(*cause) && *count > 0);
        let causes: Vec<String> =
            causes.map(|(cause, count)| format!("{} {}", grouped(count), cause.name().replace('_', " "))).collect();
        if !causes.is_empty() {
            _ = write!(out, "<p class=\"cut\">Lost events: {}.</p>", causes.join(", "));
        }
        for problem in &self.summary.problems {
            _ = write!(out, "<p class=\"cut\">{}</p>", escape(problem));
        }
        if self.summary.removed > 0 {
            let removed = counted(self.summary.removed, "more event was", "more events were");
            _ = write!(out, "<p class=\"cut\">{removed} in files that the capture has removed.</p>");
        }
        out
    }
}
