//! The messages of a watch, during the watch and at its end.

use super::manifest::{FileRow, WrittenFile};
use super::shared::{ActionEnd, WatchEnd, WriterMessage};
use super::watch::{ActionCounts, Watch};
use crate::input::names::unknown_names::SeenNames;
use crate::input::ring::history::{History, by_recorder};
use crate::input::ring::state::end_between;
use crate::output::json_line;
use crate::text::format::{bytes, counted, duration, events, grouped};
use crate::text::losses::{problem_line, report_problem};
use crate::text::paint::{BREAK, DIM, WARNING};
use crate::verbs::keep::capture_result::reason;
use eventring::reader::GapCause;
use eventring_capture::{CaptureSummary, EndReason};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `capture --on --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Watched<'a> {
    fired: u64,
    debounced: u64,
    suppressed: u64,
    not_written: u64,
    files: Vec<FileRow<'a>>,
    reason: &'static str,
    elapsed_ns: u64,
    events: u64,
    /// Events on which no condition was tested, or not without a lost payload.
    unseen: u64,
    /// Null, as `overwritten_before`, if nothing was kept.
    lost: Option<u64>,
    overwritten_before: Option<u64>,
    not_tracked: u64,
    commands: Option<&'a ActionCounts>,
    problems: Vec<&'a String>,
}

impl Watch<'_> {
    /// Notes what the writer says.
    pub(super) fn hear(&mut self, told: WriterMessage) {
        match told {
            WriterMessage::Written(file) => {
                self.judge.policy.count_bytes(file.cut.bytes);
                let what = &file.shot.what;
                let what = match file.shot.end {
                    // Nobody knows the time of a death better.
                    Some(end) => format!("{what} {}", end_between(end, |nanos| self.times.time(nanos))),
                    None => format!("{DIM}{}{DIM:#} {what}", self.times.time(file.shot.epoch_nanos)),
                };
                let mut line = format!(
                    "{what} → {} ({}, {})",
                    file.path.display(),
                    events(file.cut.events),
                    bytes(file.cut.bytes)
                );
                if let Some(shortfall) = file.shortfall() {
                    line += &format!("{BREAK}{WARNING}  {shortfall}{WARNING:#}");
                }
                self.screen.say(line);
                self.files.push(*file);
            }
            WriterMessage::Failed(shot, error) => {
                let message = format!("no file for `{}`: {error}", shot.what);
                self.screen.say(problem_line(true, &message));
                self.problems.push(message);
                self.failure.get_or_insert(error);
            }
            WriterMessage::Suppressed => self.judge.policy.suppress(),
            WriterMessage::LeftOut => self.not_written += 1,
            WriterMessage::ActionEnded(end) => self.note_action(end),
        }
    }

    /// Notes how a command has ended.
    fn note_action(&mut self, end: ActionEnd) {
        let (count, message) = match end {
            ActionEnd::Done => (&mut self.actions.done, None),
            ActionEnd::Failed(message) => (&mut self.actions.failed, Some(message)),
            ActionEnd::TimedOut(message) => (&mut self.actions.timed_out, Some(message)),
            ActionEnd::LeftOut(message) => (&mut self.actions.left_out, Some(message)),
        };
        *count += 1;
        if let Some(message) = message {
            self.screen.say(problem_line(false, &message));
            self.problems.push(message);
        }
    }

    pub(super) fn show(&self) {
        let counts = self.judge.policy.counts();
        let state = self.live.state();
        let lost = if state.lost() > 0 { format!(", {} lost", grouped(state.lost())) } else { String::new() };
        self.screen.progress(format!(
            "{}  {} seen{lost}; {} fired, {} debounced, {} suppressed; Ctrl-C ends it",
            duration(self.started.elapsed()),
            events(state.events()),
            counts.fired,
            counts.debounced,
            counts.suppressed
        ));
    }

    /// Says if the rings hold less than the time before an event that files shall hold.
    ///
    /// With `is_lazy`, they are not read before something fires.
    pub(super) fn say_what_the_rings_hold(&self, names: &[PathBuf], is_lazy: bool) {
        let before = self.args.triggers.before.as_secs_f64();
        for shards in by_recorder(self.live.rings()) {
            let past = History::read_shards(shards.iter().copied(), true);
            let is_full = past.fill >= 0.99;
            if is_full && past.seconds < before && past.seconds > 0.0 {
                let name = shards[0].path().or(names.first().map(PathBuf::as_path));
                let (which, keeps) = match is_lazy {
                    true => (String::new(), ", and --memory or --spool keeps it"),
                    false => (format!(" of the next {}", duration(Duration::from_secs_f64(before - past.seconds))), ""),
                };
                self.screen.say(format!(
                    "{WARNING}{} holds {} at its present rate: files{which} begin later than --before says; with {} \
                     times the memory, its program would hold it{keeps}{WARNING:#}",
                    name.map(Path::display).map(|name| name.to_string()).unwrap_or_default(),
                    duration(Duration::from_secs_f64(past.seconds)),
                    (before / past.seconds).ceil()
                ));
            }
        }
    }

    /// Returns how many events were not seen, or could not be tested because their payload was lost.
    fn unseen(&self) -> u64 {
        self.live.state().lost().saturating_add(self.unread).saturating_add(self.conditions.untested())
    }

    /// Prints the result as JSON. `summary` is `None` if the capture has failed.
    pub(super) fn print_json(&self, end: WatchEnd, summary: Option<&CaptureSummary>) -> anyhow::Result<()> {
        let of_capture = summary.map_or(&[][..], |summary| &summary.problems);
        let counts = self.judge.policy.counts();
        let left_out = self.why_left_out();
        let state = self.live.state();
        let watched = Watched {
            fired: counts.fired,
            debounced: counts.debounced,
            suppressed: counts.suppressed,
            not_written: self.not_written,
            files: self.files.iter().map(WrittenFile::row).collect(),
            reason: reason(end.reason),
            elapsed_ns: end.elapsed.as_nanos() as u64,
            events: state.events(),
            unseen: self.unseen(),
            lost: summary.map(|summary| summary.stats.lost()),
            overwritten_before: summary.map(|summary| summary.stats.missing_by(GapCause::OverwrittenBefore)),
            not_tracked: state.not_tracked(),
            commands: self.args.triggers.exec.as_ref().map(|_| &self.actions),
            problems: of_capture.iter().chain(&self.problems).chain(&left_out).collect(),
        };
        Ok(json_line(&watched)?)
    }

    /// Prints the result on stderr. `summary` is `None` if the capture has failed.
    pub(super) fn print(&self, end: WatchEnd, summary: Option<&CaptureSummary>) {
        if !self.args.json {
            let of_capture = summary.map_or(&[][..], |summary| &summary.problems);
            let counts = self.judge.policy.counts();
            let state = self.live.state();
            let ends = || (0..state.programs().len()).filter_map(|program| state.end_of(program));
            let seen = match self.live.is_looking() {
                true => "tables of the present read".to_owned(),
                false => format!("{} seen", events(state.events())),
            };
            let has_seen_death = ends().any(|end| end.has_died);
            say!(
                "{} fired, {} debounced, {} suppressed; {seen} in {}{DIM} ({}){DIM:#}",
                counts.fired,
                counts.debounced,
                counts.suppressed,
                duration(end.elapsed),
                match end.reason {
                    EndReason::WritersEnded if has_seen_death => "the rings have ended; a program died",
                    EndReason::WritersEnded => "the rings have ended",
                    EndReason::Duration => "the time was over",
                    _ => "interrupted",
                }
            );
            for problem in of_capture {
                report_problem(false, problem);
            }
        }
        if let Some(left_out) = self.why_left_out() {
            report_problem(false, &left_out);
        }
        let seen = SeenNames::from_rings(self.live.rings().rings().iter().filter_map(|ring| ring.reader()));
        self.args.triggers.conditions.iter().for_each(|condition| seen.report_condition("--on", condition));
        let untested = self.conditions.untested();
        if untested > 0 && !self.args.json {
            let have = counted(untested, "event has", "events have");
            let message = "lost the payload on which a condition depends: whether they fulfil it is not known";
            say!("{WARNING}{have} {message}{WARNING:#}");
        }
        let unseen = self.unseen().saturating_sub(untested);
        if unseen > 0 && !self.args.json {
            let why = match self.unread {
                0 => "overwritten before the watch read them",
                _ => "overwritten before the watch read them, or not read any more at its end",
            };
            let unseen = counted(unseen, "event was", "events were");
            say!("{WARNING}{unseen} {why}: what they would have fulfilled is not known{WARNING:#}");
        }
    }
}
