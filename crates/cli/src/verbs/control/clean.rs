//! `eventring clean`.

use crate::exit::{Exit, Failure};
use crate::input::directories::{self, ShardRole, TablesFile};
use crate::input::ring::report::RingReport;
use crate::input::ring::state::writer;
use crate::output::json_line;
use crate::text::format::{bytes, counted, one_line};
use crate::text::out::stdout;
use crate::text::paint::{DIM, GOOD};
use crate::text::table::column_width;
use eventring::files::{ShmError, ShmErrorKind, StaleFile};
use eventring::reader::{Reader, ReaderErrorKind, RingState};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Remove the files that dead programs have left: rings with their shards and tables, unfinished files
///
/// These files are never removed: a ring whose program lives, a ring that its program has ended and kept (but see
/// --ended), a snapshot, a file that is not a ring, and a file of another user. The events of a removed ring are lost;
/// capture a ring first if its events matter. A plain copy of a ring looks like the ring of a dead program: keep copies
/// elsewhere.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names or paths of rings, or directories [default: all rings in the ring directories]
    #[arg(value_name = "RING|DIRECTORY")]
    targets: Vec<PathBuf>,
    /// Print the files that would be removed, and remove nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove also the rings that programs have ended normally and kept
    #[arg(long)]
    ended: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Reason why a file is removed or left.
enum Reason {
    WriterDied,
    Orphaned,
    OrphanedTables,
    Unfinished,
    BeingCreated,
    Ended,
    /// Live ring, with the pid of its writer if that is known.
    Live(Option<u32>),
    Kept,
    Snapshot,
    DeadServer,
    Unknown,
    Problem(String),
}

