//! The report of `info` for people.

use crate::input::names::decoder::Decoder;
use crate::input::ring::report::RingReport;
use crate::input::ring::state::{end_in_words, writer};
use crate::input::ring::survey::{Survey, TypeCounts};
use crate::text::format::{TimeFormat, bytes, content_name, counted, duration, events, grouped, rate};
use crate::text::paint::{self, BOLD, DIM, WARNING};
use crate::text::table::column_width;
use eventring::exec::BlockInfo;
use eventring::files::BLOCK_TABLE_ENTRIES;
use eventring::reader::{ExtensionInfo, RingInfo, RingState};
use eventring::schema::Hex;
use std::io::{self, Write};
use std::time::Duration;

/// Width of the labels on the left.
const LABEL: usize = 12;
/// Width of the longest bar, in characters.
const BAR: u64 = 24;

/// Writes the report.
pub(super) fn write(out: &mut impl Write, decoder: &Decoder, all: &RingReport, clock: &TimeFormat) -> io::Result<()> {
    let RingReport { reader, info, total: survey, shards, .. } = all;
    let name = reader.path().or(reader.name()).map(|path| path.to_string_lossy());
    line(out, "ring", &format!("{BOLD}{}{BOLD:#}", name.unwrap_or_default()))?;
    line(out, "state", &state(all, clock))?;
    if let Some(extension) = &info.extension {
        line(out, "created", &created(extension, clock))?;
    }
    line(out, "content", &content(info))?;
    line(out, "schema", &format!("{DIM}{}{DIM:#}", Hex(&info.schema_hash)))?;
    let domains: Vec<&str> = decoder.domains().collect();
    if !domains.is_empty() {
        line(out, "domains", &domains.join(", "))?;
    }
    if let Some(problem) = decoder.problem() {
        line(out, "", &format!("{WARNING}{problem}{WARNING:#}"))?;
    }
    if shards.is_empty() {
        line(out, "size", &size(info))?;
        let (next, window) = (bytes(info.next_payload_byte), bytes(info.buffer_window_start));
        line(out, "payload", &format!("{next} handed out, window starts at {window}"))?;
    } else {
        line(out, "size", &size_of_shards(all))?;
    }
    if let Some(free) = info.extension.as_ref().map(|extension| extension.reduced_free_bytes).filter(|free| *free > 0) {
        line(out, "", &format!("smaller than by default, because {} were free", bytes(free)))?;
    }
    if let Some(extension) = &info.extension {
        more(out, extension, all)?;
    }
    let absent = match shards.iter().filter(|shard| shard.content.is_err()).count() as u64 {
        0 => String::new(),
        absent => format!("; {WARNING}those of {} not here{WARNING:#}", counted(absent, "shard are", "shards are")),
    };
    line(out, "events", &format!("{}{absent}", what_is_there(survey, info, !shards.is_empty())))?;
    if let Some(times) = survey.times {
        line(out, "time", &span(times, survey.count, clock))?;
    }
    if let Some(past) = all.history().in_words(Some(reader).filter(|_| all.state == RingState::Live)) {
        line(out, "past", &past)?;
    }
    if let Some(blocks) = reader.blocks() {
        line(out, "blocks", &block_table(&blocks, clock))?;
    }
    if !shards.is_empty() {
        writeln!(out)?;
        table_of_shards(out, all)?;
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

fn state(ring: &RingReport, clock: &TimeFormat) -> String {
    let by = match writer(&ring.reader) {
        None => String::new(),
        Some((pid, _)) => {
            let program = ring.info.extension.as_ref().map_or("", |extension| &extension.writer.program_name);
            if program.is_empty() { format!("pid {pid}") } else { format!("{program} (pid {pid})") }
        }
    };
    let by_or = |other: &str| if by.is_empty() { other.to_owned() } else { by.clone() };
    match ring.state {
        RingState::Live => format!("{}live{:#}, written by {}", paint::GOOD, paint::GOOD, by_or("an unknown process")),
        RingState::Ended => format!("ended by its writer, {}", by_or("which is unknown")),
        RingState::WriterDied => {
            let when = ring.end().map(|end| format!(": it {}", end_in_words(end, clock))).unwrap_or_default();
            format!("{WARNING}left behind{WARNING:#} by {}, which is dead{when}", by_or("its writer"))
        }
        RingState::Saved => snapshot(&ring.info, &by, clock),
        RingState::Truncated => format!("{WARNING}truncated{WARNING:#} while it was read"),
        RingState::NoMemory => format!("{WARNING}not read{WARNING:#} as a whole: there was no memory for a page of it"),
        RingState::Unreadable => format!("{WARNING}not read{WARNING:#} as a whole: an I/O error"),
        RingState::Unknown => {
            format!("written by {}; it is not known whether that process lives", by_or("an unknown process"))
        }
    }
}

/// Says of what a snapshot is, by whom, and when it was taken.
fn snapshot(info: &RingInfo, by: &str, clock: &TimeFormat) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" of a ring of {by}") };
    let Some(extension) = &info.extension else { return format!("snapshot{by}") };
    let taken = match extension.snapshot_epoch_nanos {
        0 => String::new(),
        nanos => format!(", taken on {}", clock.date_and_time(nanos)),
    };
    let ExtensionInfo { shard_index: index, shard_count: shards, .. } = *extension;
    match (index, shards) {
        (0, 0 | 1) => format!("snapshot{by}{taken}"),
        (0, _) => format!(
            "snapshot of {WARNING}shard 0 of {shards} of a recorder: events of the others are not here{WARNING:#}{taken}"
        ),
        _ => format!(
            "snapshot of {WARNING}shard {index} of a recorder: events of the others are not here{WARNING:#}{taken}"
        ),
    }
}

