//! `eventring clean`.

use super::directories::{self, Kin};
use super::exit::{Exit, Failure};
use super::format::{bytes, one_line};
use super::info::writer;
use super::paint::{DIM, GOOD};
use eventring::reader::{Reader, ReaderErrorKind, RingState};
use eventring::shm::{ShmError, ShmErrorKind, StaleFile};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Remove what dead programs have left: rings, shards, unfinished files
///
/// Never a ring that lives, that a program has ended and kept (but see --ended), a snapshot, a file that is no ring, or somebody else's.
/// What a crash has left in a ring is lost then: look at it, or capture it, before.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Names or paths of rings, or directories; without any, all in the ring directories
    #[arg(value_name = "RING|DIRECTORY")]
    targets: Vec<PathBuf>,
    /// Say what would be removed, and remove nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove also what programs have ended in good order and kept
    #[arg(long)]
    ended: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why a file goes, or stays.
enum Why {
    WriterDied,
    Orphaned,
    Unfinished,
    InTheMaking,
    Ended,
    /// The process that writes it, if it is known.
    Live(Option<u32>),
    Kept,
    Snapshot,
    Unknown,
    Problem(String),
}

/// What became of a file.
struct Done {
    file: PathBuf,
    bytes: u64,
    is_removed: bool,
    why: Why,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (directories, files) = files(&args.targets)?;
    // Shards come before their first, behind whose end they would be orphans.
    let mut done: Vec<Done> = files.iter().rev().filter_map(|path| args.treat(path)).collect();
    done.reverse();
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", args.object(&directories, &done))?;
    } else {
        args.write(&mut out, &done)?;
        out.flush()?;
        let removed: Vec<_> = done.iter().filter(|done| done.is_removed).collect();
        let size = bytes(removed.iter().fold(0, |sum, done| sum.saturating_add(done.bytes)));
        let would = if args.dry_run { "would be " } else { "" };
        match removed.len() {
            0 => anstream::eprintln!("there is nothing to remove"),
            1 => anstream::eprintln!("1 file {would}removed, {size}"),
            more => anstream::eprintln!("{more} files {would}removed, {size}"),
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// The directories that are looked into, and the files there that are meant, in the order of their names.
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
            return Err(Failure::new(Exit::NotFound, message).and("check the name; `eventring list` shows the rings"));
        }
        looked_into.extend(directories);
    }
    for paths in [&mut looked_into, &mut meant] {
        paths.sort();
        paths.dedup();
    }
    Ok((looked_into, meant))
}

/// The directories that a target means, and the name of the ring there, unless all are meant.
fn places(target: &Path) -> (Vec<PathBuf>, Option<&std::ffi::OsStr>) {
    let parent = target.parent().filter(|_| target.to_string_lossy().contains('/'));
    match (target.is_dir(), parent, target.file_name()) {
        (false, Some(parent), Some(name)) => (vec![parent.to_path_buf()], Some(name)),
        (false, None, Some(name)) => (directories::named_or_usual(&[]), Some(name)),
        _ => (vec![target.to_path_buf()], None),
    }
}

/// Whether the file is the ring of that name, a shard of it, or unfinished and would have become one of them.
fn belongs_to(file: &Path, ring: &std::ffi::OsStr) -> bool {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let Some(rest) = name.strip_prefix(ring.as_encoded_bytes()) else { return false };
    let rest = str::from_utf8(rest).unwrap_or("?");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, is_whole) = match rest.split_once(".~") {
        Some((rest, pid)) => (rest, is_number(pid) || pid == "lock"),
        None => (rest, true),
    };
    is_whole && (rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number))
}

