//! The implementation for systems other than Linux, with the standard library alone. Programs on such a system cannot
//! record, but can read copies of ring files, which do not change.

#![allow(missing_docs, reason = "the items are those of `linux`, which describes them")]

use std::convert::Infallible;
use std::fs::File;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::answers::{FileId, Liveness, LockState, LostPages, NotAFile, ProcessIdentity};
use super::error::{ShmError, ShmErrorKind};
use super::fd::{AsFd, BorrowedFd};
use super::location::{DIRECTORY_VARIABLE, HugePageWarning, RingLocation};
use super::name::RingName;
use super::options::{Access, CreateOptions, MapOptions, MemfdOptions, OpenOptions};
use super::sections::Sections;

fn unsupported(operation: &'static str) -> ShmError {
    let found = "event rings need Linux, and this program was built for another system, or without them";
    ShmError::new(ShmErrorKind::Unsupported, operation, found).mend("run it on Linux, or go on without recording")
}

fn failed(operation: &'static str, error: io::Error) -> ShmError {
    let (kind, found) = match error.kind() {
        io::ErrorKind::NotFound => (ShmErrorKind::NotFound, "it does not exist"),
        io::ErrorKind::PermissionDenied => (ShmErrorKind::PermissionDenied, "permission denied"),
        _ => (ShmErrorKind::Io, "the system reported an error"),
    };
    ShmError::new(kind, operation, found).caused_by(error)
}

/// It has nothing to notice, because no process records.
#[derive(Debug)]
pub struct ForkGuard;

impl ForkGuard {
    pub fn new() -> Result<Self, ShmError> {
        Ok(Self)
    }

    pub fn is_original_process(&self) -> bool {
        true
    }

    pub fn is_surely_original_process(&self) -> bool {
        true
    }
}

/// There are no rings that a core file could hold.
pub(crate) fn put_named_files_into_cores() {}

/// No file is made, so no value of this type exists, nor of the next.
#[derive(Debug)]
pub struct UnpublishedFile<'a>(Infallible, PhantomData<&'a ()>);

impl UnpublishedFile<'_> {
    pub fn is_locked_for_writing(&self) -> bool {
        match self.0 {}
    }
}

impl AsFd for UnpublishedFile<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub struct OwnedRingFile(Infallible);

impl AsFd for OwnedRingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl OwnedRingFile {
    pub fn keep(&self, _: bool) {
        match self.0 {}
    }

    pub(crate) fn at_exit(&self, _: impl Fn() + Send + Sync + 'static) {
        match self.0 {}
    }

    pub fn path(&self) -> Option<&Path> {
        match self.0 {}
    }

