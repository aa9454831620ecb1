//! `eventring list`.

use super::exit::Exit;
use crate::args::limit::LimitArgs;
use crate::input::directories::{self, ShardRole, is_unfinished};
use crate::input::held;
use crate::input::history::History;
use crate::input::servers::{self, ListedServer, ServerRow, SilentServer};
use crate::input::state::{ContentType, EndTimes, StateWord, Writer, short_word};
use crate::text::format::{bytes, columns, content_name, counted, duration, grouped, one_line};
use crate::text::paint::{DIM, WARNING};
use crate::text::table::{column_width, shortened, shortened_end};
use eventring::reader::{Reader, ReaderError, ReaderErrorKind, RingEnd, RingState, shard_path};
use eventring::tracing::CatalogLosses;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Show the rings in the ring directories, and the programs that write them
///
/// The ring directories are `event-rings/` on a hugetlbfs mount and in /dev/shm, or $EVENTRING_DIR.
#[derive(clap::Args)]
pub(super) struct Args {
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
    /// Null in anonymous memory.
    #[serde(serialize_with = "lossy")]
    file: Option<PathBuf>,
    /// The path from which the file was removed while the program runs.
    #[serde(serialize_with = "lossy")]
    removed_from: Option<PathBuf>,
    #[serde(with = "StateWord")]
    state: RingState,
    content_type: ContentType,
    writer: Option<Writer>,
    /// Events recorded since the ring was created.
    recorded: u64,
    file_bytes: u64,
    shards: Option<u64>,
    /// The number of shards that the recorder needed and could not make.
    shards_not_made: u64,
    /// True for a shard whose shard 0 is gone.
    #[serde(rename = "orphaned")]
    is_orphaned: bool,
    #[serde(flatten)]
    history: History,
    /// The server of the program; null if there is none, or if it refuses this user.
    server: Option<ServerRow>,
    /// The end of the recording; for a recorder, that of all shards together.
    #[serde(flatten)]
    end: EndTimes,
}

/// What `list --json` prints.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed<'a> {
    rings: &'a [ListedRing],
    #[serde(flatten)]
    rest: ListedRest<'a>,
}

/// What is not about one ring.
#[derive(Serialize, JsonSchema)]
struct ListedRest<'a> {
    directories: &'a [PathBuf],
    notes: Vec<Note<'a>>,
}

/// What a program says that records nothing.
#[derive(Serialize, JsonSchema)]
struct Note<'a> {
    pid: u32,
    note: &'a str,
}

fn lossy<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

