//! The search for red flags: in the counts of the pass, in tasks, and in blocks.
//!
//! | file | idea |
//! |---|---|
//! | `spans` | durations, open spans |
//! | `tasks` | polls, wakes, locks, deadlocks |

mod spans;
mod tasks;

use crate::collect::Collected;
use crate::flag::{Flag, FlagKind};
use eventring_capture::recording::ReplayCounts;
use eventring_capture::{CaptureError, CaptureFile};
use eventring_exec::{Blocks, ChainSummary, Wanted};
use eventring_export::numbers::{counted, grouped, time};
use eventring_export::{ProgramState, ProgramSummary};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Returns the flags in the order of their importance: the worst of each kind, then the second of each kind.
pub(crate) fn flags(
    capture: &CaptureFile,
    collected: &Collected,
    counts: &ReplayCounts,
) -> Result<Vec<Flag>, CaptureError> {
    let mut flags = Vec::new();
    whole(capture, collected, counts, &mut flags);
    programs(capture, collected, &mut flags);
    errors(collected, &mut flags);
    spans::find(capture, collected, &mut flags)?;
    if collected.has_tasks {
        tasks::find(capture, &mut flags)?;
    }
    if collected.has_blocks {
        blocks(capture, &mut flags);
    }
    flags.sort_by_key(|flag| (flag.kind, Reverse(flag.weight)));
    let mut places: HashMap<FlagKind, usize> = HashMap::new();
    let mut placed: Vec<(usize, Flag)> = Vec::with_capacity(flags.len());
    for flag in flags {
        let place = places.entry(flag.kind).or_default();
        placed.push((*place, flag));
        *place += 1;
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, flag)| flag).collect())
}

/// Whether the capture is whole.
fn whole(capture: &CaptureFile, collected: &Collected, counts: &ReplayCounts, flags: &mut Vec<Flag>) {
    let mut problems: Vec<&String> = counts.problems.iter().collect();
    problems.dedup();
    for problem in problems {
        flags.push(Flag::new(FlagKind::Damaged, "the capture", 0, problem.clone()));
    }
    for (ring, counted_ring) in capture.rings().iter().zip(&collected.rings) {
        let lost = counted_ring.lost.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if lost > 0 {
            let causes = counted_ring.lost.iter().map(|(cause, count)| format!("{} {}", grouped(*count), cause.name()));
            let causes = causes.collect::<Vec<_>>().join(", ");
            let evidence = format!("{} lost: {causes}", counted(lost, "event is", "events are"));
            flags.push(Flag::new(FlagKind::Losses, &ring.name, lost, evidence).count(lost));
        }
        let (count, first_nanos) = counted_ring.record_errors;
        if count > 0 {
            let evidence = format!("{} could not be recorded", counted(count, "event", "events"));
            let flag = Flag::new(FlagKind::RecordErrors, &ring.name, count, evidence);
            flags.push(flag.count(count).at(first_nanos));
        }
    }
    for ring in &counts.payload_losses {
        let lost = ring.expired.saturating_add(ring.malformed).saturating_add(ring.omitted);
        let evidence = format!("{} no payload", counted(lost, "event has", "events have"));
        flags.push(Flag::new(FlagKind::Losses, &ring.ring, lost, evidence).count(lost));
    }
}

/// How programs ended, and whether they fell silent.
fn programs(capture: &CaptureFile, collected: &Collected, flags: &mut Vec<Flag>) {
    for (index, program) in ProgramSummary::all(capture).iter().enumerate() {
        let name = format!("{} ({})", program.name, program.pid);
        let innermost = collected.innermost.get(index).map_or(&[][..], Vec::as_slice);
        let until_nanos = collected.until_nanos.get(index).copied().unwrap_or(0);
        if program.state == ProgramState::Died {
            let place = match innermost {
                [] => "no thread was in a span".to_owned(),
                spans => format!("its threads were in {}", spans.join(", ")),
            };
            flags.push(
                Flag::new(FlagKind::Died, &name, 1, format!("it did not close its rings; {place}")).at(until_nanos),
            );
        }
        let silence = collected.pauses.get(index).and_then(|pauses| pauses.silence(until_nanos));
        let Some((nanos, from_nanos, until)) = silence else { continue };
        let place = match until {
            Some("") => String::new(),
            Some(until) => format!(", and then {until}"),
            None if innermost.is_empty() => " until the end".to_owned(),
            None => format!(" until the end; its threads were in {}", innermost.join(", ")),
        };
        let evidence = format!("it recorded nothing for {}{place}", time(nanos));
        flags.push(Flag::new(FlagKind::Silence, &name, nanos, evidence).at(from_nanos));
    }
}

fn errors(collected: &Collected, flags: &mut Vec<Flag>) {
    for site in &collected.errors.sites {
        let place = if site.span.is_empty() { String::new() } else { format!(" in {}", site.span) };
        let (kind, nanos, evidence) = match (site.panic_nanos, site.burst_nanos) {
            (Some(nanos), _) => (FlagKind::Panic, nanos, format!("{}{place}", site.text)),
            (None, Some(nanos)) => (
                FlagKind::ErrorBurst,
                nanos,
                format!("{}{place}: {}", counted(site.count, "error", "errors"), site.text),
            ),
            (None, None) => continue,
        };
        flags.push(Flag::new(kind, &site.place, site.count, evidence).count(site.count).at(nanos));
    }
}

fn blocks(capture: &CaptureFile, flags: &mut Vec<Flag>) {
    let Ok(blocks) = Blocks::of_capture(capture, Wanted::ALL) else { return };
    let chain = ChainSummary::from_updates(blocks);
    let of = format!("of {}", counted(chain.blocks, "block", "blocks"));
    let incomplete = chain.blocks.saturating_sub(chain.complete);
    for (kind, count, what) in [
        (FlagKind::BlocksRejected, chain.rejected, "rejected"),
        (FlagKind::BlocksIncomplete, incomplete, "not complete"),
    ] {
        if count > 0 {
            let evidence = format!("{} {what}, {of}", counted(count, "block is", "blocks are"));
            flags.push(Flag::new(kind, "blocks", count, evidence).count(count));
        }
    }
}
