//! Writing the rings in a core file to ring files.

use super::elf::{CoreFile, MappedFile, Segment};
use crate::exit::{Exit, Failure};
use crate::text::format::{bytes, content_name, one_line};
use eventring::files::MAGIC;
use eventring::internal::shm::WRITE_LOCK_OFFSET;
use eventring::internal::{START_BYTES, parts_in_memory};
use eventring::reader::Reader;
use rustix::fs::{FlockOperation, flock};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The largest number of rings of one process.
const RINGS_MAX: usize = 4096;
/// The bytes from the start of a ring that tell it from all other rings.
const IDENTITY_BYTES: usize = 4096;

/// The rings of a core file.
#[derive(Default)]
pub(super) struct Images {
    /// Files of rings, without the further shards of recorders, which lie beside their first.
    pub rings: Vec<PathBuf>,
    /// The paths of rings that the process had mapped, and whose memory the system has not written to the core file.
    pub not_in_core: Vec<String>,
    /// The paths of rings whose memory was cut off the core file.
    pub cut_off: Vec<String>,
    pub problems: Vec<String>,
    /// The locked files of rings whose program ran when the core file was made.
    locked: Vec<File>,
    /// The files of rings that are not wholly in the core file, and up to where they are.
    short: Vec<(File, u64)>,
}

/// A ring that was written to a file.
struct Image {
    path: PathBuf,
    was_at: String,
}

/// Writes the rings into files in this directory.
pub(super) fn write(core: &CoreFile, directory: &Path) -> Result<Images, Failure> {
    let mut images = Images::default();
    let (mut written, mut left, mut seen) = (Vec::new(), core.bytes, HashSet::new());
    let files: HashMap<u64, &MappedFile> = core.notes.files.iter().map(|file| (file.address, file)).collect();
    // A mapping of a ring begins with its header, and each mapping is a segment of its own.
    for segment in &core.segments {
        let Some(start) = core.read_start::<START_BYTES>(segment).filter(|start| start.starts_with(&MAGIC)) else {
            continue;
        };
        if written.len() == RINGS_MAX {
            images.problems.push(format!("there are more than {RINGS_MAX} rings: the others are left out"));
            break;
        }
        // A process may have mapped a ring twice, for example to read its own.
        let identity = core.read_start::<IDENTITY_BYTES>(segment);
        if identity.is_some_and(|identity| !seen.insert(identity)) {
            continue;
        }
        let was_at = files.get(&segment.address).map(|file| file.path.clone()).unwrap_or_default();
        let path = directory.join(written.len().to_string());
        match write_one(core, segment, &start, &path, &mut left) {
            Ok(Written { file, missing, whole_until }) => {
                if missing > 0 {
                    let at = segment.address;
                    let short = file.try_clone().map_err(|error| Failure::writing(&path, &error))?;
                    images.short.push((short, whole_until - whole_until % core.notes.page_bytes.max(1)));
                    images.problems.push(format!(
                        "{} of the ring at {at:#x} {was_at} are not in the core file: the events and payloads there are lost",
                        bytes(missing)
                    ));
                }
                // A program that did not crash has gone on: the lock says that the writer lives.
                images.locked.extend((core.notes.signal == 0).then_some(file));
                written.push(Image { path, was_at });
            }
            Err(ImageError::Disk(failure)) => return Err(failure),
            Err(ImageError::Core(problem)) => {
                images.problems.push(format!("the ring at {:#x} {was_at} is left out: {problem}", segment.address));
            }
        }
    }
    images.give_names(directory, written)?;
    (images.cut_off, images.not_in_core) = missing(core, &files);
    Ok(images)
}

/// The file of a ring.
struct Written {
    file: File,
    /// The bytes of the ring that are not in the core file.
    missing: u64,
    /// The offset in the file up to which nothing is missing.
    whole_until: u64,
}

/// The error that a ring has no file.
enum ImageError {
    /// What the core file has of it cannot be read.
    Core(String),
    /// There is no room for the file, nor for that of another ring.
    Disk(Failure),
}

/// Writes the file of a ring.
fn write_one(
    core: &CoreFile,
    segment: &Segment,
    start: &[u8; START_BYTES],
    path: &Path,
    left: &mut u64,
) -> Result<Written, ImageError> {
    let cannot = |error: std::io::Error| match Failure::writing(path, &error) {
        failure if failure.exit == Exit::NoSpace => ImageError::Disk(failure),
        _ => ImageError::Core(format!("its copy {}: {error}", path.display())),
    };
    let parts = parts_in_memory(start).map_err(|error| ImageError::Core(error.to_string()))?;
    let file = File::create_new(path).map_err(cannot)?;
    let bytes = parts.iter().map(|(_, in_file, bytes)| in_file + bytes).max().unwrap_or(0);
    let (mut missing, mut whole_until) = (0, bytes);
    for (in_memory, in_file, bytes) in parts {
        let address = segment.address.saturating_add(in_memory);
        let (missing_here, whole) = core.copy(address, bytes, (&file, in_file), left).map_err(cannot)?;
        if missing_here > 0 {
            missing += missing_here;
            whole_until = whole_until.min(in_file + whole);
        }
    }
    file.set_len(bytes).map_err(cannot)?;
    if core.notes.signal != 0 {
        return Ok(Written { file, missing, whole_until });
    }
    // The program did not crash. A lock on the copy says that the writer lives, as long as its process does: the word
    // would say that the writer has a second lock.
    file.write_all_at(&[0; 8], WRITE_LOCK_OFFSET)
        .and_then(|()| Ok(flock(&file, FlockOperation::LockExclusive)?))
        .map_err(cannot)?;
    Ok(Written { file, missing, whole_until })
}

