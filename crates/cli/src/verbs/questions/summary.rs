//! `eventring summary`.

use crate::args::limit::{self, LimitArgs};
use crate::exit::Exit;
use crate::input::ring::state::end_in_words;
use crate::input::saved::Saved;
use crate::text::format::{TimeFormat, bytes, columns, counted, grouped, rate, shown_name};
use crate::text::losses::{MissingEvents, removed_in_words};
use crate::text::out::stdout;
use crate::text::paint::{DIM, PLAIN, WARNING};
use crate::text::table::NumberTable;
use crate::verbs::saved_args::SavedArgs;
use eventring_capture::EndReason;
use eventring_capture::numbers::time;
use eventring_exec::{Blocks, ChainFigures, ChainSummary, Wanted};
use eventring_export::{
    EventSummary, InstructionSummary, ProgramState, SharedNames, SpanSummary, Summary, full_name, summarize,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Count spans and typed events: their durations and sizes
///
/// Those of a capture, or those that a ring holds now. `total` is the time from creation to close, `self` that without
/// the time of children, `busy` that of threads in the span, `idle` that without one. Of several threads that are in a
/// span at the same time, `busy` counts the time of each, so it may be more than `total`. If threads have measured it,
/// `cpu` is the part of `busy` in which they ran, `queue` that in which they had no processor, and `sleep` that in which
/// they waited for something. Captures of `eventring profile` have `cpu`, `runnable` and `blocked` instead: what the
/// threads did in the spans, and in those around which they are; `self` without the latter. The percentiles are those of
/// single spans, to three digits. Spans that were open, or of which an end may be lost, are counted beside them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    saved: SavedArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show what the spans of each name have allocated, if the program counts it (`eventring::alloc`)
    #[arg(long)]
    allocations: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let saved = args.saved.open(false, args.json, args.strict, |_, _| ())?;
    let summary = summarize(&saved.capture);
    saved.reading.end();
    let summary = summary?;
    let chain = chain(&saved);
    let mut out = stdout();
    if args.json {
        let answer = SummaryAnswer { summary: &summary, chain: chain.as_ref().map(ChainSummary::figures) };
        args.limit.write_whole(&answer, "spans", limit::full_name)?;
    } else {
        write(&mut out, &summary, &saved)?;
        if args.allocations {
            write_allocations(&mut out, &summary)?;
        }
        if let Some(chain) = &chain {
            write_chain(&mut out, chain)?;
        }
    }
    out.flush()?;
    let exit = saved.report(&args.saved.names, &summary.problems, &summary.payload_losses);
    Ok(exit.or_if(args.strict && MissingEvents::from(&summary).is_loss(), Exit::Lost))
}

/// What `summary --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SummaryAnswer<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Of execution events.
    #[serde(flatten)]
    chain: Option<ChainFigures>,
}

/// Returns the figures of the blocks, if the capture has execution events and all of it is wanted.
fn chain(saved: &Saved) -> Option<ChainSummary> {
    if saved.is_part {
        return None;
    }
    let blocks = Blocks::of_capture(&saved.capture, Wanted::ALL).ok()?;
    Some(ChainSummary::from_updates(blocks)).filter(|chain| chain.blocks > 0)
}

fn write_chain(out: &mut impl Write, chain: &ChainSummary) -> io::Result<()> {
    let per_second = |number: u64| chain.per_second(number).map_or("–".to_owned(), rate);
    writeln!(out)?;
    writeln!(
        out,
        "{}, {}, {} gas; {} transactions and {} gas a second",
        counted(chain.blocks, "block", "blocks"),
        counted(chain.transactions, "transaction", "transactions"),
        grouped(chain.gas_used),
        per_second(chain.transactions),
        per_second(chain.gas_used),
    )?;
    let mut table = NumberTable::new(["", "count", "p50", "p90", "p99", "max"]);
    let times = [
        ("blocks", &chain.block_nanos, chain.block_nanos_max),
        ("transactions", &chain.txn_nanos, chain.txn_nanos_max),
    ];
    for (name, nanos, max) in times {
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|quantile| time(nanos.value_at_quantile(quantile)));
        table.row([name.to_owned(), grouped(nanos.len()), p50, p90, p99, time(max)], PLAIN);
    }
    table.write(out, columns(&io::stdout()))?;
    if let Some((number, most)) = chain.largest {
        let transactions = counted(most, "transaction", "transactions");
        writeln!(
            out,
            "{DIM}the largest is {number} with {transactions}; {} touched what an earlier one of their block had changed{DIM:#}",
            grouped(chain.conflicts)
        )?;
    }
    for (count, what) in [
        (chain.blocks - chain.complete, "not complete"),
        (chain.rejected, "rejected"),
        (chain.reexecuted, "executed again"),
    ] {
        if count > 0 {
            writeln!(out, "{WARNING}{} {what}{WARNING:#}", counted(count, "block is", "blocks are"))?;
        }
    }
    Ok(())
}