fn created(extension: &ExtensionInfo, clock: &TimeFormat) -> String {
    clock.date_and_time(extension.created_epoch_nanos)
}

fn content(info: &RingInfo) -> String {
    let name = content_name(info);
    format!("{name} {DIM}(content type {}){DIM:#}", info.content_type)
}

fn size(info: &RingInfo) -> String {
    format!("{}; {} in all", sections(info), bytes(info.geometry.file_bytes()))
}

fn sections(info: &RingInfo) -> String {
    let geometry = &info.geometry;
    let context = match geometry.context_area_bytes() {
        0 => String::new(),
        context => format!(", context {}", bytes(context)),
    };
    format!(
        "{} descriptors, payload buffer {}{context}",
        grouped(geometry.descriptor_capacity()),
        bytes(geometry.payload_buf_bytes())
    )
}

/// Returns the size of a recorder as text. The text shows the sizes of shard 0. The other shards have the same sizes,
/// but no context area.
fn size_of_shards(all: &RingReport) -> String {
    let shards = counted(all.readers().count() as u64, "shard", "shards");
    format!("{shards} of {}; {} in all", sections(&all.info), bytes(all.sum(|shard| shard.geometry.file_bytes())))
}

/// Writes the lines about the clock, the shards and the counters. All of these are in the extension of the ring's
/// header. The counters are sums over the shards that could be opened.
fn more(out: &mut impl Write, extension: &ExtensionInfo, all: &RingReport) -> io::Result<()> {
    let count = |of: fn(&ExtensionInfo) -> u64| all.sum(|shard| shard.extension.as_ref().map_or(0, of));
    let clock = match extension.clock.kind {
        1 => "CLOCK_REALTIME".to_owned(),
        2 => format!("tick counter at {}Hz", rate(extension.clock.ticks_per_second as f64)),
        _ => "unknown".to_owned(),
    };
    line(out, "clock", &clock)?;
    if extension.shard_limit > 0 {
        // Only the header of shard 0 has the number of shards. For another shard, the index of this shard is shown
        // instead.
        match all.shards.is_empty() {
            true => line(out, "shard", &format!("number {} of a recorder, alone", extension.shard_index))?,
            false => {
                let not_made = match all.not_made {
                    0 => String::new(),
                    count => format!(
                        "; {WARNING}{} could not be made: threads share the others{WARNING:#}",
                        counted(count, "shard", "shards")
                    ),
                };
                let (count, limit) = (extension.shard_count, extension.shard_limit);
                line(out, "shards", &format!("{count}, at most {limit}{not_made}"))?;
            }
        }
    }
    let counters = [
        (count(|shard| shard.record_errors), ["replaced by RECORD_ERROR"; 2]),
        (
            count(|shard| shard.refused_claims.saturating_add(shard.overrun_claims)),
            ["sequence number skipped for a stalled writer", "sequence numbers skipped for stalled writers"],
        ),
        (count(|shard| shard.skipped_chunks), ["payload chunk skipped", "payload chunks skipped"]),
        (count(|shard| shard.table_overflows), ["table entry without room", "table entries without room"]),
        (count(|shard| shard.foreign_events), ["event of another schema refused", "events of another schema refused"]),
        (count(|shard| shard.snapshot_lost), ["not in the snapshot"; 2]),
    ];
    let shown: Vec<String> = counters
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, [one, many])| format!("{WARNING}{}{WARNING:#}", counted(count, one, many)))
        .collect();
    if shown.is_empty() { Ok(()) } else { line(out, "counters", &shown.join(", ")) }
}

/// Returns how many blocks the block table holds, and the last of them.
fn block_table(blocks: &[BlockInfo], clock: &TimeFormat) -> String {
    let last = blocks.last().map_or_else(String::new, |block| {
        let started = clock.date_and_time(block.start_epoch_nanos());
        format!("; the last is {} {DIM}({}){DIM:#}, started {started}", block.number(), Hex(&block.id()))
    });
    format!("{} of {} in the block table{last}", grouped(blocks.len() as u64), grouped(BLOCK_TABLE_ENTRIES))
}