impl ListedRing {
    /// Returns what the ring itself says, for a ring without a file.
    fn new(name: String, reader: &Reader) -> Self {
        let info = reader.info();
        let state = reader.state();
        Self {
            instance_of: instance_of(&name).map(str::to_owned),
            name,
            file: None,
            removed_from: None,
            state,
            end: reader.end().into(),
            content_type: ContentType { code: info.content_type, name: content_name(&info).to_owned() },
            writer: Writer::of(reader),
            shards: Some(reader.shard_count()).filter(|count| *count > 0),
            shards_not_made: CatalogLosses::read(reader).shards,
            is_orphaned: false,
            recorded: recorded(reader),
            file_bytes: info.geometry.file_bytes(),
            history: History::read(reader, state == RingState::Live),
            server: None,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let directories = directories::named_or_usual(&args.directories);
    let files = directories::files(&directories, !args.directories.is_empty())?;
    let (mut found, mut may_be_more) = (Vec::new(), false);
    for path in &files {
        match list_ring(path) {
            Ok(ring) => found.extend(ring),
            Err(error) => {
                may_be_more |= error.kind() == ReaderErrorKind::PermissionDenied;
                anstream::eprintln!("{WARNING}warning:{WARNING:#} {}", one_line(&error.to_string()));
            }
        }
    }
    let (answering, silent) = servers::in_directories(&directories);
    add_servers(&mut found, &answering);
    add_silent(&mut found, &silent);
    add_removed(&mut found, &directories);
    // Notes are of no directory.
    let notes = if args.directories.is_empty() { held::notes() } else { Vec::new() };
    let is_closed = |directory: &PathBuf| {
        std::fs::read_dir(directory).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    // `files` has warned of it. The list may be incomplete.
    may_be_more |= directories.iter().any(is_closed);
    let mut out = anstream::stdout().lock();
    if args.json {
        let notes = notes.iter().map(|(pid, note)| Note { pid: *pid, note }).collect();
        let listed = Listed { rings: &found, rest: ListedRest { directories: &directories, notes } };
        // Rings without a file are those of one process.
        let id = |ring: &&ListedRing| {
            let pid = ring.writer.as_ref().map_or_else(|| "null".to_owned(), |writer| writer.pid.to_string());
            format!("{pid}:{}", ring.file.as_ref().map_or(ring.name.as_str().into(), |file| file.to_string_lossy()))
        };
        args.limit.write(&mut out, &listed.rest, "rings", listed.rings, id)?;
    } else if found.is_empty() {
        let directories: Vec<_> = directories.iter().map(|directory| directory.display().to_string()).collect();
        let who_knows = if may_be_more { ", as far as this user may look" } else { "" };
        anstream::eprintln!("there are no rings in {}{who_knows}", directories.join(" and "));
    } else {
        table(&mut out, &found)?;
    }
    out.flush()?;
    if !args.json && found.iter().any(|ring| ring.removed_from.is_some()) {
        anstream::eprintln!(
            "{WARNING}warning:{WARNING:#} files of rings were removed while their programs run ({}); after a crash nothing \
             of such a ring is left",
            held::WHY_REMOVED
        );
    }
    for (pid, note) in notes.iter().filter(|_| !args.json) {
        anstream::eprintln!("{WARNING}warning:{WARNING:#} process {pid} {}", one_line(note));
    }
    Ok(if may_be_more { Exit::PermissionDenied } else { Exit::Done })
}

/// Returns the name that a program asked for, if it got another because other instances of it ran: `shop` for `shop~2`.
pub(super) fn instance_of(name: &str) -> Option<&str> {
    let (of, number) = name.rsplit_once('~').filter(|(of, _)| !of.is_empty())?;
    let is_plain = number.starts_with(|first| matches!(first, '1'..='9'));
    number.parse::<u32>().is_ok_and(|number| is_plain && number >= 2).then_some(of)
}

/// Reads the ring at `path`. Returns `None` if the file is no ring, or if it is a shard that is listed with its shard
/// 0.
///
/// # Errors
/// There is a ring, and it cannot be read.
fn list_ring(path: &Path) -> Result<Option<ListedRing>, ReaderError> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    if !metadata.is_file() || is_unfinished(path, &metadata) {
        return Ok(None);
    }
    match Reader::options().header_only().open(path) {
        Ok(reader) => Ok(of_file(path, metadata.len(), reader)),
        Err(error) if matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_file(path: &Path, file_bytes: u64, reader: Reader) -> Option<ListedRing> {
    let role = directories::shard_role(path, &reader.info());
    let mut found = ListedRing {
        file: Some(path.to_path_buf()),
        shards: None,
        file_bytes,
        ..ListedRing::new(path.file_name()?.to_string_lossy().into_owned(), &reader)
    };
    match role {
        ShardRole::Shard(_) => return None,
        // The shard's file has disappeared since it was opened. The recorder is removing all of its rings now, so the
        // shard is not listed.
        ShardRole::Orphan if !path.exists() => return None,
        ShardRole::Orphan => found.is_orphaned = true,
        ShardRole::First => {
            let count = reader.shard_count();
            found.shards = Some(count).filter(|count| *count > 0);
            let mut shards = vec![reader];
            // Shards are made in the order of their numbers, so the loop ends at the first shard that is missing or
            // damaged.
            for index in 1..count {
                let file = shard_path(path, index);
                let Ok(shard) = Reader::options().header_only().open(&file) else { break };
                let ShardRole::Shard(_) = directories::shard_role(&file, &shard.info()) else { break };
                // The sum must not overflow, because a damaged header can hold any number.
                found.recorded = found.recorded.saturating_add(recorded(&shard));
                let bytes = shard.path().and_then(|path| path.metadata().ok()).map_or(0, |metadata| metadata.len());
                found.file_bytes = found.file_bytes.saturating_add(bytes);
                shards.push(shard);
            }
            found.end = shards.iter().filter_map(Reader::end).reduce(RingEnd::and).into();
            found.history = History::read_shards(&shards, found.state == RingState::Live);
        }
    }
    Some(found)
}

/// Returns the number of recorded events: all seqnos that were handed out, except those that were given up.
fn recorded(reader: &Reader) -> u64 {
    let info = reader.info();
    let given_up =
        info.extension.map_or(0, |extension| extension.refused_claims.saturating_add(extension.lapped_claims));
    info.last_seqno.saturating_sub(given_up)
}

/// Adds the servers to the rings that they serve, and the rings in anonymous memory.
fn add_servers(found: &mut Vec<ListedRing>, servers: &[ListedServer]) {
    for server in servers {
        let shown = Some(server.row());
        for ring in found.iter_mut() {
            if ring.file.as_deref().is_some_and(|file| server.has(file)) {
                ring.server.clone_from(&shown);
            }
        }
        for file in server.anonymous() {
            let Ok(descriptor) = server.process.import(file) else { continue };
            let Ok(reader) = Reader::options().open_fd(&descriptor) else { continue };
            found.push(ListedRing {
                writer: Some(Writer {
                    pid: server.process.pid(),
                    alive: Some(true),
                    program: Some(server.process.program().to_owned()),
                })
                .filter(|writer| writer.pid != 0),
                file_bytes: std::fs::File::from(descriptor).metadata().map_or(0, |found| found.len()),
                history: History::read(&reader, true),
                server: shown.clone(),
                ..ListedRing::new(format!("{}/{}", server.process.short_name(), file.name()), &reader)
            });
        }
    }
}

/// Adds the rings whose files were removed from these directories while their programs run.
fn add_removed(found: &mut Vec<ListedRing>, directories: &[PathBuf]) {
    let is_meant = |path: &Path| path.parent().is_some_and(|parent| directories.iter().any(|it| it == parent));
    for held::RemovedRing { name, was_at, reader } in held::removed_rings(None, is_meant) {
        found.push(ListedRing { removed_from: Some(was_at), ..ListedRing::new(name, &reader) });
    }
}

/// Shows at the rings of servers that do not answer that they do not, and warns of them: they may have more rings.
fn add_silent(found: &mut [ListedRing], silent: &[SilentServer]) {
    for server in silent {
        anstream::eprintln!(
            "{WARNING}warning:{WARNING:#} {} does not answer: it may be stopped, and its rings in anonymous memory are \
             not shown",
            server.described()
        );
        let rings = found.iter_mut().filter(|ring| {
            ring.server.is_none() && ring.writer.as_ref().is_some_and(|it| Some(it.pid) == server.pid())
        });
        rings.for_each(|ring| ring.server = Some(server.row()));
    }
}

fn table(out: &mut impl Write, found: &[ListedRing]) -> io::Result<()> {
    let mut rows: Vec<[String; HEADS.len()]> = found
        .iter()
        .map(|found| {
            let instance = found.instance_of.as_ref().map(|of| format!("instance of {}", one_line(of)));
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
            let name = one_line(&found.name) + &more;
            let by = found.writer.as_ref().map_or_else(
                || "–".to_owned(),
                |writer| {
                    let program = writer.program.as_deref().unwrap_or_default();
                    one_line(format!("{program} {}", writer.pid).trim())
                },
            );
            let History { seconds, per_second, fill, .. } = found.history;
            let rate = if per_second > 0.0 { format!("{}/s", grouped(per_second as u64)) } else { "–".to_owned() };
            let past = match seconds {
                0.0 => "–".to_owned(),
                seconds => format!("{} ({:.0} %)", duration(Duration::from_secs_f64(seconds)), fill * 100.0),
            };
            let server = found.server.as_ref().map_or_else(|| "–".to_owned(), |server| one_line(&server.words));
            let (recorded, bytes) = (grouped(found.recorded), bytes(found.file_bytes));
            let state = short_word(found.state).1.to_owned();
            [name, one_line(&found.content_type.name), by, state, recorded, bytes, rate, past, server]
        })
        .collect();
    rows.insert(0, HEADS.map(str::to_owned));
    let widths = fitted_widths(&rows, columns(&io::stdout()));
    for (row, found) in rows.iter().zip(iter::once(None).chain(found.iter().map(Some))) {
        let style = found.map_or(DIM, |found| short_word(found.state).0);
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