    pub fn warning(&self) -> Option<&HugePageWarning> {
        match self.0 {}
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

pub fn create<T, E: From<ShmError>>(
    location: &RingLocation,
    _: u64,
    _: &CreateOptions,
    _: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    Err(unsupported("create ring file").at(&location.path).into())
}

pub fn create_memfd<T, E: From<ShmError>>(
    _: &str,
    _: u64,
    _: &MemfdOptions,
    _: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    Err(unsupported("create anonymous ring").into())
}

/// The directory that the environment names. No ring is made in it.
#[derive(Clone, Debug)]
pub struct RingDirectories(PathBuf);

impl RingDirectories {
    pub fn from_environment() -> Self {
        Self::only(std::env::var_os(DIRECTORY_VARIABLE).unwrap_or_default())
    }

    pub fn only(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    pub fn for_reading(&self) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }

    pub fn location_for_writing(&self, name: &RingName) -> RingLocation {
        let path = self.0.join(name.as_os_str());
        RingLocation { path, in_ring_directory: false, remove_empty_directory: false, warning: None }
    }
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct RingFile {
    file: File,
    path: Option<PathBuf>,
    bytes: u64,
}

impl RingFile {
    /// Opens a path as written, and a bare name in the current directory.
    pub fn open(name: &RingName, _: &RingDirectories, options: &OpenOptions) -> Result<Self, ShmError> {
        let path = Path::new(name.as_os_str());
        if !matches!(name, RingName::Path(_)) && !path.is_file() {
            return Err(unsupported("open ring file").at(path));
        }
        Self::open_path(path, options)
    }

    pub fn open_path(path: impl AsRef<Path>, _: &OpenOptions) -> Result<Self, ShmError> {
        let path = path.as_ref();
        let failed = |error| failed("open ring file", error).at(path);
        // Opening a pipe may wait, and some systems open no directory.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            let found = "it is no regular file";
            return Err(ShmError::new(ShmErrorKind::NotARegularFile, "open ring file", found).at(path));
        }
        let file = Self::from_descriptor(File::open(path).map_err(failed)?)?;
        Ok(Self { path: Some(path.to_path_buf()), ..file })
    }

    pub fn from_descriptor(file: File) -> Result<Self, ShmError> {
        let bytes = file.metadata().map_err(|error| failed("open ring file", error))?.len();
        Ok(Self { file, path: None, bytes })
    }

    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ShmError> {
        let bytes = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let read = read_exact_at(&self.file, &mut buffer[..bytes], offset);
        read.map(|()| bytes).map_err(|error| failed("read ring file", error))
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a number that follows from the path.
    pub fn id(&self) -> FileId {
        let mut hasher = DefaultHasher::new();
        self.path.as_deref().and_then(|path| path.canonicalize().ok()).hash(&mut hasher);
        FileId { device: 0, inode: hasher.finish() }
    }

    pub fn owner(&self) -> u32 {
        0
    }

    pub fn is_still_at_its_path(&self) -> bool {
        true
    }

    pub fn was_truncated(&self) -> bool {
        false
    }

    /// Returns [`Liveness::Dead`]: nothing more comes into a copy.
    pub fn writer_liveness(&self, _: Option<&ProcessIdentity>) -> Liveness {
        Liveness::Dead
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A line of memory, aligned as a descriptor must be.
#[derive(Debug)]
#[repr(align(64))]
struct Line([AtomicU64; LINE_BYTES / 8]);

const LINE_BYTES: usize = 64;

/// The bytes of a file, which were read into memory.
#[derive(Debug)]
pub struct Mapping {
    header: Vec<Line>,
    descriptors: Vec<Line>,
    /// The payload buffer, twice in a row.
    payload: Vec<Line>,
    context: Vec<Line>,
    sections: Sections,
}

impl Mapping {
    pub fn map(file: impl AsFd, sections: Sections, options: MapOptions) -> Result<Self, ShmError> {
        // A mapping may reach to the end of the page in which the file ends.
        const PAGE_BYTES: u64 = 4096;
        if options.access != Access::ReadOnly {
            return Err(unsupported("map ring file"));
        }
        let failed = |error| failed("read ring file", error);
        let mut file = duplicate(file).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if sections.file_bytes().is_none_or(|needed| needed > bytes.next_multiple_of(PAGE_BYTES)) {
            let found = format!("the file has only {bytes} bytes: its end is missing");
            return Err(ShmError::new(ShmErrorKind::Truncated, "read ring file", found).mend("copy it again, whole"));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut file = BufReader::with_capacity(1 << 20, file).chain(io::repeat(0));
        let mut section = |bytes: u64| lines(&mut file, bytes as usize).map_err(failed);
        let header = section(sections.header_bytes)?;
        let descriptors = section(sections.descriptor_bytes)?;
        let mut payload = section(sections.payload_bytes)?;
        for index in 0..payload.len() {
            let again = payload[index].0.each_ref().map(|word| AtomicU64::new(word.load(Ordering::Relaxed)));
            payload.push(Line(again));
        }
        Ok(Self { header, descriptors, payload, context: section(sections.context_bytes)?, sections })
    }

    pub fn is_sparse(&self) -> bool {
        false
    }

    pub fn reach(&self, _: u64, _: u64) -> Option<bool> {
        Some(false)
    }

    pub fn release_pages(&self) {}

    pub fn leave_out_of_cores(&self) {}

    pub fn next_data(&self, offset: u64) -> Option<u64> {
        Some(offset)
    }

    pub fn header(&self) -> NonNull<u8> {
        start(&self.header)
    }

    pub fn descriptors(&self) -> NonNull<u8> {
        start(&self.descriptors)
    }

    pub fn payload(&self) -> NonNull<u8> {
        start(&self.payload)
    }

    pub fn context(&self) -> NonNull<u8> {
        start(&self.context)
    }

    pub fn header_bytes(&self) -> usize {
        self.sections.header_bytes as usize
    }

    pub fn descriptor_bytes(&self) -> usize {
        self.sections.descriptor_bytes as usize
    }

    pub fn payload_bytes(&self) -> usize {
        self.sections.payload_bytes as usize
    }

    pub fn context_bytes(&self) -> usize {
        self.sections.context_bytes as usize
    }

    pub fn page_bytes(&self) -> usize {
        4096
    }

    pub fn access(&self) -> Access {
        Access::ReadOnly
    }

    pub fn was_truncated(&self) -> bool {
        false
    }

    pub fn lost_pages(&self, _: impl AsFd) -> Option<LostPages> {
        None
    }
}

/// Reads the lines of a section.
fn lines(file: &mut impl Read, bytes: usize) -> io::Result<Vec<Line>> {
    let mut lines = Vec::with_capacity(bytes.div_ceil(LINE_BYTES));
    let mut left = bytes;
    while left > 0 {
        let mut line = [[0; 8]; LINE_BYTES / 8];
        let part = left.min(LINE_BYTES);
        file.read_exact(&mut line.as_flattened_mut()[..part])?;
        lines.push(Line(line.map(|word| AtomicU64::new(u64::from_ne_bytes(word)))));
        left -= part;
    }
    Ok(lines)
}

fn start(lines: &[Line]) -> NonNull<u8> {
    NonNull::from(lines).cast()
}

impl ProcessIdentity {
    /// Returns the calling process, as far as it is known here.
    #[must_use]
    pub fn current() -> Self {
        Self { pid: std::process::id(), ..Self::default() }
    }

    /// Returns [`Liveness::Unknown`].
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        Liveness::Unknown
    }
}

pub fn lock_state(_: impl AsFd) -> LockState {
    LockState::Unknown
}

pub(crate) fn remove_dead_file(_: &Path, _: impl Fn(&RingFile) -> bool) {}

pub(crate) fn remove_dead_parts(_: &Path, _: impl Fn(u64, &RingFile) -> bool) {}

pub(crate) fn lengthen(_: impl AsFd, _: u64) -> Result<(), ShmError> {
    Err(unsupported("allocate ring file"))
}

pub(crate) fn address_space_limit() -> u64 {
    u64::MAX
}

pub(crate) fn allocate_more(_: impl AsFd, _: u64, _: u64) -> bool {
    false
}

pub(crate) fn process_number() -> u64 {
    std::process::id().into()
}

pub(crate) fn current_thread_name(_: bool) -> String {
    String::new()
}

pub(crate) fn leave_note(_: Option<&str>) {}

pub(crate) fn current_thread_id() -> u32 {
    0
}

pub(crate) fn realtime_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn is_of_another_user(_: &Path) -> bool {
    false
}

pub fn free_bytes(_: Option<&Path>) -> Option<u64> {
    None
}

pub fn keep_loaded() -> bool {
    true
}

// Nothing is recorded, so nobody asks for the age of an event.
pub fn boottime_nanos() -> u64 {
    0
}

pub fn monotonic_nanos() -> u64 {
    0
}

pub fn host_name() -> String {
    String::new()
}

/// Opens a file for reading. A pipe or a device is not opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    let check = |found: std::fs::Metadata| match () {
        () if found.is_file() => Ok(()),
        () if found.is_dir() => Err(NotAFile("it is a directory")),
        () => Err(NotAFile("it is a device or a pipe")),
    };
    check(std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

#[cfg(unix)]
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (buffer, offset) = (&mut buffer[read..], offset + read as u64),
        }
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn duplicate(file: impl AsFd) -> io::Result<File> {
    file.as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
pub(crate) fn duplicate(file: impl AsFd) -> io::Result<File> {
    file.as_fd().0.try_clone()
}

pub fn nameless_memory(_: &str) -> io::Result<File> {
    nameless_file(&std::env::temp_dir())
}

/// Makes a file that is gone when it is closed.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    let path = directory.join(format!(".eventring.{:016x}", RandomState::new().build_hasher().finish()));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(windows)]
    {
        const DELETE_ON_CLOSE: u32 = 0x0400_0000;
        std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, DELETE_ON_CLOSE);
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    #[cfg(unix)]
    std::fs::remove_file(&path)?;
    Ok(file)
}
