//! The files in ring directories, and how they belong together.

use super::exit::Failure;
use super::paint::WARNING;
use eventring::reader::{Reader, RingInfo, RingState};
use eventring::shm::RingDirectories;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Marks files that are not finished.
const STICKY: u32 = 0o1000;

/// The directories that the command line names, or those in which rings are made.
pub(super) fn named_or_usual(named: &[PathBuf]) -> Vec<PathBuf> {
    if named.is_empty() { RingDirectories::from_environment().for_reading() } else { named.to_vec() }
}

/// All files in the directories, in the order of their names. One that was named must be there; the others are made by the first recorder.
pub(super) fn files(directories: &[PathBuf], are_named: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for directory in directories {
        match std::fs::read_dir(directory) {
            Ok(entries) => {
                let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                paths.sort();
                files.extend(paths);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !are_named => {}
            Err(error) => {
                let what = format!("cannot list the ring directory {}", directory.display());
                if are_named {
                    return Err(Failure::io(what, &error));
                }
                anstream::eprintln!("{WARNING}warning:{WARNING:#} {what}: {error}");
            }
        }
    }
    Ok(files)
}

/// Whether it is a file of a ring that is still being made: `<name>.~<pid>`, marked. A ring that is just getting its name has the mark, too, for an instant.
pub(super) fn is_unfinished(path: &Path, metadata: &std::fs::Metadata) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has_pid = |(_, pid): (&str, &str)| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    metadata.permissions().mode() & STICKY != 0 && name.rsplit_once(".~").is_some_and(has_pid)
}

/// How a ring stands to its recorder.
pub(super) enum Kin {
    /// It is no shard, or the first.
    First,
    /// A shard, with the first ring of its recorder beside it, which is in that state.
    Shard(RingState),
    /// A shard without it: the recorder died, and another one has taken the name, or somebody has removed the first ring.
    Orphan,
}

/// How the ring in that file stands to its recorder.
pub(super) fn kin(path: &Path, info: &RingInfo) -> Kin {
    let Some(extension) = info.extension.as_ref().filter(|its| its.shard_limit > 0 && its.shard_index > 0) else {
        return Kin::First;
    };
    let first = path.to_str().and_then(|path| path.strip_suffix(&format!(".{}", extension.shard_index)));
    match first.and_then(|first| state_of_first(Path::new(first), path, info)) {
        Some(state) => Kin::Shard(state),
        None => Kin::Orphan,
    }
}

/// The state of the ring at `first` if the ring at `shard` is one of its shards, by the same marks by which readers know it.
fn state_of_first(first: &Path, shard: &Path, info: &RingInfo) -> Option<RingState> {
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.uid());
    if owner(first)? != owner(shard)? {
        return None;
    }
    let reader = Reader::options().header_only().open(first).ok()?;
    let its = reader.info();
    let (ours, theirs) = (info.extension.as_ref()?, its.extension.as_ref()?);
    let belongs = (theirs.shard_index, theirs.shard_group) == (0, ours.shard_group)
        && theirs.shard_limit > 0
        && theirs.writer == ours.writer
        && (its.content_type, its.schema_hash) == (info.content_type, info.schema_hash);
    belongs.then(|| reader.state())
}
