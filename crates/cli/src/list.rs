//! `eventring list`.

use super::directories::{self, ShardRole, is_unfinished};
use super::exit::Exit;
use super::format::{bytes, content_name, counted, duration, grouped, one_line};
use super::held;
use super::history::History;
use super::paint::{DIM, WARNING};
use super::servers::{self, ListedServer, SilentServer};
use super::state::{add_end, json_name, short_word, writer};
use super::table::column_width;
use eventring::reader::{Reader, ReaderErrorKind, RingEnd, RingState, shard_path};
use eventring::tracing::CatalogLosses;
use serde_json::{Value, json};
use std::io::{self, Write};
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
}

/// The largest width of the last column, which shows what is switched on. `eventring levels` shows all of it.
const SERVER_CHARS_MAX: usize = 30;

/// A ring and its shards, as the list shows them. It holds no open reader, so many rings can be listed without many
/// open files.
struct ListedRing {
    name: String,
    /// The path of the file; `None` if the ring is in anonymous memory.
    file: Option<PathBuf>,
    /// The path from which the file was removed while the program runs.
    removed_from: Option<PathBuf>,
    state: RingState,
    /// The end of the recording; for a recorder, that of all shards together.
    end: Option<RingEnd>,
    content_type: u16,
    content_name: String,
    /// The writer's process id, and whether this process lives: `Some(true)`, `Some(false)`, or `None` if that is not
    /// known.
    writer: Option<(u32, Option<bool>)>,
    program_name: Option<String>,
    shards: u64,
    /// The number of shards that the recorder needed and could not make.
    shards_not_made: u64,
    /// True for a shard whose shard 0 is gone.
    is_orphaned: bool,
    /// Events recorded since the ring was created.
    recorded: u64,
    file_bytes: u64,
    history: History,
    /// The server of the program, as JSON and in words; `None` if there is none, or if it refuses this user.
    server: Option<(Value, String)>,
}

