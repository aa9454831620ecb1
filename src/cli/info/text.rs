//! What a ring is, for people.

use super::survey::{OfType, Survey};
use crate::cli::decoder::Decoder;
use crate::cli::format::{Clock, bytes, duration, events, grouped, hex, one_line, rate};
use crate::cli::paint::{self, BOLD, DIM, WARNING};
use eventring::layout::header::content_type_name;
use eventring::reader::{ExtensionInfo, Reader, RingInfo, RingState};
use std::io::{self, Write};
use std::time::Duration;

/// Width of the labels on the left.
const LABEL: usize = 12;
/// Width of the longest bar, in characters.
const BAR: u64 = 24;

/// Writes the report.
pub(super) fn write(
    out: &mut impl Write,
    reader: &Reader,
    decoder: &Decoder,
    survey: &Survey,
    clock: &Clock,
) -> io::Result<()> {
    let info = reader.info();
    let name = reader.path().map(|path| one_line(&path.to_string_lossy()));
    line(out, "ring", &format!("{BOLD}{}{BOLD:#}", name.unwrap_or_default()))?;
    line(out, "state", &state(reader))?;
    if let Some(extension) = &info.extension {
        line(out, "created", &created(extension, clock))?;
    }
    line(out, "content", &content(&info))?;
    if let Some(problem) = decoder.problem() {
        line(out, "", &format!("{WARNING}{}{WARNING:#}", one_line(problem)))?;
    }
    line(out, "size", &size(&info))?;
    line(
        out,
        "payload",
        &format!("{} handed out, window starts at {}", bytes(info.next_payload_byte), bytes(info.buffer_window_start)),
    )?;
    if let Some(extension) = &info.extension {
        more(out, extension)?;
    }
    line(out, "events", &what_is_there(survey, &info))?;
    if let Some(times) = survey.times {
        line(out, "time", &span(times, survey.count, clock))?;
    }
    if !survey.by_type.is_empty() {
        writeln!(out)?;
        table(out, decoder, survey)?;
    }
    Ok(())
}