fn what_is_there(survey: &Survey, info: &RingInfo, is_sharded: bool) -> String {
    let mut more = String::new();
    for (count, what) in [
        (survey.expired_payloads, "without payload, which was overwritten"),
        (survey.malformed_payloads, "with a payload that the ring cannot hold"),
        (survey.being_written, "being written"),
    ] {
        if count > 0 {
            more += &format!(", {} {what}", grouped(count));
        }
    }
    if survey.count == 0 && is_sharded {
        return format!("none{more}");
    }
    if survey.count == 0 {
        return format!("none{more}; last sequence number {}", grouped(info.last_seqno));
    }
    let before = match survey.overwritten_before {
        0 if info.extension.as_ref().is_some_and(|it| it.snapshot_lost > 0) => {
            "the others are not in the snapshot".to_owned()
        }
        0 => "nothing has been overwritten".to_owned(),
        count => format!("{} before them overwritten", grouped(count)),
    };
    let lost = match survey.lost.saturating_sub(survey.overwritten_before) {
        0 => before,
        lost => format!("{before}, {} missing between them", grouped(lost)),
    };
    if is_sharded {
        return format!("{}, {lost}{more}", grouped(survey.count));
    }
    format!(
        "{} {DIM}(seqnos {} to {}){DIM:#}, {lost}{more}",
        grouped(survey.count),
        grouped(survey.oldest_seqno),
        grouped(survey.newest_seqno)
    )
}

fn span((first, last): (u64, u64), count: u64, clock: &TimeFormat) -> String {
    let span = Duration::from_nanos(last - first);
    let per_second = match span.as_secs_f64() {
        0.0 => String::new(),
        seconds => format!(", {} events/s", rate(count as f64 / seconds)),
    };
    format!("{} + {}{per_second}", clock.date_and_time(first), duration(span))
}

fn table_of_shards(out: &mut impl Write, all: &RingReport) -> io::Result<()> {
    let row = |out: &mut dyn Write, shard: &str, survey: &Survey, numbers: &str| {
        let Survey { count, lost, expired_payloads, .. } = survey;
        let counts = [*count, *lost, *expired_payloads].map(grouped);
        let line = format!("{shard:>5}  {:>13}  {:>13}  {:>10}  {numbers}", counts[0], counts[1], counts[2]);
        writeln!(out, "{}", line.trim_end())
    };
    writeln!(out, "{DIM}{:>5}  {:>13}  {:>13}  {:>10}  NUMBERS{DIM:#}", "SHARD", "EVENTS", "GONE", "EXPIRED")?;
    for shard in &all.shards {
        match &shard.content {
            Ok((_, survey)) => {
                let numbers = match survey.count {
                    0 => "–".to_owned(),
                    _ => format!("{} to {}", grouped(survey.oldest_seqno), grouped(survey.newest_seqno)),
                };
                row(out, &shard.index.to_string(), survey, &numbers)?;
            }
            Err(why) => writeln!(out, "{:>5}  {WARNING}{why}{WARNING:#}", shard.index)?,
        }
    }
    write!(out, "{DIM}")?;
    row(out, "all", &all.total, "")?;
    write!(out, "{DIM:#}")
}

fn table(out: &mut impl Write, decoder: &Decoder, survey: &Survey) -> io::Result<()> {
    let names: Vec<String> = survey.by_type.keys().map(|code| decoder.name(*code).unwrap_or("–").to_owned()).collect();
    let width = column_width(names.iter().map(|name| name.chars().count()).chain([4]));
    let most = survey.by_type.values().map(|counts| counts.count).max().unwrap_or(1).max(1);
    let dim_row = |out: &mut dyn Write, [code, name, count, share, payload]: [&str; 5]| {
        writeln!(out, "{DIM}{code:>5}  {name:<width$}  {count:>13}  {share:>7}  {payload:>10}{DIM:#}")
    };
    dim_row(out, ["CODE", "NAME", "EVENTS", "SHARE", "PAYLOAD"])?;
    for ((code, TypeCounts { count, payload_bytes }), name) in survey.by_type.iter().zip(names) {
        let style = paint::event_type(*code, Some(&name));
        let bar = "▆".repeat(count.saturating_mul(BAR).div_ceil(most) as usize);
        writeln!(
            out,
            "{code:>5}  {style}{name:<width$}{style:#}  {:>13}  {:>5.1} %  {:>10}  {DIM}{bar}{DIM:#}",
            grouped(*count),
            *count as f64 * 100.0 / survey.count as f64,
            bytes(*payload_bytes),
        )?;
    }
    let total = survey.by_type.values().map(|counts| counts.payload_bytes).sum();
    dim_row(out, ["", &events(survey.count), "", "", &bytes(total)])
}
