//! `eventring list`.

use crate::args::limit::LimitArgs;
use crate::exit::Exit;
use crate::input::directories::{self, ShardRole, instance_of};
use crate::input::programs::open_files;
use crate::input::programs::servers;
use crate::input::programs::servers::{ListedServer, ServerRow, SilentServer};
use crate::input::ring::history::History;
use crate::input::ring::report::{RingFacts, RingReport};
use crate::input::ring::state::{Writer, short_word};
use crate::text::format::{bytes, columns, counted, duration, grouped};
use crate::text::out::stdout;
use crate::text::paint::{DIM, WARNING};
use crate::text::table::{column_width, shortened, shortened_end};
use eventring::reader::{Reader, ReaderError, ReaderErrorKind, RingInfo};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Show the rings in the ring directories, and the programs that write them
///
/// The ring directories are `event-rings/` on a hugetlbfs mount and in /dev/shm, or $EVENTRING_DIR.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directories to search [default: the ring directories]
    #[arg(value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
}

/// The largest width of the last column, which shows what is switched on. `eventring levels` shows all of it.
const SERVER_CHARS_MAX: usize = 30;

/// A ring and its shards.
// It holds no open reader, so many rings can be listed without many open files.
#[derive(Serialize, JsonSchema)]
struct ListedRing {
    name: String,
    /// The name that the program asked for, if it got another.
    instance_of: Option<String>,
    /// The path from which the file was removed while the program runs.
    removed_from: Option<String>,
    #[serde(flatten)]
    ring: RingFacts,
    /// Events recorded since the ring was created.
    recorded: u64,
    file_bytes: u64,
    shards: Option<u64>,
    /// The number of shards that the recorder needed and could not make.
    shards_not_made: u64,
    /// True for a shard whose shard 0 is gone.
    #[serde(rename = "orphaned")]
    is_orphaned: bool,
    /// The server of the program; null if there is none, or if it refuses this user.
    server: Option<ServerRow>,
}

/// What `list --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listed<'a> {
    rings: &'a [ListedRing],
    #[serde(flatten)]
    rest: ListedRest<'a>,
}

/// What is not about one ring.
#[derive(Serialize, JsonSchema)]
struct ListedRest<'a> {
    directories: &'a [PathBuf],
    notes: Vec<NotRecording<'a>>,
}

/// What a program says that records nothing.
#[derive(Serialize, JsonSchema)]
struct NotRecording<'a> {
    pid: u32,
    note: &'a str,
}