fn write(out: &mut impl Write, summary: &Summary, saved: &Saved) -> io::Result<()> {
    // `part` is the number that the first opened file has in its rotated capture, counted from 1. It is 0 if the
    // capture is not rotated.
    let part = saved.capture.part();
    let beginning = match (saved.is_cut, part > 1, summary.lost > 0) {
        (true, false, false) if summary.overwritten_before == 0 => "is not selected",
        (true, ..) => "was lost or is not selected",
        (false, false, _) => "was lost",
        (false, true, false) => "is in an earlier file",
        (false, true, true) => "was lost or is in an earlier file",
    };
    let end_reason = saved.capture.end().map(|end| end.reason);
    let rings = saved.capture.end().map_or(&[][..], |end| &end.stats.rings);
    let have_died = rings.iter().all(|ring| ring.end.is_some_and(|end| end.has_died));
    let open = match (saved.is_cut, end_reason) {
        (true, _) => "open, or their end is not selected",
        // The rings have no common end in this file.
        (false, Some(EndReason::Rotated | EndReason::Size) | None) => "open, or closed after the end of this file",
        (false, Some(_)) if have_died => "open when the program died",
        (false, Some(_)) => "open",
    };
    let table = NumberTable::new(["span", "count", "total", "self", "busy", "idle", "p50", "p90", "p99", "max"]);
    let mut table = table.leaving_out(&[5, 7, 4]);
    for span in &summary.spans {
        table.row_with_note(times(span), PLAIN, note(span, beginning, open));
    }
    match (summary.spans.is_empty(), summary.events.is_empty()) {
        (false, _) => table.write(out, columns(&io::stdout()))?,
        (true, true) if summary.log_records > 0 => {}
        (true, true) => writeln!(out, "{DIM}no spans and no typed events{DIM:#}")?,
        (true, false) => {}
    }
    if !summary.events.is_empty() {
        if !summary.spans.is_empty() {
            writeln!(out)?;
        }
        typed(&summary.events).write(out, columns(&io::stdout()))?;
    }
    let with_instructions = counted_spans(&summary.spans);
    if !with_instructions.is_empty() {
        writeln!(out)?;
        instructions(&with_instructions).write(out, columns(&io::stdout()))?;
    }
    if summary.log_records > 0 {
        writeln!(out, "{}", counted(summary.log_records, "log record", "log records"))?;
    }
    let kernel = kernel_times(&summary.spans);
    let has_kernel = kernel.is_some();
    if let Some(kernel) = kernel {
        writeln!(out)?;
        kernel.write(out, columns(&io::stdout()))?;
    }
    // What the kernel says is the same, and more.
    if !has_kernel && let Some(times) = thread_times(&summary.spans) {
        writeln!(out)?;
        times.write(out, columns(&io::stdout()))?;
    }
    let time = TimeFormat::new(false);
    for program in summary.programs.iter().filter(|program| program.state == ProgramState::Died) {
        let name = if program.name.is_empty() { "the program" } else { &program.name };
        let end = program.end.map_or_else(String::new, |end| end_in_words(end, &time));
        writeln!(out, "{WARNING}{name} {end}{WARNING:#}")?;
    }
    if let Some(words) = MissingEvents::from(summary).in_words("") {
        writeln!(out, "{words}")?;
    }
    if summary.removed > 0 {
        writeln!(out, "{DIM}{}{DIM:#}", removed_in_words(summary.removed))?;
    }
    if part > 1 {
        writeln!(out, "{DIM}what is in the files before number {part} of this capture is not counted{DIM:#}")?;
    }
    Ok(())
}

/// Returns a table of typed events.
fn typed(events: &[EventSummary]) -> NumberTable<5> {
    let mut table = NumberTable::new(["typed event", "count", "a second", "payload", "each"]);
    let shared = SharedNames::from_names(events.iter().map(|event| (event.name.as_str(), event.content.as_str())));
    for event in events {
        let per_second = event.per_second.map_or("–".to_owned(), rate);
        let [payload, each] = [event.payload_bytes, event.payload_bytes / event.count.max(1)].map(bytes);
        let name = shown_name(&shared.shown(&event.name, &event.content));
        table.row([name, grouped(event.count), per_second, payload, each], PLAIN);
    }
    table
}