/// A file that was removed or left.
struct CleanedFile {
    file: PathBuf,
    bytes: u64,
    is_removed: bool,
    why: Reason,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (directories, files) = files(&args.targets)?;
    // The files are taken in reverse order, so that the shards and tables of a recorder are removed before its shard 0.
    // Without their shard 0 they would be reported as orphans.
    let mut done: Vec<CleanedFile> = files.iter().rev().filter_map(|path| args.clean_file(path)).collect();
    done.reverse();
    let mut out = stdout();
    if args.json {
        json_line(&args.answer(directories, &done))?;
    } else {
        args.write(&mut out, &done)?;
        out.flush()?;
        let removed: Vec<_> = done.iter().filter(|done| done.is_removed).collect();
        let size = bytes(removed.iter().fold(0, |sum, done| sum.saturating_add(done.bytes)));
        let would = if args.dry_run { "would be " } else { "" };
        match removed.len() {
            0 => say!("there is nothing to remove"),
            count => say!("{} {would}removed, {size}", counted(count as u64, "file", "files")),
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Returns the directories in which the targets lie, and the files that the targets stand for, sorted by name.
fn files(targets: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    if targets.is_empty() {
        let directories = directories::named_or_usual(&[]);
        let files = directories::files(&directories, false)?;
        return Ok((directories, files));
    }
    let (mut looked_into, mut meant) = (Vec::new(), Vec::new());
    for target in targets {
        let (directories, ring) = places(target);
        let in_directories = directories::files(&directories, ring.is_none())?;
        let found = meant.len();
        meant.extend(in_directories.into_iter().filter(|file| ring.is_none_or(|ring| belongs_to(file, ring))));
        if let Some(ring) = ring.filter(|_| meant.len() == found) {
            let message = format!("there is no ring {} and nothing left of it", Path::new(ring).display());
            return Err(Exit::NotFound.failure(message).and("check the name; `eventring list` shows the rings"));
        }
        looked_into.extend(directories);
    }
    for paths in [&mut looked_into, &mut meant] {
        paths.sort();
        paths.dedup();
    }
    Ok((looked_into, meant))
}

/// Returns the directories in which the files of `target` may lie. If `target` names a ring, also returns the ring's
/// file name.
fn places(target: &Path) -> (Vec<PathBuf>, Option<&std::ffi::OsStr>) {
    let parent = target.parent().filter(|_| target.to_string_lossy().contains('/'));
    match (target.is_dir(), parent, target.file_name()) {
        (false, Some(parent), Some(name)) => (vec![parent.to_path_buf()], Some(name)),
        (false, None, Some(name)) => (directories::named_or_usual(&[]), Some(name)),
        _ => (vec![target.to_path_buf()], None),
    }
}

/// Returns true if `file` is the ring with the name `ring`, one of its shards, its tables, or a temporary file that a
/// program has left while it was making one of these.
fn belongs_to(file: &Path, ring: &std::ffi::OsStr) -> bool {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let Some(rest) = name.strip_prefix(ring.as_encoded_bytes()) else { return false };
    let rest = str::from_utf8(rest).unwrap_or("?");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, is_whole) = match rest.split_once(".~") {
        Some((rest, pid)) => (rest, is_number(pid) || pid == "lock"),
        None => (rest, true),
    };
    is_whole && (rest.is_empty() || rest == ".now" || rest.strip_prefix('.').is_some_and(is_number))
}

impl Args {
    /// Removes the file if a dead program has left it. Returns the file's entry in the report, or `None` if the report
    /// does not mention the file.
    fn clean_file(&self, path: &Path) -> Option<CleanedFile> {
        if crate::input::programs::servers::is_dead_socket(path) {
            if !self.dry_run {
                std::fs::remove_file(path).ok()?;
            }
            return Some(CleanedFile { file: path.to_path_buf(), bytes: 0, is_removed: true, why: Reason::DeadServer });
        }
        let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let done =
            |is_removed, why| Some(CleanedFile { file: path.to_path_buf(), bytes: metadata.len(), is_removed, why });
        match StaleFile::lock_unfinished(path) {
            Ok(Some(stale)) => {
                self.remove(stale);
                // An unfinished file may be sparse. So its size is the size of its blocks on the disk, and not its
                // length.
                return Some(CleanedFile { bytes: metadata.blocks() * 512, ..done(true, Reason::Unfinished)? });
            }
            Ok(None) if directories::is_unfinished(path, &metadata) => return done(false, Reason::BeingCreated),
            Ok(None) => {}
            Err(error) => return done(false, problem(&error)),
        }
        if let Some(tables) = TablesFile::from_path(path) {
            let why = match tables.ring_state {
                None => Reason::OrphanedTables,
                Some(RingState::WriterDied) => Reason::WriterDied,
                Some(RingState::Ended) if self.ended => Reason::Ended,
                // The report has the ring's entry.
                Some(_) => return None,
            };
            // The file is as long as all cells would need, and has memory behind those that were used.
            return match StaleFile::lock_own(path) {
                Ok(Some(stale)) if stale.id() == tables.id => {
                    self.remove(stale);
                    Some(CleanedFile { bytes: metadata.blocks() * 512, ..done(true, why)? })
                }
                Ok(_) => None,
                Err(error) => done(false, problem(&error)),
            };
        }
        let ring = match Reader::options().header_only().open(path) {
            Ok(reader) => RingReport::new(reader),
            Err(error) if matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::NotFound) => return None,
            Err(error) => return done(false, Reason::Problem(error.to_string())),
        };
        // Shards are removed if and only if their shard 0 is removed. So the state of shard 0 decides.
        let state = if let ShardRole::Shard(of_shard0) = ring.role { of_shard0 } else { ring.state };
        let why = match (state, ring.state) {
            (_, RingState::Live) => Err(Reason::Live(writer(&ring.reader).map(|(pid, _)| pid))),
            (RingState::Saved, _) => Err(Reason::Snapshot),
            (RingState::Ended | RingState::WriterDied, _) if ring.role == ShardRole::Orphan => Ok(Reason::Orphaned),
            (RingState::WriterDied, _) => Ok(Reason::WriterDied),
            // Writers of other implementations leave their rings without a request to keep them.
            (RingState::Ended, _) if self.ended || ring.info.extension.is_none() => Ok(Reason::Ended),
            (RingState::Ended, _) => Err(Reason::Kept),
            _ => Err(Reason::Unknown),
        };
        let why = match why {
            Ok(why) => why,
            // If the rings of a recorder are not removed, the report has one entry for all of them: that of shard 0.
            // The other shards have none.
            Err(_) if matches!(ring.role, ShardRole::Shard(_)) => return None,
            Err(why) => return done(false, why),
        };
        match StaleFile::lock_own(path) {
            // Another ring has been created under this path since the file was opened. Nothing was decided about the
            // new ring, so it stays.
            Ok(Some(_)) if ring.reader.was_replaced() => None,
            Ok(Some(stale)) => {
                self.remove(stale);
                done(true, why)
            }
            Ok(None) => None,
            Err(error) => done(false, problem(&error)),
        }
    }

    fn remove(&self, stale: StaleFile) {
        if !self.dry_run {
            stale.remove();
        }
    }

    fn write(&self, out: &mut impl Write, all: &[CleanedFile]) -> io::Result<()> {
        let name = |done: &CleanedFile| done.file.to_string_lossy().into_owned();
        let width = column_width(all.iter().map(|done| name(done).chars().count()));
        let removed = if self.dry_run { "would remove" } else { "removed" };
        for done in all {
            let (style, what) = if done.is_removed { (GOOD, removed) } else { (DIM, "left") };
            let (file, size, why) = (name(done), bytes(done.bytes), done.why.texts().1);
            writeln!(out, "{style}{what:<0$}{style:#}  {file:<width$}  {size:>10}  {why}", removed.len())?;
        }
        Ok(())
    }

    fn answer(&self, directories: Vec<PathBuf>, all: &[CleanedFile]) -> Cleaned {
        let list = |is_removed| {
            let some = all.iter().filter(|done| done.is_removed == is_removed);
            some.map(|done| {
                let (why, message) = done.why.texts();
                CleanedRow {
                    file: done.file.to_string_lossy().into(),
                    file_bytes: done.bytes,
                    why,
                    message: message.into(),
                }
            })
            .collect()
        };
        Cleaned { dry_run: self.dry_run, directories, removed: list(true), left: list(false) }
    }
}

/// What `clean --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Cleaned {
    dry_run: bool,
    directories: Vec<PathBuf>,
    /// The files that were removed, or would be.
    removed: Vec<CleanedRow>,
    left: Vec<CleanedRow>,
}