impl ListedRing {
    fn new(name: String, ring: &RingReport) -> Self {
        // All seqnos that were handed out, except those that were skipped.
        let recorded = |info: &RingInfo| {
            let skipped = info.extension.as_ref().map_or(0, |it| it.refused_claims.saturating_add(it.overrun_claims));
            info.last_seqno.saturating_sub(skipped)
        };
        let file_bytes = |ring: &Reader| match ring.path().and_then(|path| path.metadata().ok()) {
            Some(metadata) => metadata.len(),
            None => ring.info().geometry.file_bytes(),
        };
        Self {
            instance_of: instance_of(&name).map(str::to_owned),
            name,
            removed_from: ring.removed_from().map(|path| path.to_string_lossy().into_owned()),
            ring: ring.facts(),
            shards: Some(ring.reader.shard_count()).filter(|count| *count > 0),
            shards_not_made: ring.not_made,
            is_orphaned: ring.role == ShardRole::Orphan,
            recorded: ring.sum(recorded),
            file_bytes: ring.readers().map(file_bytes).fold(0, u64::saturating_add),
            server: None,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let directories = directories::named_or_usual(&args.directories);
    let files = directories::finished_files(&directories, !args.directories.is_empty())?;
    let (mut found, mut may_be_more) = (Vec::new(), false);
    for path in &files {
        match list_ring(path) {
            Ok(ring) => found.extend(ring),
            Err(error) => {
                may_be_more |= error.kind() == ReaderErrorKind::PermissionDenied;
                say!("{WARNING}warning:{WARNING:#} {}", error);
            }
        }
    }
    let (answering, silent) = servers::in_directories(&directories);
    add_servers(&mut found, &answering);
    add_silent(&mut found, &silent);
    add_removed(&mut found, &directories);
    // Notes are of no directory.
    let notes = if args.directories.is_empty() { open_files::notes() } else { Vec::new() };
    let is_closed = |directory: &PathBuf| {
        std::fs::read_dir(directory).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    // `files` has warned of it. The list may be incomplete.
    may_be_more |= directories.iter().any(is_closed);
    let mut out = stdout();
    if args.json {
        let notes = notes.iter().map(|(pid, note)| NotRecording { pid: *pid, note }).collect();
        let listed = Listed { rings: &found, rest: ListedRest { directories: &directories, notes } };
        // Rings without a file are those of one process.
        let id = |ring: &&ListedRing| {
            let pid = ring.ring.writer.as_ref().map_or_else(|| "null".to_owned(), |writer| writer.pid.to_string());
            format!("{pid}:{}", ring.ring.file.as_ref().unwrap_or(&ring.name))
        };
        args.limit.write(&mut out, &listed.rest, "rings", listed.rings, id)?;
    } else if found.is_empty() {
        let directories: Vec<_> = directories.iter().map(|directory| directory.display().to_string()).collect();
        let who_knows = if may_be_more { ", as far as this user may look" } else { "" };
        say!("there are no rings in {}{who_knows}", directories.join(" and "));
    } else {
        table(&mut out, &found)?;
    }
    out.flush()?;
    if !args.json && found.iter().any(|ring| ring.removed_from.is_some()) {
        say!(
            "{WARNING}warning:{WARNING:#} files of rings were removed while their programs run ({}); after a crash nothing \
             of such a ring is left",
            open_files::WHY_REMOVED
        );
    }
    for (pid, note) in notes.iter().filter(|_| !args.json) {
        say!("{WARNING}warning:{WARNING:#} process {pid} {note}");
    }
    Ok(if may_be_more { Exit::PermissionDenied } else { Exit::Done })
}

/// Reads the ring at `path`. Returns `None` if the file is no ring, or if it is a shard that is listed with its shard
/// 0.
///
/// # Errors
/// There is a ring, and it cannot be read.
fn list_ring(path: &Path) -> Result<Option<ListedRing>, ReaderError> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let ring = match Reader::options().header_only().open(path) {
        Ok(reader) => RingReport::new(reader),
        Err(error) if matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_listed = match ring.role {
        ShardRole::Shard(_) => false,
        // If the shard's file has disappeared since it was opened, the recorder is removing all of its rings now.
        ShardRole::Orphan => path.exists(),
        ShardRole::First => true,
    };
    let name = path.file_name().filter(|_| is_listed).map(|name| name.to_string_lossy().into_owned());
    Ok(name.map(|name| ListedRing::new(name, &ring.with_shards())))
}

/// Adds the servers to the rings that they serve, and the rings in anonymous memory.
fn add_servers(found: &mut Vec<ListedRing>, servers: &[ListedServer]) {
    for server in servers {
        let shown = Some(server.row());
        for ring in found.iter_mut() {
            if ring.ring.file.as_deref().is_some_and(|file| server.has(Path::new(file))) {
                ring.server.clone_from(&shown);
            }
        }
        for file in server.anonymous() {
            let Ok(descriptor) = server.process.import(file) else { continue };
            let Ok(reader) = Reader::options().open_fd(&descriptor) else { continue };
            let name = format!("{}/{}", server.process.short_name(), file.name());
            let mut listed = ListedRing { server: shown.clone(), ..ListedRing::new(name, &RingReport::new(reader)) };
            let (pid, program) = (server.process.pid(), Some(server.process.program().to_owned()));
            listed.ring.writer = (pid != 0).then_some(Writer { pid, alive: Some(true), program });
            found.push(listed);
        }
    }
}

/// Adds the rings whose files were removed from these directories while their programs run.
fn add_removed(found: &mut Vec<ListedRing>, directories: &[PathBuf]) {
    let is_meant = |path: &Path| path.parent().is_some_and(|parent| directories.iter().any(|it| it == parent));
    for open_files::RemovedRing { name, reader, .. } in open_files::removed_rings(None, is_meant) {
        found.push(ListedRing::new(name, &RingReport::new(reader)));
    }
}

/// Shows at the rings of servers that do not answer that they do not, and warns of them: they may have more rings.
fn add_silent(found: &mut [ListedRing], silent: &[SilentServer]) {
    for server in silent {
        say!(
            "{WARNING}warning:{WARNING:#} {} does not answer: it may be stopped, and its rings in anonymous memory are \
             not shown",
            server.described()
        );
        let rings = found.iter_mut().filter(|ring| {
            ring.server.is_none() && ring.ring.writer.as_ref().is_some_and(|it| Some(it.pid) == server.pid())
        });
        rings.for_each(|ring| ring.server = Some(server.row()));
    }
}

fn table(out: &mut impl Write, found: &[ListedRing]) -> io::Result<()> {
    let mut rows: Vec<[String; HEADS.len()]> = found
        .iter()
        .map(|found| {
            let instance = found.instance_of.as_ref().map(|of| format!("instance of {of}"));
            let shards = match found.shards {
                _ if found.is_orphaned => Some("orphaned shard".to_owned()),
                None | Some(0 | 1) => None,
                Some(shards) => Some(format!("{shards} shards")),
            };
            let removed = found.removed_from.as_ref().map(|_| "file removed".to_owned());
            let not_made = Some(found.shards_not_made).filter(|count| *count > 0);
            let not_made = not_made.map(|count| format!("{} not made", counted(count, "shard", "shards")));
            let more: Vec<String> = instance.into_iter().chain(removed).chain(shards).chain(not_made).collect();
            let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
            let name = found.name.clone() + &more;
            let by = found.ring.writer.as_ref().map_or_else(
                || "–".to_owned(),
                |writer| {
                    let program = writer.program.as_deref().unwrap_or_default();
                    format!("{program} {}", writer.pid).trim().to_owned()
                },
            );
            let History { seconds, per_second, fill, .. } = found.ring.history;
            let rate = if per_second > 0.0 { format!("{}/s", grouped(per_second as u64)) } else { "–".to_owned() };
            let past = match seconds {
                0.0 => "–".to_owned(),
                seconds => format!("{} ({:.0} %)", duration(Duration::from_secs_f64(seconds)), fill * 100.0),
            };
            let server = found.server.as_ref().map_or_else(|| "–".to_owned(), |server| server.words.clone());
            let (recorded, bytes) = (grouped(found.recorded), bytes(found.file_bytes));
            let state = short_word(found.ring.state).1.to_owned();
            [name, found.ring.content_type.name.clone(), by, state, recorded, bytes, rate, past, server]
        })
        .collect();
    rows.insert(0, HEADS.map(str::to_owned));
    let widths = fitted_widths(&rows, columns(&io::stdout()));
    for (row, found) in rows.iter().zip(iter::once(None).chain(found.iter().map(Some))) {
        let style = found.map_or(DIM, |found| short_word(found.ring.state).0);
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate().filter(|(_, (_, width))| *width > 0) {
            let cell = if column == WRITER { shortened(cell, width) } else { shortened_end(cell, width) };
            let padding = " ".repeat(width - cell.chars().count().min(width));
            line += if line.is_empty() { "" } else { "  " };
            match column {
                STATE if found.is_some() => line += &format!("{style}{cell}{style:#}{padding}"),
                column if NUMBERS.contains(&column) => line += &(padding + &cell),
                _ => line += &(cell + &padding),
            }
        }
        let line = line.trim_end();
        if found.is_some() { writeln!(out, "{line}")? } else { writeln!(out, "{DIM}{line}{DIM:#}")? }
    }
    Ok(())
}

const HEADS: [&str; 9] = ["NAME", "CONTENT", "WRITER", "STATE", "RECORDED", "SIZE", "RATE", "PAST", "SERVER"];
const NAME: usize = 0;
const WRITER: usize = 2;
const STATE: usize = 3;
/// The columns of numbers.
const NUMBERS: Range<usize> = 4..8;
/// The columns that are shortened if the terminal is too narrow, and those that are left out if that does not help: the
/// first one first.
const SHORTENED: [usize; 4] = [8, 1, 2, NAME];
const LEFT_OUT: [usize; 7] = [8, 1, 5, 6, 2, 4, 7];
/// The width to which columns are shortened.
const SHORT_CHARS: usize = 12;

/// Returns the widths of the columns in a terminal with so many `columns`, in which no line may take two. A column of
/// the width 0 is left out.
fn fitted_widths(rows: &[[String; HEADS.len()]], columns: Option<usize>) -> [usize; HEADS.len()] {
    let width = |column: usize| column_width(rows.iter().map(|row| row[column].chars().count()));
    let mut widths: [usize; HEADS.len()] = std::array::from_fn(width);
    widths[8] = widths[8].min(SERVER_CHARS_MAX);
    let Some(columns) = columns else { return widths };
    let all = |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>() - 2;
    for column in SHORTENED {
        let over = all(&widths).saturating_sub(columns);
        widths[column] = widths[column].saturating_sub(over).max(SHORT_CHARS.min(widths[column]));
    }
    for column in LEFT_OUT {
        if all(&widths) > columns {
            widths[column] = 0;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let row = ["shop-of-a-very-long-name (6 shards)", "EXEC", "http_service_with_a_long_name 12345", "live"];
        let numbers = ["1,234,567,890", "64 MiB", "121,579/s", "1.2 s (100 %)", "INFO, http_service=trace, and more"];
        let row: Vec<String> = row.iter().chain(&numbers).map(ToString::to_string).collect();
        let rows = [HEADS.map(str::to_owned), row.try_into().unwrap()];
        let all =
            |widths: [usize; 9]| widths.iter().map(|width| if *width > 0 { width + 2 } else { 0 }).sum::<usize>() - 2;
        let whole = all(fitted_widths(&rows, None));
        assert!(whole > 150, "{whole}");
        for columns in 24..whole + 10 {
            let widths = fitted_widths(&rows, Some(columns));
            assert!(all(widths) <= columns && widths[NAME] >= SHORT_CHARS, "{columns}: {widths:?}");
            // Nothing is left out of a usual terminal.
            assert!(columns < 120 || widths.iter().all(|width| *width > 0), "{columns}: {widths:?}");
        }
    }
}