/// Returns how many spans of this name are not in the numbers of instructions: they were open at the end, or not
/// seen whole, or not counted, as one that was never entered.
pub(crate) fn not_counted(span: &SpanSummary) -> u64 {
    let counted = span.instructions.map_or(0, |counted| counted.spans);
    let not_seen_whole = span.open.saturating_add(span.end_lost).saturating_add(span.incomplete);
    span.count.saturating_sub(counted).saturating_add(not_seen_whole)
}

/// Returns the spans whose instructions were counted, those with the most first.
pub(crate) fn counted_spans(spans: &[SpanSummary]) -> Vec<(&SpanSummary, &InstructionSummary)> {
    let mut counted: Vec<_> = spans.iter().filter_map(|span| Some((span, span.instructions.as_ref()?))).collect();
    counted.sort_by(|(a, of_a), (b, of_b)| {
        of_b.all.cmp(&of_a.all).then_with(|| (&a.name, &a.target).cmp(&(&b.name, &b.target)))
    });
    counted
}

/// Returns a table of the instructions of spans.
pub(crate) fn instructions(spans: &[(&SpanSummary, &InstructionSummary)]) -> NumberTable<7> {
    let mut table = NumberTable::new(["span", "count", "instructions", "self", "each", "min", "max"]);
    for (span, counted) in spans {
        let each = counted.all / counted.spans.max(1);
        let [count, all, own, each, min, max] =
            [counted.spans, counted.all, counted.own, each, counted.min, counted.max].map(grouped);
        table.row([shown_name(&full_name(&span.name, &span.target)), count, all, own, each, min, max], PLAIN);
    }
    table
}

/// Returns a table of what the kernel says of the threads in spans, if it says something.
fn kernel_times(spans: &[SpanSummary]) -> Option<NumberTable<8>> {
    let spans: Vec<_> = spans.iter().filter_map(|span| Some((span, span.kernel?))).collect();
    let has_unknown = spans.iter().any(|(_, times)| times.all.unknown > 0);
    // A column without a head and cells is left out.
    let if_unknown = |text: String| if has_unknown { text } else { String::new() };
    let heads = ["span", "cpu", "runnable", "blocked", "not known", "self cpu", "self runnable", "self blocked"];
    let table = NumberTable::new(heads.map(|head| if head == "not known" && !has_unknown { "" } else { head }));
    let mut table = table.leaving_out(&[7, 6, 5]);
    for (span, times) in &spans {
        let [cpu, runnable, blocked] = [times.all.cpu, times.all.runnable, times.all.blocked].map(time);
        let [own_cpu, own_runnable, own_blocked] = [times.own.cpu, times.own.runnable, times.own.blocked].map(time);
        let name = shown_name(&full_name(&span.name, &span.target));
        let unknown = if_unknown(time(times.all.unknown));
        table.row([name, cpu, runnable, blocked, unknown, own_cpu, own_runnable, own_blocked], PLAIN);
    }
    (!spans.is_empty()).then_some(table)
}

/// Returns a table of how threads spent the busy time of spans, if they have measured it.
fn thread_times(spans: &[SpanSummary]) -> Option<NumberTable<6>> {
    let spans: Vec<_> = spans.iter().filter_map(|span| Some((span, span.times?))).collect();
    let has_unmeasured = spans.iter().any(|(_, times)| times.unmeasured_nanos > 0);
    // A column without a head and cells is left out.
    let if_unmeasured = |text: String| if has_unmeasured { text } else { String::new() };
    let heads = ["span", "busy", "cpu", "queue", "sleep", if has_unmeasured { "unmeasured" } else { "" }];
    let mut table = NumberTable::new(heads).leaving_out(&[1, 5]);
    for (span, times) in &spans {
        let [cpu, queue, sleep, unmeasured] = times.in_words();
        let name = shown_name(&full_name(&span.name, &span.target));
        table.row([name, time(span.busy_nanos), cpu, queue, sleep, if_unmeasured(unmeasured)], PLAIN);
    }
    (!spans.is_empty()).then_some(table)
}