fn line(out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{DIM}{label:<LABEL$}{DIM:#}{text}")
}

fn state(reader: &Reader) -> String {
    let by = match super::writer(reader) {
        None => String::new(),
        Some((pid, _)) => {
            let program = reader.info().extension.map(|extension| extension.writer.program_name).unwrap_or_default();
            if program.is_empty() { format!("pid {pid}") } else { format!("{program} (pid {pid})") }
        }
    };
    let by_or = |other: &str| if by.is_empty() { other.to_owned() } else { by.clone() };
    match reader.state() {
        RingState::Live => format!("{}live{:#}, written by {}", paint::GOOD, paint::GOOD, by_or("an unknown process")),
        RingState::Ended => format!("ended by its writer, {}", by_or("which is unknown")),
        RingState::WriterDied => {
            format!("{WARNING}left behind{WARNING:#} by {}, which is dead", by_or("its writer"))
        }
        RingState::Saved if by.is_empty() => "snapshot".into(),
        RingState::Saved => format!("snapshot of a ring of {by}"),
        RingState::Truncated => format!("{WARNING}truncated{WARNING:#} by somebody while it was read"),
        RingState::Unknown => format!("written by {}; whether it lives cannot be told from here", by_or("somebody")),
    }
}

fn created(extension: &ExtensionInfo, clock: &Clock) -> String {
    clock.date_and_time(extension.created_epoch_nanos)
}

fn content(info: &RingInfo) -> String {
    let name = info.content_name.as_deref().unwrap_or(content_type_name(info.content_type));
    format!("{} {DIM}(content type {}, schema {}){DIM:#}", one_line(name), info.content_type, hex(&info.schema_hash))
}

fn size(info: &RingInfo) -> String {
    let geometry = &info.geometry;
    let context = match geometry.context_area_bytes() {
        0 => String::new(),
        context => format!(", context {}", bytes(context)),
    };
    format!(
        "{} descriptors, payload buffer {}{context}; {} in all",
        grouped(geometry.descriptor_capacity()),
        bytes(geometry.payload_buf_bytes()),
        bytes(geometry.file_bytes())
    )
}

/// What eventring's own header says, where it is worth a line.
fn more(out: &mut impl Write, extension: &ExtensionInfo) -> io::Result<()> {
    let clock = match extension.clock.kind {
        1 => "CLOCK_REALTIME".to_owned(),
        2 => format!("tick counter at {}Hz", rate(extension.clock.ticks_per_second as f64)),
        _ => "unknown".to_owned(),
    };
    line(out, "clock", &clock)?;
    if extension.shard_limit > 0 {
        let shards =
            format!("number {} of {}, at most {}", extension.shard_index, extension.shard_count, extension.shard_limit);
        line(out, "shard", &shards)?;
    }
    let counters = [
        (extension.record_errors, "replaced by RECORD_ERROR"),
        (extension.refused_claims + extension.lapped_claims, "sequence numbers given up to stalled writers"),
        (extension.skipped_chunks, "payload chunks skipped"),
        (extension.table_overflows, "table entries without room"),
        (extension.foreign_events, "events of another schema refused"),
        (extension.snapshot_lost, "not in the snapshot"),
    ];
    let counted: Vec<String> = counters
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{WARNING}{} {what}{WARNING:#}", grouped(*count)))
        .collect();
    if counted.is_empty() { Ok(()) } else { line(out, "counters", &counted.join(", ")) }
}

fn what_is_there(survey: &Survey, info: &RingInfo) -> String {
    let being_written = match survey.being_written {
        0 => String::new(),
        count => format!(", {} being written", grouped(count)),
    };
    if survey.count == 0 {
        return format!("none{being_written}; last sequence number {}", grouped(info.last_seqno));
    }
    let lost = match survey.lost {
        0 => "nothing has been overwritten".to_owned(),
        lost => format!("{} before or between them are gone", grouped(lost)),
    };
    format!(
        "{} {DIM}(sequence numbers {} to {}){DIM:#}, {lost}{being_written}",
        grouped(survey.count),
        grouped(survey.oldest_seqno),
        grouped(survey.newest_seqno)
    )
}

fn span((first, last): (u64, u64), count: u64, clock: &Clock) -> String {
    let span = Duration::from_nanos(last - first);
    let per_second = match span.as_secs_f64() {
        0.0 => String::new(),
        seconds => format!(", {} events/s", rate(count as f64 / seconds)),
    };
    format!("{} + {}{per_second}", clock.date_and_time(first), duration(span))
}

fn table(out: &mut impl Write, decoder: &Decoder, survey: &Survey) -> io::Result<()> {
    let names: Vec<String> = survey.by_type.keys().map(|code| decoder.name(*code).unwrap_or("–").to_owned()).collect();
    let width = names.iter().map(|name| name.chars().count()).chain([4]).max().unwrap_or(4);
    let most = survey.by_type.values().map(|of_type| of_type.count).max().unwrap_or(1).max(1);
    writeln!(
        out,
        "{DIM}{:>5}  {:<width$}  {:>13}  {:>7}  {:>10}{DIM:#}",
        "CODE", "NAME", "EVENTS", "SHARE", "PAYLOAD"
    )?;
    for ((code, of_type), name) in survey.by_type.iter().zip(names) {
        let OfType { count, payload_bytes } = of_type;
        let style = paint::event_type(*code);
        let bar = "▆".repeat(count.saturating_mul(BAR).div_ceil(most) as usize);
        writeln!(
            out,
            "{code:>5}  {style}{name:<width$}{style:#}  {:>13}  {:>5.1} %  {:>10}  {DIM}{bar}{DIM:#}",
            grouped(*count),
            *count as f64 * 100.0 / survey.count as f64,
            bytes(*payload_bytes),
        )?;
    }
    let total = survey.by_type.values().map(|of_type| of_type.payload_bytes).sum();
    writeln!(
        out,
        "{DIM}{:>5}  {:<width$}  {:>13}  {:>7}  {:>10}{DIM:#}",
        "",
        events(survey.count),
        "",
        "",
        bytes(total)
    )
}
