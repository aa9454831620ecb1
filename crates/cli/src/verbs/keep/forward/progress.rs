//! The output about forwarding: a line of progress, problems, the counts at the end.

use crate::input::reading::spinner;
use crate::output::json_line;
use crate::text::format::{bytes, counted, events, grouped};
use crate::text::losses::report_problem;
use crate::text::paint::{DIM, WARNING};
use crate::verbs::keep::capture::filter::report_filtered;
use eventring_forward::{ForwardProgress, ForwardSummary};
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time for which a problem lasts before it is reported.
const PROBLEM_TIME: Duration = Duration::from_secs(1);

/// Problems with a broker or a collector, each of which is reported once, if it lasts.
#[derive(Debug)]
pub(super) struct Problems {
    /// The one to whom or from whom events go.
    other: &'static str,
    since: Option<Instant>,
    is_reported: bool,
}

impl Problems {
    pub(super) fn with(other: &'static str) -> Self {
        Self { other, since: None, is_reported: false }
    }

    /// Notes the present problem. Prints on stderr when it has lasted for a while, and when it is over.
    pub(super) fn note(&mut self, bar: &ProgressBar, problem: Option<&str>) {
        let Some(problem) = problem else {
            if self.is_reported {
                bar.suspend(|| say!("{DIM}{} is back{DIM:#}", self.other));
            }
            *self = Self::with(self.other);
            return;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if !self.is_reported && since.elapsed() > PROBLEM_TIME {
            self.is_reported = true;
            bar.suspend(|| {
                let other = self.other;
                report_problem(false, &format!("nothing goes to or from {other} now; it is asked again: {problem}"));
            });
        }
    }
}

/// The progress of all forwarders.
#[derive(Debug)]
pub(super) struct ForwardersProgress {
    bar: ProgressBar,
    states: Mutex<(Vec<ForwardProgress>, Problems)>,
}

impl Default for ForwardersProgress {
    fn default() -> Self {
        Self { bar: spinner(), states: Mutex::new((Vec::new(), Problems::with("the broker"))) }
    }
}

impl ForwardersProgress {
    /// Returns the number of a new forwarder.
    pub(super) fn begin(&self) -> usize {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.0.push(ForwardProgress::default());
        states.0.len() - 1
    }

    pub(super) fn set(&self, forwarder: usize, progress: &ForwardProgress) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.0.get_mut(forwarder) {
            state.clone_from(progress);
        }
    }

    /// Returns what a forwarder has sent so far.
    pub(super) fn sent(&self, forwarder: usize) -> ForwardProgress {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.0.get(forwarder).cloned().unwrap_or_default()
    }

    /// Shows the line of progress, and what is wrong.
    pub(super) fn show(&self) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, problems) = &mut *states;
        let sum = |count: fn(&ForwardProgress) -> u64| all.iter().map(count).sum::<u64>();
        let lost = match sum(|state| state.lost.saturating_sub(state.overwritten_before)) {
            0 => String::new(),
            lost => format!(", {} lost", grouped(lost)),
        };
        let (events, batches) = (events(sum(|state| state.events)), batches(sum(|state| state.batches)));
        let bytes = bytes(sum(|state| state.bytes));
        self.bar.set_message(format!("{events} in {batches}{lost}, {bytes}; Ctrl-C ends it"));
        self.bar.tick();
        let problem = all.iter().find_map(|state| state.problem.clone());
        problems.note(&self.bar, problem.as_deref());
    }

    /// Prints on stderr why events of a ring are not forwarded any more.
    pub(super) fn problem(&self, problem: &str) {
        self.bar.suspend(|| report_problem(true, problem));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints the counts of all forwarders. `failed` are the rings whose forwarding has failed, with what was sent of
    /// them until then.
    pub(super) fn summary(
        &self,
        is_json: bool,
        stream: &str,
        summaries: &[ForwardSummary],
        failed: &[(String, ForwardProgress)],
    ) -> anyhow::Result<()> {
        let each = || summaries.iter().map(|it| &it.sent).chain(failed.iter().map(|(_, sent)| sent));
        let sum = |count: fn(&ForwardProgress) -> u64| each().map(count).sum::<u64>();
        let (all, before) = (sum(|sent| sent.events), sum(|sent| sent.overwritten_before));
        let lost = sum(|sent| sent.lost).saturating_sub(before);
        if is_json {
            let whole =
                summaries.iter().map(|it| ForwardedRing { sent: &it.sent, subject: Some(&it.subject), failed: None });
            let others = failed.iter().map(|(ring, sent)| ForwardedRing { sent, subject: None, failed: Some(ring) });
            let mut total = ForwardProgress::default();
            each().for_each(|sent| total.add(sent));
            let forwarded = Forwarded { total, stream, rings: whole.chain(others).collect() };
            return Ok(json_line(&forwarded)?);
        }
        let (batches, bytes) = (batches(sum(|sent| sent.batches)), bytes(sum(|sent| sent.bytes)));
        say!("{} in {batches} ({bytes}) sent to the stream {stream}", events(all));
        report_filtered(all, sum(|sent| sent.filtered));
        if lost > 0 {
            say!(
                "{WARNING}{} lost before being sent; the batches say which{WARNING:#}",
                counted(lost, "event was", "events were")
            );
        }
        if before > 0 {
            say!("{DIM}{} had been overwritten before the forwarder began{DIM:#}", events(before));
        }
        Ok(())
    }
}

/// Returns `1 batch` or `1,203 batches`.
fn batches(count: u64) -> String {
    counted(count, "batch", "batches")
}

/// What `forward --json` prints of a broker.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Forwarded<'a> {
    #[serde(flatten)]
    total: ForwardProgress,
    stream: &'a str,
    rings: Vec<ForwardedRing<'a>>,
}

/// What was sent of a ring.
#[derive(Serialize, JsonSchema)]
struct ForwardedRing<'a> {
    #[serde(flatten)]
    sent: &'a ForwardProgress,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    /// The name, instead of the subject, if the forwarding has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<&'a str>,
}