/// Writes what spans have allocated, those with the most bytes first.
fn write_allocations(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    writeln!(out)?;
    let Some(outside) = &summary.allocated_outside else {
        return writeln!(out, "{DIM}{NOT_COUNTED}{DIM:#}");
    };
    let named = |span: &SpanSummary| Some((full_name(&span.name, &span.target), span.count, span.allocated?));
    let mut rows: Vec<_> = summary.spans.iter().filter_map(named).collect();
    rows.sort_by(|(a, _, of_a), (b, _, of_b)| of_b.bytes.cmp(&of_a.bytes).then_with(|| a.cmp(b)));
    rows.push(("(no span)".to_owned(), 0, *outside));
    let is_live = rows.iter().any(|(_, _, allocated)| allocated.live_bytes.is_some());
    let [live, peak] = ["live", "peak"].map(|head| if is_live { head } else { "" });
    let heads = ["span", "allocations", "each", "bytes", "each", "frees", "freed", live, peak];
    let mut table = NumberTable::new(heads).leaving_out(&[5, 6]);
    for (name, count, allocated) in rows {
        let each = |sum: u64| if count > 0 { sum as f64 / count as f64 } else { 0.0 };
        let [of_each, bytes_of_each] = match count {
            0 => ["–", "–"].map(str::to_owned),
            _ => [format!("{:.1}", each(allocated.allocations)), bytes(each(allocated.bytes).round() as u64)],
        };
        let if_live = |number: Option<u64>| match number {
            Some(number) => bytes(number),
            None if is_live => "–".to_owned(),
            None => String::new(),
        };
        let row = [
            shown_name(&name),
            grouped(allocated.allocations),
            of_each,
            bytes(allocated.bytes),
            bytes_of_each,
            grouped(allocated.frees),
            bytes(allocated.freed_bytes),
            if_live(allocated.live_bytes),
            if_live(allocated.peak_bytes),
        ];
        table.row(row, PLAIN);
    }
    table.write(out, columns(&io::stdout()))
}

const NOT_COUNTED: &str = "no allocations were counted: build the program with eventring's feature `allocations`, and give \
                           it the allocator eventring::alloc::Counted";

/// Returns the name of a span, its number and its times.
fn times(span: &SpanSummary) -> [String; 10] {
    // Without a closed span, no duration is known. Then the cells of durations show `open` if there are open spans,
    // and otherwise a dash.
    let nothing = if span.open > 0 { "open" } else { "–" };
    let time = |nanos| if span.count > 0 { time(nanos) } else { nothing.to_owned() };
    let name = shown_name(&full_name(&span.name, &span.target));
    let [total, own, busy] = [span.total_nanos, span.self_nanos, span.busy_nanos].map(time);
    let [p50, p90, p99, max] = [span.p50_nanos, span.p90_nanos, span.p99_nanos, span.max_nanos].map(time);
    [name, grouped(span.count), total, own, busy, time(span.idle_nanos), p50, p90, p99, max]
}

/// Returns what is not in the numbers of a span. `beginning` says what may have become of beginnings that were not
/// seen, and `open` of spans without a close.
fn note(span: &SpanSummary, beginning: &str, open: &str) -> String {
    let mut more = Vec::new();
    if span.ended_with_parent > 0 {
        more.push(format!(
            "{} ended with what was around them, and not by their guard",
            grouped(span.ended_with_parent)
        ));
    }
    if span.open > 0 {
        more.push(format!("+ {} {open}", grouped(span.open)));
    }
    if span.end_lost > 0 {
        more.push(format!("+ {} whose end may be lost", grouped(span.end_lost)));
    }
    if span.incomplete > 0 {
        more.push(format!("+ {} whose beginning {beginning}", grouped(span.incomplete)));
    }
    more.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::out;
    use eventring_export::TimeSummary;

    #[test]
    fn a_table_says_how_threads_spent_the_busy_time_and_which_numbers_are_not_exact() {
        let span = |name: &str, parts: Option<[u64; 4]>| {
            let mut span = SpanSummary::of_durations(name, &[10_000]);
            span.times = parts.map(|[cpu, queue, sleep, unmeasured]| {
                let mut times = TimeSummary::default();
                (times.cpu_nanos, times.queue_nanos) = (cpu, queue);
                (times.sleep_nanos, times.unmeasured_nanos) = (sleep, unmeasured);
                times
            });
            span
        };
        let shown = |spans: &[SpanSummary]| {
            let table = thread_times(spans);
            out::shown(|out| table.map_or(Ok(()), |table| table.write(out, Some(80))))
        };
        assert_eq!(shown(&[span("request", None)]), "");
        let request = span("request", Some([2_500, 0, 7_500, 0]));
        let query = span("query", Some([9_000, 500, 0, 500]));
        let tables = [shown(&[request.clone(), span("none", None)]), shown(&[request, query])].join("\n");
        insta::assert_snapshot!(tables);
    }
}
