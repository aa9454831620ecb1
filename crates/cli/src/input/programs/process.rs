//! The facts about a process that the system shows: its name, its environment, its mapped files.

use crate::text::format::one_line;
use eventring::files::RingDirectories;
use eventring::internal::shm;
use eventring::internal::shm::{OpenFile, is_own_or_roots};
use eventring_capture::foreign::MappedFile;
use memchr::memmem::Finder;
use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The bytes of a program's files in which [`contains`] looks at most.
const CODE_BYTES_MAX: u64 = 1 << 30;

/// Returns the ids of all processes that the system shows.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the process in words: `shop (process 12)`.
pub(crate) fn in_words(pid: u32) -> String {
    let name = shm::read_text(format!("/proc/{pid}/comm")).unwrap_or_default();
    one_line(format!("{} (process {pid})", name.trim()).trim())
}

/// Returns a line of `/proc/PID/status`.
pub(crate) fn status(pid: u32, field: &str) -> Option<String> {
    let status = shm::read_text(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(field))?.trim_start_matches(':').trim().to_owned())
}

/// Returns a variable of the environment with which the process was started; `Err` if this user may not look.
pub(crate) fn variable(pid: u32, name: &str) -> Result<Option<String>, std::io::Error> {
    let environment = shm::read_file(format!("/proc/{pid}/environ"))?;
    let mut values = environment.split(|byte| *byte == 0).filter_map(|entry| {
        let (key, value) = entry.split_at_checked(entry.iter().position(|byte| *byte == b'=')?)?;
        (key == name.as_bytes()).then(|| one_line(&String::from_utf8_lossy(&value[1..])))
    });
    Ok(values.next().filter(|value| !value.is_empty()))
}

/// Returns the path by which this process reaches a file that the process has mapped. If the process is another user's,
/// only files that lie where rings do are looked at: others may be on a file system that never answers.
pub(crate) fn reach(pid: u32, mapped: &MappedFile) -> Option<PathBuf> {
    let device = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.dev() == mapped.file.device);
    let mut known = RingDirectories::from_environment().for_reading();
    known.push("/dev/shm".into());
    if is_own_or_roots(pid) || known.iter().any(device) { path_of(pid, mapped) } else { None }
}

fn path_of(pid: u32, mapped: &MappedFile) -> Option<PathBuf> {
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", mapped.path));
    let is_it = |path: &PathBuf| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == (mapped.file.device, mapped.file.inode))
    };
    [PathBuf::from(&mapped.path), inside].into_iter().find(is_it)
}

/// Returns which of these texts the code of the process has in it: the file of its program, or a library. Returns
/// `None` if this user may not look.
pub(crate) fn contains<const N: usize>(pid: u32, texts: [&str; N]) -> Option<[bool; N]> {
    let finders = texts.map(|text| Finder::new(text.as_bytes()));
    let mut found = [false; N];
    let (mut seen, mut left) = (HashSet::new(), CODE_BYTES_MAX);
    for mapped in MappedFile::list(pid)?.iter().filter(|mapped| mapped.is_code && seen.insert(mapped.file)) {
        let Some(file) = mapped.open(pid) else { continue };
        let (mut file, mut window) = (file.take(left), Vec::new());
        loop {
            // A text may lie on the border of two pieces.
            let kept = window.len().min(64);
            window.drain(..window.len() - kept);
            match file.by_ref().take(1 << 20).read_to_end(&mut window) {
                Ok(read) if read > 0 => left -= read as u64,
                _ => break,
            }
            for (found, finder) in found.iter_mut().zip(&finders) {
                *found |= finder.find(&window).is_some();
            }
        }
    }
    Some(found)
}

/// Returns the files that may be rings of a process: those that it has mapped for writing, and those that it holds open
/// and whose names were removed. Of each, a name, a path by which it can be opened, and the path that it had.
pub(crate) fn rings_of(pid: u32) -> impl Iterator<Item = (String, PathBuf, Option<PathBuf>)> {
    let by_path = move |mapped: MappedFile| {
        let name = Path::new(&mapped.path).file_name()?.to_string_lossy().into_owned();
        Some((name, reach(pid, &mapped)?, None))
    };
    let mapped = MappedFile::list(pid).unwrap_or_default().into_iter();
    let mapped = mapped.filter(|mapped| mapped.is_written).filter_map(by_path);
    let held = OpenFile::list(Some(pid)).into_iter().map(move |file| {
        let was = file.was_at.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (format!("pid:{pid}/{was}"), file.path, Some(file.was_at))
    });
    mapped.chain(held)
}
