//! Open files of running programs without a name in a directory: rings whose names were removed, and notes that say why
//! a program records nothing.

use crate::input::programs::process;
use crate::text::format::one_line;
use eventring::internal::shm::OpenFile;
use eventring::reader::{Reader, RingState};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The usual reason why files of rings are removed while their programs run, and what helps.
pub(crate) const WHY_REMOVED: &str = "systemd-logind does so when a user logs out, unless `loginctl enable-linger USER` \
                                      was called";

/// The pause between two looks at what all programs say of themselves.
const WHY_INTERVAL: Duration = Duration::from_secs(1);

/// A ring whose file was removed while its program runs.
pub(crate) struct RemovedRing {
    /// The name by which it can be read: `pid:N/RING`.
    pub name: String,
    pub reader: Reader,
}

/// Returns the notes of programs that record nothing: the process and the text, each note once.
pub(crate) fn notes() -> Vec<(u32, String)> {
    let mut seen = HashSet::new();
    let held = OpenFile::list(None).into_iter();
    // A forked child has the note of its parent open, too.
    held.filter_map(|file| Some((file.pid, file.note()?, file)))
        .filter(|(.., file)| inode(file).is_some_and(|inode| seen.insert(inode)))
        .map(|(pid, text, _)| (pid, text))
        .collect()
}

/// Returns what programs say that were to make a ring of this name and could not.
pub(crate) fn why_not_made(name: &Path) -> Option<String> {
    let of_name = |text: &str| {
        let config = text.strip_prefix("records nothing as `")?.split('`').next()?;
        (config.split(':').next() == name.to_str()).then_some(())
    };
    notes().into_iter().find(|(_, text)| of_name(text).is_some()).map(|(pid, text)| in_words(pid, &text))
}

/// What programs say of rings that are awaited.
#[derive(Default)]
pub(crate) struct WhyAwaited {
    last_look: Option<Instant>,
    found: Option<String>,
}

impl WhyAwaited {
    /// Returns, after a colon, why a ring of one of these names was not made, or nothing. Asks the programs only now
    /// and then, so that it may be called often.
    pub(crate) fn in_words(&mut self, names: &[PathBuf]) -> String {
        if self.last_look.is_none_or(|last| last.elapsed() >= WHY_INTERVAL) {
            self.last_look = Some(Instant::now());
            self.found = names.iter().find_map(|name| why_not_made(name));
        }
        self.found.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    }
}

/// Returns why this process records nothing, if it says so.
pub(crate) fn why_nothing(pid: u32) -> Option<String> {
    OpenFile::list(Some(pid)).iter().find_map(OpenFile::note).map(|text| in_words(pid, &text))
}

/// Returns a note as a sentence.
pub(crate) fn in_words(pid: u32, note: &str) -> String {
    format!("{} {}", process::in_words(pid), one_line(note))
}

/// Returns the rings that were removed from directories while a program holds them open, without the further shards of
/// recorders. `pid` chooses one program.
pub(crate) fn removed_rings(pid: Option<u32>, is_meant: impl Fn(&Path) -> bool) -> Vec<RemovedRing> {
    let held = OpenFile::list(pid).into_iter().filter(|file| is_meant(&file.was_at));
    let mut found: Vec<(Option<u64>, bool, RemovedRing)> = held
        .filter_map(|file| {
            let name = format!("pid:{}/{}", file.pid, file.was_at.file_name()?.to_str()?);
            let reader = Reader::options().header_only().open(&name).ok()?;
            let is_writer = reader.info().extension.is_some_and(|extension| extension.writer.is_process(file.pid));
            // A forked child that outlives its parent has the files open that the parent has removed at its end.
            let is_it = reader.was_at() == Some(&file.was_at) && reader.state() == RingState::Live;
            is_it.then(|| (inode(&file), !is_writer, RemovedRing { name, reader }))
        })
        .collect();
    // A forked child has the rings of its parent open, too. The parent stands for both.
    found.sort_by_key(|(inode, is_child, _)| (*inode, *is_child));
    found.dedup_by_key(|(inode, ..)| *inode);
    found.into_iter().map(|(.., ring)| ring).collect()
}

/// Returns the names of the removed rings of the process that `pid:N` names.
pub(crate) fn rings_of(process: &str) -> Vec<PathBuf> {
    let pid = process.strip_prefix("pid:").and_then(|pid| pid.parse().ok());
    let rings = pid.map_or_else(Vec::new, |pid| removed_rings(Some(pid), |_| true));
    rings.into_iter().map(|ring| ring.name.into()).collect()
}

/// Returns a text about a removed ring that had this path, or this name in one of these directories.
pub(crate) fn instead_of(path: &Path, directories: &[PathBuf]) -> Option<String> {
    let had = |was_at: &Path| was_at == path || directories.iter().any(|directory| was_at == directory.join(path));
    let ring = removed_rings(None, had).into_iter().next()?;
    Some(format!("; its file was removed while its program runs ({WHY_REMOVED}): name {} to read it", ring.name))
}

fn inode(file: &OpenFile) -> Option<u64> {
    file.path.metadata().ok().map(|metadata| metadata.ino())
}
