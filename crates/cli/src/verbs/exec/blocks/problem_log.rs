//! Prints problems outside of blocks as they occur, and only counts them if there are many.

use crate::text::format::grouped;
use crate::text::losses::report_problem;
use eventring_exec::Problem;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The least time between two messages about problems of one kind.
const PAUSE: Duration = Duration::from_secs(1);

/// The problems that were found.
pub(super) struct ProblemLog {
    is_json: bool,
    /// True if problems are told as they come.
    is_live: bool,
    kinds: BTreeMap<&'static str, Kind>,
    pub(super) has_losses: bool,
    /// The number of problems of files that were told.
    files: usize,
}

#[derive(Default)]
struct Kind {
    /// The first problem that was not told.
    first: Option<String>,
    not_told: u64,
    told: Option<Instant>,
}

impl ProblemLog {
    pub(super) fn new(is_json: bool, is_live: bool) -> Self {
        Self { is_json, is_live, kinds: BTreeMap::new(), has_losses: false, files: 0 }
    }

    pub(super) fn problem(&mut self, problem: &Problem) {
        self.has_losses |= problem.is_loss() || matches!(problem, Problem::Unfilled { .. });
        let kind = self.kinds.entry(problem.kind()).or_default();
        kind.first.get_or_insert_with(|| problem.to_string());
        kind.not_told += 1;
        if self.is_live {
            self.pause();
        }
    }

    /// Tells what is wrong with files, each once. The list only grows.
    pub(super) fn files(&mut self, problems: &[String]) {
        let new = problems.iter().skip(self.files);
        new.for_each(|problem| report_problem(true, problem));
        self.files = problems.len();
    }

    /// Tells what is due.
    pub(super) fn pause(&mut self) {
        self.tell(|kind| kind.told.is_none_or(|told| told.elapsed() >= PAUSE));
    }

    /// Tells what is left.
    pub(super) fn end(&mut self) {
        self.tell(|_| true);
    }

    fn tell(&mut self, is_due: impl Fn(&Kind) -> bool) {
        for kind in self.kinds.values_mut().filter(|kind| is_due(kind)) {
            let Some(first) = kind.first.take() else { continue };
            let count = std::mem::take(&mut kind.not_told);
            let more = if count > 1 { format!(" (and {} more like this)", grouped(count - 1)) } else { String::new() };
            report_problem(self.is_json, &format!("outside of any block that was read: {first}{more}"));
            kind.told = Some(Instant::now());
        }
    }
}