#[derive(Serialize, JsonSchema)]
struct CleanedRow {
    file: String,
    file_bytes: u64,
    /// `writer_died`, `orphaned_shard`, `orphaned_tables`, `unfinished`, `dead_server`, `ended`; of files that are left
    /// `ended`, `live`, `snapshot`, `in_the_making`, `unknown`, `problem`.
    why: &'static str,
    message: String,
}

fn problem(error: &ShmError) -> Reason {
    match error.kind() {
        ShmErrorKind::AlreadyOwned { pid } => Reason::Live(pid),
        _ => Reason::Problem(error.to_string()),
    }
}

impl Reason {
    /// Returns the reason's name in JSON, and the reason in words.
    fn texts(&self) -> (&'static str, Cow<'static, str>) {
        match self {
            Self::WriterDied => ("writer_died", "its writer died".into()),
            Self::Orphaned => ("orphaned_shard", "a shard whose recorder died".into()),
            Self::OrphanedTables => ("orphaned_tables", "tables of a recorder that is gone".into()),
            Self::Unfinished => ("unfinished", "it was never finished".into()),
            Self::BeingCreated => ("in_the_making", "it is just being created".into()),
            Self::Ended => ("ended", "its program has ended it".into()),
            Self::Kept => ("ended", "its program has ended and kept it; --ended removes it".into()),
            Self::Live(Some(pid)) => ("live", format!("process {pid} writes it").into()),
            Self::Live(None) => ("live", "a process that cannot be seen from here writes it".into()),
            Self::Snapshot => ("snapshot", "a snapshot".into()),
            Self::DeadServer => ("dead_server", "a socket whose server died".into()),
            Self::Unknown => ("unknown", "its writer cannot be seen from here".into()),
            Self::Problem(problem) => ("problem", one_line(problem).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_tables_and_unfinished_files_belong_to_a_ring() {
        let is = |file: &str| belongs_to(&Path::new("/dir").join(file), "shop".as_ref());
        for file in [
            "shop",
            "shop.1",
            "shop.12",
            "shop.~77",
            "shop.3.~77",
            "shop.now",
            "shop.now.~77",
            "shop.~lock",
            "shop.2.~lock",
        ] {
            assert!(is(file), "{file}");
        }
        for file in [
            "shop2",
            "shop.old",
            "shop.1.2",
            "shop.",
            "shop.~",
            "shop.~x",
            "shop.x.~7",
            "shop.now.1",
            "shopnow",
            "sho",
            "my-shop",
        ] {
            assert!(!is(file), "{file}");
        }
    }
}
