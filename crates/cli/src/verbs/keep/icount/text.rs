//! The result for people and for programs.

use super::count::InstructionCount;
use crate::output::json_line;
use crate::text::format::{columns, counted};
use crate::text::out::stdout;
use crate::text::paint::{DIM, WARNING};
use crate::verbs::questions::summary::instructions;
use eventring_export::full_name;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::Path;

/// What `icount --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Counted<'a> {
    spans: Vec<CountedSpan<'a>>,
    /// Those of the whole run, with recording.
    total_instructions: u64,
    exact: bool,
    lost: u64,
    /// Spans that were open at the end, never entered, or not seen whole.
    not_counted: u64,
}

#[derive(Serialize, JsonSchema)]
struct CountedSpan<'a> {
    name: &'a str,
    target: &'a str,
    count: u64,
    instructions: u64,
    self_instructions: u64,
    min: u64,
    max: u64,
    /// False if the next run counts others.
    exact: bool,
}

pub(super) fn print_json(count: &InstructionCount) -> io::Result<()> {
    let spans = count.spans.iter().map(|(span, counted)| CountedSpan {
        name: &span.name,
        target: &span.target,
        count: counted.spans,
        instructions: counted.all,
        self_instructions: counted.own,
        min: counted.min,
        max: counted.max,
        exact: counted.is_exact(),
    });
    let all = Counted {
        spans: spans.collect(),
        total_instructions: count.total,
        exact: count.is_exact(),
        lost: count.lost,
        not_counted: count.not_counted,
    };
    json_line(&all)
}

/// Says on stderr what makes the counts no result.
pub(super) fn warn(count: &InstructionCount, code: i32) {
    if count.lost > 0 {
        let events = counted(count.lost, "event was", "events were");
        say!(
            "{WARNING}warning:{WARNING:#} {events} lost, so the counts are too low; give the program larger rings: \
             init(\"name:256MiB\"), or EVENTRING_PERF=name:256MiB if it calls try_init_from_env()"
        );
    }
    if code != 0 {
        say!("{WARNING}warning:{WARNING:#} the program has ended with exit code {code}");
    }
}

pub(super) fn print_table(count: &InstructionCount, kept: Option<&Path>) -> io::Result<()> {
    let table = instructions(&count.spans.iter().map(|(span, counted)| (span, counted)).collect::<Vec<_>>());
    let mut out = stdout();
    table.write(&mut out, columns(&io::stdout()))?;
    let total = counted(count.total, "instruction", "instructions");
    writeln!(out, "{DIM}the whole run, with recording: {total}{DIM:#}")?;
    let inexact = count.spans.iter().filter(|(_, counted)| !counted.is_exact());
    let inexact: Vec<String> = inexact.map(|(span, _)| full_name(&span.name, &span.target)).collect();
    if !inexact.is_empty() {
        let names = inexact.join(", ");
        writeln!(
            out,
            "{WARNING}not exact: {names}: entered several times, as spans of futures are, or with such spans inside: the next run counts others{WARNING:#}"
        )?;
    }
    if count.not_counted > 0 {
        let spans = counted(count.not_counted, "span is", "spans are");
        writeln!(
            out,
            "{WARNING}{spans} not counted: still open at the end, never entered, or not seen whole{WARNING:#}"
        )?;
    }
    if let Some(kept) = kept {
        writeln!(out, "{DIM}the capture is in {}{DIM:#}", kept.display())?;
    }
    out.flush()
}