impl Images {
    /// Ends the files where the core file lacks something: who reads on finds a truncated file, and not zeros. A file
    /// that is short from the start would not be opened.
    pub(super) fn shorten(&self) -> std::io::Result<()> {
        self.short.iter().try_for_each(|(file, whole_until)| file.set_len(*whole_until))
    }

    /// Gives the files the names that they had, so that readers find the shards of a recorder beside its first.
    fn give_names(&mut self, directory: &Path, written: Vec<Image>) -> Result<(), Failure> {
        let mut groups = HashMap::new();
        let mut placed = Vec::new();
        for image in written {
            let reader = match Reader::options().header_only().open(&image.path) {
                Ok(reader) => reader,
                Err(error) => {
                    self.problems.push(format!("the ring {} is left out: {error}", image.was_at));
                    continue;
                }
            };
            let info = reader.info();
            let shard = info.extension.as_ref().filter(|extension| extension.shard_limit > 0);
            let shard = shard.map(|it| (it.shard_group, it.writer.pid, it.shard_index));
            let name = name(&image.was_at, content_name(&info), shard.map_or(0, |(.., index)| index));
            let next = groups.len();
            let group = groups.entry(shard.map_or((0, 0, next as u64), |(group, pid, _)| (group, pid, u64::MAX)));
            let (number, of_first) = group.or_insert((next, name.clone()));
            let index = shard.map_or(0, |(.., index)| index);
            let place = directory.join(format!("of-{number}"));
            let file = if index == 0 { of_first.clone() } else { format!("{of_first}.{index}") };
            placed.push((index, place.join(file), image.path));
        }
        for (_, place, path) in &placed {
            let moved = fs::create_dir_all(place.parent().unwrap_or(directory)).and_then(|()| fs::rename(path, place));
            moved.map_err(|error| Failure::writing(place, &error))?;
        }
        let firsts: HashSet<PathBuf> =
            placed.iter().filter(|(index, ..)| *index == 0).map(|(_, place, _)| place.clone()).collect();
        let has_first = |place: &Path, index: u64| {
            let first = place.to_str().and_then(|place| place.strip_suffix(&format!(".{index}")));
            first.is_some_and(|first| firsts.contains(Path::new(first)))
        };
        let stands_alone = |(index, place, _): &(u64, PathBuf, PathBuf)| *index == 0 || !has_first(place, *index);
        self.rings = placed.iter().filter(|placed| stands_alone(placed)).map(|(_, place, _)| place.clone()).collect();
        Ok(())
    }
}

/// Returns a file name for a ring that was at this path; for one in anonymous memory, from what it holds.
fn name(was_at: &str, content: &str, shard: u64) -> String {
    let path = was_at.strip_suffix(" (deleted)").unwrap_or(was_at);
    let of_file = Path::new(path).file_name().and_then(|name| name.to_str()).filter(|_| !path.starts_with("/memfd:"));
    let name = of_file.map(|name| name.strip_suffix(&format!(".{shard}")).unwrap_or(name));
    let name = name.map_or_else(|| one_line(content).replace('/', "_"), ToOwned::to_owned);
    let name: String = name.chars().take(100).collect();
    if name.is_empty() || name.starts_with('.') { format!("ring{name}") } else { name }
}

/// Returns the paths of mapped files that look like rings, and whose first bytes are not in the core file: those that
/// were cut off it, and those that the system has left out. The payload buffer of a ring is mapped twice, one after the
/// other: no other file is mapped like this. What a ring has behind the buffer follows the second one, often in one
/// mapping with it.
fn missing(core: &CoreFile, files: &HashMap<u64, &MappedFile>) -> (Vec<String>, Vec<String>) {
    let is_mapped_twice = |file: &&MappedFile| {
        files.get(&file.end).is_some_and(|mirror| {
            let pages = |of: &MappedFile| of.end.saturating_sub(of.address) / core.notes.page_bytes.max(1);
            mirror.path == file.path
                && file.page == 0
                && (1..pages(file)).contains(&mirror.page)
                && mirror.page.saturating_add(pages(mirror)) >= pages(file)
        })
    };
    let segment = |address: u64| {
        let at = core.segments.binary_search_by_key(&address, |segment| segment.address).ok()?;
        core.segments.get(at)
    };
    let (mut cut_off, mut left_out) = (BTreeSet::new(), BTreeSet::new());
    for file in core.notes.files.iter().filter(is_mapped_twice) {
        match segment(file.address) {
            None => _ = left_out.insert(file.path.clone()),
            Some(segment) if segment.bytes < START_BYTES as u64 => _ = cut_off.insert(file.path.clone()),
            Some(_) => {}
        }
    }
    (cut_off.into_iter().collect(), left_out.into_iter().collect())
}