impl Args {
    /// Removes the file if it is to go. `None`: nothing is to be said of it.
    fn treat(&self, path: &Path) -> Option<Done> {
        let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let done = |is_removed, why| Some(Done { file: path.to_path_buf(), bytes: metadata.len(), is_removed, why });
        match StaleFile::lock_unfinished(path) {
            Ok(Some(stale)) => {
                self.remove(stale);
                // Its length is set before it has its memory.
                return Some(Done { bytes: metadata.blocks() * 512, ..done(true, Why::Unfinished)? });
            }
            Ok(None) if directories::is_unfinished(path, &metadata) => return done(false, Why::InTheMaking),
            Ok(None) => {}
            Err(error) => return done(false, problem(&error)),
        }
        let reader = match Reader::options().header_only().open(path) {
            Ok(reader) => reader,
            Err(error) if matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::NotFound) => return None,
            Err(error) => return done(false, Why::Problem(error.to_string())),
        };
        let (kin, own_state) = (directories::kin(path, &reader.info()), reader.state());
        // A shard goes with its first.
        let state = if let Kin::Shard(of_first) = kin { of_first } else { own_state };
        let why = match (state, own_state) {
            (_, RingState::Live) => Err(Why::Live(writer(&reader).map(|(pid, _)| pid))),
            (RingState::Saved, _) => Err(Why::Snapshot),
            (RingState::Ended | RingState::WriterDied, _) if matches!(kin, Kin::Orphan) => Ok(Why::Orphaned),
            (RingState::WriterDied, _) => Ok(Why::WriterDied),
            (RingState::Ended, _) if self.ended => Ok(Why::Ended),
            (RingState::Ended, _) => Err(Why::Kept),
            _ => Err(Why::Unknown),
        };
        let why = match why {
            Ok(why) => why,
            // Of what stays, shards beside their first are not told.
            Err(_) if matches!(kin, Kin::Shard(_)) => return None,
            Err(why) => return done(false, why),
        };
        match StaleFile::lock_own(path) {
            // Another ring has the name by now.
            Ok(Some(_)) if reader.was_replaced() => None,
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

    fn write(&self, out: &mut impl Write, all: &[Done]) -> io::Result<()> {
        let name = |done: &Done| one_line(&done.file.to_string_lossy());
        let width = all.iter().map(|done| name(done).chars().count()).max().unwrap_or(0);
        let removed = if self.dry_run { "would remove" } else { "removed" };
        for done in all {
            let (style, what) = if done.is_removed { (GOOD, removed) } else { (DIM, "left") };
            let (file, size, why) = (name(done), bytes(done.bytes), done.why.in_words());
            writeln!(out, "{style}{what:<0$}{style:#}  {file:<width$}  {size:>10}  {why}", removed.len())?;
        }
        Ok(())
    }

    fn object(&self, directories: &[PathBuf], all: &[Done]) -> Value {
        let list = |is_removed| -> Vec<Value> {
            let some = all.iter().filter(|done| done.is_removed == is_removed);
            some.map(|done| {
                json!({
                    "file": done.file.to_string_lossy(),
                    "file_bytes": done.bytes,
                    "why": done.why.code(),
                    "message": done.why.in_words(),
                })
            })
            .collect()
        };
        json!({ "dry_run": self.dry_run, "directories": directories, "removed": list(true), "left": list(false) })
    }
}

fn problem(error: &ShmError) -> Why {
    match error.kind() {
        ShmErrorKind::AlreadyOwned { pid } => Why::Live(pid),
        _ => Why::Problem(error.to_string()),
    }
}

impl Why {
    fn code(&self) -> &'static str {
        match self {
            Self::WriterDied => "writer_died",
            Self::Orphaned => "orphaned_shard",
            Self::Unfinished => "unfinished",
            Self::InTheMaking => "in_the_making",
            Self::Ended | Self::Kept => "ended",
            Self::Live(_) => "live",
            Self::Snapshot => "snapshot",
            Self::Unknown => "unknown",
            Self::Problem(_) => "problem",
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::WriterDied => "its writer died".into(),
            Self::Orphaned => "a shard whose recorder died".into(),
            Self::Unfinished => "it was never finished".into(),
            Self::InTheMaking => "it is just being made".into(),
            Self::Ended => "its program has ended it".into(),
            Self::Kept => "its program has ended and kept it; --ended removes it".into(),
            Self::Live(Some(pid)) => format!("process {pid} writes it"),
            Self::Live(None) => "a process that cannot be seen from here writes it".into(),
            Self::Snapshot => "a snapshot".into(),
            Self::Unknown => "its writer cannot be seen from here".into(),
            Self::Problem(problem) => one_line(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_its_shards_and_what_was_to_become_of_them_and_nothing_else() {
        let is = |file: &str| belongs_to(&Path::new("/dir").join(file), "shop".as_ref());
        for file in ["shop", "shop.1", "shop.12", "shop.~77", "shop.3.~77", "shop.~lock", "shop.2.~lock"] {
            assert!(is(file), "{file}");
        }
        for file in ["shop2", "shop.old", "shop.1.2", "shop.", "shop.~", "shop.~x", "shop.x.~7", "sho", "my-shop"] {
            assert!(!is(file), "{file}");
        }
    }
}
