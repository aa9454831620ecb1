//! The files in ring directories, and which shards belong to which recorder.

use crate::exit::Failure;
use crate::text::paint::WARNING;
use eventring::files::{FileId, RingDirectories};
use eventring::internal::shm::{OpenOptions, RingFile};
use eventring::reader::{Reader, RingInfo, RingState};
use std::io;
use std::path::{Path, PathBuf};

/// The sticky bit of a file's mode. A ring has this bit while it is being created.
const STICKY: u32 = 0o1000;

/// Returns the directories that the user has named, or the usual ring directories if the user has named none.
pub(crate) fn named_or_usual(named: &[PathBuf]) -> Vec<PathBuf> {
    if named.is_empty() { RingDirectories::from_environment().for_reading() } else { named.to_vec() }
}

/// Returns all files in the directories, sorted by name in each directory. A directory that the user has named must
/// exist. The usual ring directories need not exist, because the first recorder creates them.
pub(crate) fn files(directories: &[PathBuf], are_named: bool) -> Result<Vec<PathBuf>, Failure> {
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
                    let remedy = match error.kind() {
                        io::ErrorKind::NotFound => "check the path; without a path, `eventring list` shows all rings",
                        io::ErrorKind::NotADirectory => "name a directory; `eventring info` shows a single ring",
                        _ => "use an account that may read it, or name another directory",
                    };
                    return Err(Failure::io(what, &error).and(remedy));
                }
                say!("{WARNING}warning:{WARNING:#} {what}: {error}");
            }
        }
    }
    Ok(files)
}

/// Returns the files in the directories as [`files`] does, without rings that are still being created.
pub(crate) fn finished_files(directories: &[PathBuf], are_named: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut files = files(directories, are_named)?;
    files.retain(|path| path.metadata().map_or(true, |metadata| !is_unfinished(path, &metadata)));
    Ok(files)
}

/// Returns true if the file is a ring that is still being created. Such a file is called `<name>.~<pid>` and has the
/// sticky bit. The bit alone proves nothing: a finished ring still has it for an instant after it got its final name.
#[cfg(unix)]
pub(crate) fn is_unfinished(path: &Path, metadata: &std::fs::Metadata) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has_pid = |(_, pid): (&str, &str)| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & STICKY != 0
        && name.rsplit_once(".~").is_some_and(has_pid)
}

#[cfg(not(unix))]
fn is_unfinished(_: &Path, _: &std::fs::Metadata) -> bool {
    false
}

/// Place of a ring in its recorder.
#[derive(PartialEq)]
pub(crate) enum ShardRole {
    /// A ring without shards, or shard 0.
    First,
    /// A shard other than shard 0. Its shard 0 lies in the same directory and has this state.
    Shard(RingState),
    /// A shard without its shard 0, because the file of shard 0 was removed or now belongs to another recorder.
    Orphan,
}

/// Returns true if the ring is shard 0, or has no shards.
pub(crate) fn is_first_shard(ring: &Reader) -> bool {
    ring.info().extension.is_none_or(|extension| extension.shard_index == 0)
}

/// Returns the place of the ring at `path` in its recorder.
pub(crate) fn shard_role(path: &Path, info: &RingInfo) -> ShardRole {
    let Some(shard) = info.extension.as_ref().filter(|shard| shard.shard_limit > 0 && shard.shard_index > 0) else {
        return ShardRole::First;
    };
    let shard0 = path.to_str().and_then(|path| path.strip_suffix(&format!(".{}", shard.shard_index)));
    match shard0.and_then(|shard0| state_of_shard0(Path::new(shard0), path, info)) {
        Some(state) => ShardRole::Shard(state),
        None => ShardRole::Orphan,
    }
}

/// Returns the paths of the shards that are left of a recorder. The file of its shard 0 was at `path` and is gone.
pub(crate) fn orphans_of(path: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let prefix = format!("{}.", name.to_string_lossy());
    let is_shard = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let index = name.strip_prefix(&prefix).unwrap_or_default();
        let reader = index.parse::<u32>().ok().and_then(|_| Reader::options().header_only().open(file).ok());
        reader.is_some_and(|reader| shard_role(file, &reader.info()) == ShardRole::Orphan)
    };
    let mut found = files(&[directory.to_path_buf()], false).unwrap_or_default();
    found.retain(is_shard);
    found
}

/// A file of the present: the tables of a recorder.
pub(crate) struct TablesFile {
    /// The path of the recorder's shard 0.
    pub ring: PathBuf,
    pub id: FileId,
    /// The state of shard 0, or `None` if its file was removed or now belongs to another recorder.
    pub ring_state: Option<RingState>,
}

impl TablesFile {
    /// Returns what the file at `path` is, if its name and its first bytes are those of a file of the present.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let ring = PathBuf::from(path.to_str()?.strip_suffix(".now")?);
        let file = RingFile::open_path(path, &OpenOptions::default()).ok()?;
        let group = eventring::internal::tables_group(&file)?;
        let is_own = owner(&ring).is_some_and(|user| user == file.owner());
        let first = Reader::options().header_only().open(&ring).ok().filter(|_| is_own);
        let has_tables = |first: &Reader| {
            first.info().extension.is_some_and(|first| (first.shard_index, first.shard_group) == (0, group))
        };
        let ring_state = first.filter(has_tables).map(|first| first.state());
        Some(Self { ring, id: file.id(), ring_state })
    }
}

/// Returns the state of the ring at `shard0` if the ring at `shard` is one of its shards, and otherwise `None`. The
/// library's readers use the same criteria.
fn state_of_shard0(shard0: &Path, shard: &Path, info: &RingInfo) -> Option<RingState> {
    if owner(shard0)? != owner(shard)? {
        return None;
    }
    let reader = Reader::options().header_only().open(shard0).ok()?;
    let first = reader.info();
    let (ours, theirs) = (info.extension.as_ref()?, first.extension.as_ref()?);
    let belongs = (theirs.shard_index, theirs.shard_group) == (0, ours.shard_group)
        && theirs.shard_limit > 0
        && theirs.writer == ours.writer
        && (first.content_type, first.schema_hash) == (info.content_type, info.schema_hash);
    belongs.then(|| reader.state())
}

#[cfg(unix)]
fn owner(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata))
}

#[cfg(not(unix))]
fn owner(path: &Path) -> Option<u32> {
    path.exists().then_some(0)
}

/// Returns the name that a program asked for, if it got another because other instances of it ran: `shop` for `shop~2`.
pub(crate) fn instance_of(name: &str) -> Option<&str> {
    let (of, number) = name.rsplit_once('~').filter(|(of, _)| !of.is_empty())?;
    let is_plain = number.starts_with(|first| matches!(first, '1'..='9'));
    number.parse::<u32>().is_ok_and(|number| is_plain && number >= 2).then_some(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_a_number_from_two_on_in_its_usual_form() {
        assert_eq!(["shop~2", "shop~10", "a~1~3"].map(instance_of), [Some("shop"), Some("shop"), Some("a~1")]);
        assert_eq!(["shop", "shop~1", "shop~02", "shop~+2", "shop~", "~2", "shop~x"].map(instance_of), [None; 7]);
    }
}
