//! Flags of spans: long durations, and spans that are still open.

use crate::collect::Collected;
use crate::flag::{Flag, FlagKind, HUNG_NANOS, HUNG_TIMES, OPEN_SPANS, SLOW_NANOS, SLOW_TIMES};
use crate::names::NameStats;
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::numbers::{counted, grouped, time};
use eventring_profile::why::{Question, why};

/// The smallest number of spans of a name, to say what is usual.
const SPANS_MIN: u64 = 20;
/// The smallest number of closed spans, to say that an open one is hung.
const CLOSED_MIN: u64 = 3;
/// The names of slow spans of which it is asked why. Each reads the capture twice.
const WHY_MAX: usize = 3;

pub(crate) fn find(capture: &CaptureFile, collected: &Collected, flags: &mut Vec<Flag>) -> Result<(), CaptureError> {
    let mut slow: Vec<Flag> = Vec::new();
    for stats in &collected.names.all {
        flags.extend(open(stats));
        if let Some(step) = stats.steps.step() {
            let evidence =
                format!("half of them take {}, half took {} before", time(step.after_nanos), time(step.before_nanos));
            let weight = step.after_nanos - step.before_nanos;
            flags.push(Flag::new(FlagKind::LatencyStep, &stats.name, weight, evidence).at(step.at_nanos));
        }
        slow.extend(slow_spans(stats));
    }
    slow.sort_by_key(|flag| std::cmp::Reverse(flag.weight));
    for flag in slow.iter_mut().take(WHY_MAX) {
        let Some(id) = flag.id else { continue };
        let answer = why(capture, &Question { id: Some(id), slowest: 1, ..Question::default() })?;
        let Some(cause) = answer.spans.first().and_then(|span| span.cause.as_ref()) else { continue };
        flag.kind = match cause.kind.name() {
            "lock" => FlagKind::LockWait,
            "child" => FlagKind::SlowChild,
            "processor" => FlagKind::ProcessorWait,
            _ => FlagKind::SlowSpan,
        };
        let evidence = format!("{}; {}: {}", flag.evidence, cause.kind.name(), cause.evidence);
        let whole = Flag::new(flag.kind, &flag.what, flag.weight, evidence).count(flag.count).id(id);
        *flag = Flag { at_nanos: flag.at_nanos, is_of_spans: flag.is_of_spans, ..whole };
    }
    flags.extend(slow);
    Ok(())
}

/// Returns the flag of spans that are open far too long, or far too many.
fn open(stats: &NameStats) -> Option<Flag> {
    let (age_nanos, id, start_nanos) = stats.oldest;
    let of_closed = format!(
        "{} closed, the longest after {}",
        counted(stats.times.count, "is", "are"),
        time(stats.times.max_nanos)
    );
    let opened = counted(stats.open, "is open", "are open");
    if stats.open >= OPEN_SPANS && stats.open > stats.times.count {
        return Some(
            Flag::new(FlagKind::OpenSpans, &stats.name, stats.open, format!("{opened}, {of_closed}")).count(stats.open),
        );
    }
    let limit_nanos = stats.times.max_nanos.saturating_mul(HUNG_TIMES).max(HUNG_NANOS);
    // A task that waits for its next work is as it should be.
    (stats.times.count >= CLOSED_MIN && !stats.are_tasks && age_nanos >= limit_nanos).then(|| {
        let evidence = format!("{opened}, the oldest for {}; {of_closed}", time(age_nanos));
        Flag::new(FlagKind::HungSpan, &stats.name, age_nanos, evidence).count(stats.open).at(start_nanos).id(id)
    })
}

/// Returns the flag of a name of which some spans took far longer than others.
fn slow_spans(stats: &NameStats) -> Option<Flag> {
    let usual_nanos = stats.times.p90_nanos;
    let limit_nanos = usual_nanos.saturating_mul(SLOW_TIMES).max(SLOW_NANOS);
    (stats.times.count >= SPANS_MIN && stats.times.max_nanos >= limit_nanos).then(|| {
        let slow = stats.longer_than(limit_nanos).max(1);
        let evidence = format!(
            "{} longer than {}, the longest {}; 90 % of {} took at most {}",
            counted(slow, "took", "took"),
            time(limit_nanos),
            time(stats.times.max_nanos),
            grouped(stats.times.count),
            time(usual_nanos)
        );
        let (_, id, start_nanos) = stats.longest;
        let flag = Flag::new(FlagKind::SlowSpan, &stats.name, stats.times.max_nanos, evidence);
        Flag { is_of_spans: !stats.are_tasks, ..flag.count(slow).at(start_nanos).id(id) }
    })
}
