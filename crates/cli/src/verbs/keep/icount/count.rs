//! The result, or the reason why there is none.

use super::qemu::{BUILD, Qemu};
use crate::exit::{Exit, Failure};
use crate::text::format::counted;
use crate::verbs::questions::summary::{counted_spans, not_counted};
use eventring::internal::shm;
use eventring_capture::CaptureSummary;
use eventring_export::{InstructionSummary, SpanSummary, Summary};
use std::path::Path;

/// The exit code of a program that a signal has killed, without the number of the signal.
const SIGNAL_CODE: i32 = 128;

/// The instructions of a program and of its spans.
pub(super) struct InstructionCount {
    /// The spans whose instructions were counted, those with the most first.
    pub(super) spans: Vec<(SpanSummary, InstructionSummary)>,
    /// The instructions of the whole run, with those of the recorder.
    pub(super) total: u64,
    /// Events that were lost.
    pub(super) lost: u64,
    /// Spans that were open at the end, or whose instructions are not known.
    pub(super) not_counted: u64,
}

impl InstructionCount {
    pub(super) fn new(summary: &Summary, captured: &CaptureSummary, total: u64) -> Result<Self, Failure> {
        let not_counted = summary.spans.iter().map(not_counted).fold(0, u64::saturating_add);
        let spans: Vec<(SpanSummary, InstructionSummary)> =
            counted_spans(&summary.spans).into_iter().map(|(span, counted)| (span.clone(), *counted)).collect();
        if spans.is_empty() {
            return Exit::Failed.fail(match not_counted {
                0 => format!(
                    "the program has executed {total} instructions, and no span was counted, expected at least one; record \
                     spans with eventring's tracing subscriber, with a filter that lets them through (EVENTRING_FILTER), and \
                     close them"
                ),
                _ => format!(
                    "the program has recorded {} without counts, expected counts; a program that is started by another one \
                     (exec) runs without QEMU: name that program itself; and EVENTRING_INSTRUCTIONS must not be `off`",
                    counted(not_counted, "span", "spans")
                ),
            });
        }
        Ok(Self { spans, total, lost: captured.stats.lost(), not_counted })
    }

    /// Returns true if all spans are counted, whole, and each of these counts is the same in each run.
    pub(super) fn is_exact(&self) -> bool {
        self.lost == 0 && self.not_counted == 0 && self.spans.iter().all(|(_, counted)| counted.is_exact())
    }
}

/// Returns the sum of the counts that the plugin has reported: one line for each process.
pub(super) fn total(report: &Path, qemu: &Qemu, code: i32) -> Result<u64, Failure> {
    let lines = shm::read_text(report).unwrap_or_default();
    let of_line = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?.get("instructions")?.as_u64();
    let total = lines.lines().filter_map(of_line).fold(0_u64, u64::saturating_add);
    if total > 0 {
        return Ok(total);
    }
    let qemu = qemu.program.display();
    Exit::Failed.fail(match (lines.is_empty(), code.checked_sub(SIGNAL_CODE)) {
        (true, Some(signal @ 1..)) => format!(
            "the program was killed by signal {signal}, and a program that is killed is not counted, expected one that exits; \
             let it end by itself"
        ),
        // A program that QEMU has run to its end is always counted.
        (true, _) if code == 0 => format!(
            "the run has ended with exit code 0, and the plugin has not reported, expected a count; the program has probably \
             replaced itself by another one (exec), as wrappers do, and that one runs without QEMU: name it instead; or \
             {qemu} is no QEMU that loads plugins"
        ),
        (true, _) => format!(
            "the run has ended with exit code {code}, and the plugin has not reported, expected a count; if QEMU has refused the \
             plugin (see above), {qemu} may be a static build (Debian 12: apt install qemu-user installs another one), or the plugin is not \
             the one that {BUILD} makes; if the program has replaced itself by another one (exec), which runs without QEMU, name that one"
        ),
        (false, _) => format!(
            "the plugin has counted 0 instructions, expected more; {qemu} has ended with exit code {code} before the program began: \
             if it has said why (see above), mend that, otherwise it may be a version that the plugin does not know"
        ),
    })
}

/// Returns the error that the program has made no rings.
pub(super) fn no_rings(program: &Path, code: i32, problem: Option<&str>) -> Failure {
    if let Some(problem) = problem {
        let program = program.display();
        return Exit::NotFound
            .failure(format!("{program} has ended with exit code {code}, and has no ring: {problem}"));
    }
    Exit::NotFound.failure(format!(
        "{} has recorded nothing, and has ended with exit code {code}, expected a program that records spans; if it starts \
         the program that does (a wrapper, `cargo run`), name that one; if it has ended before it records, see what it has \
         said above; if it does not record yet, call eventring::tracing::init(\"a-name\") or try_init_from_env(), with a \
         name and no path",
        program.display()
    ))
}