impl ListedRing {
    /// Returns what the ring itself says, for a ring without a file.
    fn new(name: String, reader: &Reader) -> Self {
        let info = reader.info();
        let state = reader.state();
        Self {
            name,
            file: None,
            removed_from: None,
            state,
            end: reader.end(),
            content_type: info.content_type,
            content_name: content_name(&info).to_owned(),
            writer: writer(reader),
            shards: reader.shard_count(),
            shards_not_made: CatalogLosses::read(reader).shards,
            is_orphaned: false,
            recorded: recorded(reader),
            file_bytes: info.geometry.file_bytes(),
            history: History::read(reader, state == RingState::Live),
            server: None,
            program_name: info.extension.map(|extension| extension.writer.program_name),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let directories = directories::named_or_usual(&args.directories);
    let files = directories::files(&directories, !args.directories.is_empty())?;
    let mut found: Vec<ListedRing> = files.iter().filter_map(|path| list_ring(path)).collect();
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
    let may_be_more = directories.iter().any(is_closed);
    let mut out = anstream::stdout().lock();
    if args.json {
        let rings: Vec<Value> = found.iter().map(object).collect();
        let notes: Vec<Value> = notes.iter().map(|(pid, text)| json!({ "pid": pid, "note": text })).collect();
        writeln!(out, "{}", json!({ "directories": directories, "rings": rings, "notes": notes }))?;
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
fn instance_of(name: &str) -> Option<&str> {
    let (of, number) = name.rsplit_once('~').filter(|(of, _)| !of.is_empty())?;
    let is_plain = number.starts_with(|first| matches!(first, '1'..='9'));
    number.parse::<u32>().is_ok_and(|number| is_plain && number >= 2).then_some(of)
}

/// Reads the ring at `path`. Returns `None` if the file is no ring, or if it is a shard that is listed with its shard
/// 0.
fn list_ring(path: &Path) -> Option<ListedRing> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || is_unfinished(path, &metadata) {
        return None;
    }
    let reader = match Reader::options().header_only().open(path) {
        Ok(reader) => reader,
        Err(error) => {
            if !matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::NotFound) {
                anstream::eprintln!("{WARNING}warning:{WARNING:#} {}", one_line(&error.to_string()));
            }
            return None;
        }
    };
    let role = directories::shard_role(path, &reader.info());
    let mut found = ListedRing {
        file: Some(path.to_path_buf()),
        shards: 0,
        file_bytes: metadata.len(),
        ..ListedRing::new(path.file_name()?.to_string_lossy().into_owned(), &reader)
    };
    match role {
        ShardRole::Shard(_) => return None,
        // The shard's file has disappeared since it was opened. The recorder is removing all of its rings now, so the
        // shard is not listed.
        ShardRole::Orphan if !path.exists() => return None,
        ShardRole::Orphan => found.is_orphaned = true,
        ShardRole::First => {
            found.shards = reader.shard_count();
            let mut shards = vec![reader];
            // Shards are made in the order of their numbers, so the loop ends at the first shard that is missing or
            // damaged.
            for index in 1..found.shards {
                let file = shard_path(path, index);
                let Ok(shard) = Reader::options().header_only().open(&file) else { break };
                let ShardRole::Shard(_) = directories::shard_role(&file, &shard.info()) else { break };
                // The sum must not overflow, because a damaged header can hold any number.
                found.recorded = found.recorded.saturating_add(recorded(&shard));
                let bytes = shard.path().and_then(|path| path.metadata().ok()).map_or(0, |metadata| metadata.len());
                found.file_bytes = found.file_bytes.saturating_add(bytes);
                shards.push(shard);
            }
            found.end = shards.iter().filter_map(Reader::end).reduce(RingEnd::and);
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
        let shown = Some((server.object(), server.in_words()));
        for ring in found.iter_mut() {
            if ring.file.as_deref().is_some_and(|file| server.has(file)) {
                ring.server.clone_from(&shown);
            }
        }
        for file in server.anonymous() {
            let Ok(descriptor) = server.process().import(file) else { continue };
            let Ok(reader) = Reader::options().open_fd(&descriptor) else { continue };
            found.push(ListedRing {
                writer: Some((server.process().pid(), Some(true))).filter(|(pid, _)| *pid != 0),
                program_name: Some(server.process().program().to_owned()),
                file_bytes: std::fs::File::from(descriptor).metadata().map_or(0, |found| found.len()),
                history: History::read(&reader, true),
                server: shown.clone(),
                ..ListedRing::new(format!("{}/{}", server.process().short_name(), file.name()), &reader)
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
        let rings = found
            .iter_mut()
            .filter(|ring| ring.server.is_none() && ring.writer.is_some_and(|(pid, _)| Some(pid) == server.pid()));
        rings.for_each(|ring| ring.server = Some((server.object(), server.in_words())));
    }
}

fn object(found: &ListedRing) -> Value {
    let mut object = json!({
        "name": found.name,
        "instance_of": instance_of(&found.name),
        "file": found.file.as_ref().map(|file| file.to_string_lossy()),
        "removed_from": found.removed_from.as_ref().map(|path| path.to_string_lossy()),
        "state": json_name(found.state),
        "content_type": { "code": found.content_type, "name": found.content_name },
        "writer": found.writer.map(|(pid, alive)| json!({
            "pid": pid,
            "alive": alive,
            "program": found.program_name,
        })),
        "recorded": found.recorded,
        "file_bytes": found.file_bytes,
        "shards": (found.shards > 0).then_some(found.shards),
        "shards_not_made": found.shards_not_made,
        "orphaned": found.is_orphaned,
        "events_per_s": found.history.per_second,
        "fill": found.history.fill,
        "history_seconds": found.history.seconds,
        "history_seconds_when_full": found.history.seconds_when_full,
        "server": found.server.as_ref().map(|(object, _)| object),
    });
    add_end(&mut object, found.end);
    object
}

/// Cuts a text that is too long for its column.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SERVER_CHARS_MAX) {
        None => text.to_owned(),
        Some(_) => text.chars().take(SERVER_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

fn table(out: &mut impl Write, found: &[ListedRing]) -> io::Result<()> {
    let rows: Vec<[String; 8]> = found
        .iter()
        .map(|found| {
            let instance = instance_of(&found.name).map(|of| format!("instance of {}", one_line(of)));
            let shards = match found.shards {
                _ if found.is_orphaned => Some("orphaned shard".to_owned()),
                0 | 1 => None,
                shards => Some(format!("{shards} shards")),
            };
            let removed = found.removed_from.as_ref().map(|_| "file removed".to_owned());
            let not_made = Some(found.shards_not_made).filter(|count| *count > 0);
            let not_made = not_made.map(|count| format!("{} not made", counted(count, "shard", "shards")));
            let more: Vec<String> = instance.into_iter().chain(removed).chain(shards).chain(not_made).collect();
            let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
            let name = one_line(&found.name) + &more;
            let by = match found.writer {
                None => "–".to_owned(),
                Some((pid, _)) => {
                    let program = found.program_name.as_deref().unwrap_or_default();
                    one_line(format!("{program} {pid}").trim())
                }
            };
            let History { seconds, per_second, fill, .. } = found.history;
            let rate = if per_second > 0.0 { format!("{}/s", grouped(per_second as u64)) } else { "–".to_owned() };
            let past = match seconds {
                0.0 => "–".to_owned(),
                seconds => format!("{} ({:.0} %)", duration(Duration::from_secs_f64(seconds)), fill * 100.0),
            };
            let server = found.server.as_ref().map_or_else(|| "–".to_owned(), |(_, words)| shortened(&one_line(words)));
            let (recorded, bytes) = (grouped(found.recorded), bytes(found.file_bytes));
            [name, one_line(&found.content_name), by, recorded, bytes, rate, past, server]
        })
        .collect();
    let width = |column: usize, heading: &str| {
        column_width(rows.iter().map(|row| row[column].chars().count()).chain([heading.len()]))
    };
    let [name, content, by] = [width(0, "NAME"), width(1, "CONTENT"), width(2, "WRITER")];
    writeln!(
        out,
        "{DIM}{:<name$}  {:<content$}  {:<by$}  {:<8}  {:>15}  {:>10}  {:>11}  {:>17}  SERVER{DIM:#}",
        "NAME", "CONTENT", "WRITER", "STATE", "RECORDED", "SIZE", "RATE", "PAST"
    )?;
    for (row, found) in rows.iter().zip(found) {
        let (style, state) = short_word(found.state);
        writeln!(
            out,
            "{:<name$}  {:<content$}  {:<by$}  {style}{state:<8}{style:#}  {:>15}  {:>10}  {:>11}  {:>17}  {}",
            row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        )?;
    }
    Ok(())
}
