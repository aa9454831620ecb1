//! The stand-in for the Linux implementation on other systems. On these systems, ring files cannot be made, opened or
//! mapped.
//!
//! Values of some types, such as [`Mapping`], come only from calls that fail here. So these types have no values.
//! Their methods are never called, and need no implementation.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::{SystemTime, UNIX_EPOCH};

use super::answers::{FileId, Liveness, LockState, LostPages, ProcessIdentity};
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

fn unsupported_io() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "event rings and captures need Linux")
}

/// The guard that notices a fork. On this system it has nothing to do, because no process can record events.
#[derive(Debug)]
pub struct ForkGuard;

impl ForkGuard {
    /// Makes a guard.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Result<Self, ShmError> {
        Ok(Self)
    }

    /// Returns true.
    #[must_use]
    pub fn is_original_process(&self) -> bool {
        true
    }

    /// Returns true.
    #[must_use]
    pub fn is_surely_original_process(&self) -> bool {
        true
    }
}

/// A new ring file that no other process can see yet. No value of this type exists on this system.
#[derive(Debug)]
pub struct UnpublishedFile<'a> {
    never: Infallible,
    owner: PhantomData<&'a ()>,
}

impl UnpublishedFile<'_> {
    /// Returns true if the owner holds the second lock, which no reader can hold.
    #[must_use]
    pub fn is_locked_for_writing(&self) -> bool {
        match self.never {}
    }
}

impl AsFd for UnpublishedFile<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.never {}
    }
}

/// A ring file that this process owns. No value of this type exists on this system.
#[derive(Debug)]
pub struct OwnedRingFile(Infallible);

impl OwnedRingFile {
    /// Sets whether the file stays when its owner ends.
    pub fn keep(&self, _: bool) {
        match self.0 {}
    }

    pub(crate) fn at_exit(&self, _: impl Fn() + Send + Sync + 'static) {
        match self.0 {}
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self.0 {}
    }

    /// Returns the reason why the ring does not use huge pages.
    #[must_use]
    pub fn warning(&self) -> Option<&HugePageWarning> {
        match self.0 {}
    }

    /// Returns the descriptor.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

/// Fails on this system.
///
/// # Errors
/// Always [`Unsupported`](ShmErrorKind::Unsupported).
pub fn create<T, E: From<ShmError>>(
    location: &RingLocation,
    _: u64,
    _: &CreateOptions,
    _: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    Err(unsupported("create ring file").at(&location.path).into())
}

/// Fails on this system.
///
/// # Errors
/// Always [`Unsupported`](ShmErrorKind::Unsupported).
pub fn create_memfd<T, E: From<ShmError>>(
    _: &str,
    _: u64,
    _: &MemfdOptions,
    _: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    Err(unsupported("create anonymous ring").into())
}

/// The directories in which rings would be.
#[derive(Clone, Debug)]
pub struct RingDirectories {
    only: PathBuf,
}

impl RingDirectories {
    /// Returns the directory that the environment names.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::only(std::env::var_os(DIRECTORY_VARIABLE).unwrap_or_default())
    }

    /// Returns one given directory.
    #[must_use]
    pub fn only(directory: impl Into<PathBuf>) -> Self {
        Self { only: directory.into() }
    }

    /// Returns the directory.
    #[must_use]
    pub fn for_reading(&self) -> Vec<PathBuf> {
        vec![self.only.clone()]
    }

    /// Returns the place at which a writer would make the ring `name`, if rings could be made.
    #[must_use]
    pub fn location_for_writing(&self, name: &RingName) -> RingLocation {
        RingLocation {
            path: self.only.join(name.as_os_str()),
            in_ring_directory: false,
            remove_empty_directory: false,
            warning: None,
        }
    }
}

/// A ring file that is open for reading. No value of this type exists on this system.
#[derive(Debug)]
pub struct RingFile(Infallible);

impl RingFile {
    /// Fails on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](ShmErrorKind::Unsupported).
    pub fn open(name: &RingName, _: &RingDirectories, _: &OpenOptions) -> Result<Self, ShmError> {
        Err(unsupported("open ring file").at(name.as_os_str().as_ref()))
    }

    /// Fails on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](ShmErrorKind::Unsupported).
    pub fn open_path(path: impl AsRef<Path>, _: &OpenOptions) -> Result<Self, ShmError> {
        Err(unsupported("open ring file").at(path.as_ref()))
    }

    /// Fails on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](ShmErrorKind::Unsupported).
    pub fn from_descriptor(_: File) -> Result<Self, ShmError> {
        Err(unsupported("open ring file"))
    }

    /// Reads bytes of the file.
    ///
    /// # Errors
    /// None.
    pub fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, ShmError> {
        match self.0 {}
    }

    /// Returns the path by which the file was opened.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self.0 {}
    }

    /// Returns the length of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn id(&self) -> FileId {
        match self.0 {}
    }

    /// Returns the user who owns the file.
    #[must_use]
    pub fn owner(&self) -> u32 {
        match self.0 {}
    }

    /// Returns whether the path leads to the file.
    #[must_use]
    pub fn is_still_at_its_path(&self) -> bool {
        match self.0 {}
    }

    /// Returns whether the file was cut.
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        match self.0 {}
    }

    /// Returns whether the writer lives.
    #[must_use]
    pub fn writer_liveness(&self, _: Option<&ProcessIdentity>) -> Liveness {
        match self.0 {}
    }

    /// Returns the descriptor.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

/// A mapping of a ring file. No value of this type exists on this system.
#[derive(Debug)]
pub struct Mapping(Infallible);

impl Mapping {
    /// Fails on this system.
    ///
    /// # Errors
    /// Always [`Unsupported`](ShmErrorKind::Unsupported).
    pub fn map(_: impl AsFd, _: Sections, _: MapOptions) -> Result<Self, ShmError> {
        Err(unsupported("map ring file"))
    }

    /// Returns whether the file has holes.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        match self.0 {}
    }

    /// Maps new parts of a sparse file.
    pub fn reach(&self, _: u64, _: u64) -> Option<bool> {
        match self.0 {}
    }

    /// Does nothing: no value of this type exists.
    pub fn release_pages(&self) {
        match self.0 {}
    }

    /// Returns the start of the next part of a sparse file.
    #[must_use]
    pub fn next_data(&self, _: u64) -> Option<u64> {
        match self.0 {}
    }

    /// Returns the first byte of the header section.
    #[must_use]
    pub fn header(&self) -> NonNull<u8> {
        match self.0 {}
    }

    /// Returns the first byte of the descriptor array.
    #[must_use]
    pub fn descriptors(&self) -> NonNull<u8> {
        match self.0 {}
    }

    /// Returns the first byte of the payload buffer.
    #[must_use]
    pub fn payload(&self) -> NonNull<u8> {
        match self.0 {}
    }

    /// Returns the first byte of the context area.
    #[must_use]
    pub fn context(&self) -> NonNull<u8> {
        match self.0 {}
    }

    /// Returns the length of the header section.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns the length of the descriptor array.
    #[must_use]
    pub fn descriptor_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns the length of the payload buffer.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns the length of the context area.
    #[must_use]
    pub fn context_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns the size of the pages.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        match self.0 {}
    }

    /// Returns whether stores are allowed.
    #[must_use]
    pub fn access(&self) -> Access {
        match self.0 {}
    }

    /// Returns whether an access found no page.
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        match self.0 {}
    }

    /// Returns the reason why an access found no page.
    #[must_use]
    pub fn lost_pages(&self, _: impl AsFd) -> Option<LostPages> {
        match self.0 {}
    }
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

/// Returns [`LockState::Unknown`].
#[must_use]
pub fn lock_state(_: impl AsFd) -> LockState {
    LockState::Unknown
}

pub(crate) fn remove_dead_parts(_: &Path, _: impl Fn(u64, &RingFile) -> bool) {}

pub(crate) fn process_number() -> u64 {
    std::process::id().into()
}

pub(crate) fn current_thread_name(_: bool) -> String {
    String::new()
}

/// Does nothing.
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

/// Returns `None`: this system does not say what is free.
#[must_use]
pub fn free_bytes(_: Option<&Path>) -> Option<u64> {
    None
}

/// Does nothing: nothing keeps an address of this code.
pub fn keep_loaded() {}

/// Returns 0: there is nothing whose age is asked.
pub fn boottime_nanos() -> u64 {
    0
}

/// Returns an empty name.
pub fn host_name() -> String {
    String::new()
}

/// Returns 0: there is nothing whose age is asked.
pub fn monotonic_nanos() -> u64 {
    0
}

/// Fails: there are no rings.
///
/// # Errors
/// Always.
pub fn open_for_reading(_: &Path) -> io::Result<File> {
    Err(unsupported_io())
}

/// Fails: there are no rings.
///
/// # Errors
/// Always.
pub fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(unsupported_io())
}

pub(crate) fn duplicate(_: impl AsFd) -> io::Result<File> {
    Err(unsupported_io())
}

pub(crate) fn memory_file(_: &str) -> io::Result<File> {
    Err(unsupported_io())
}

/// Fails: files without a name are made only where rings are.
///
/// # Errors
/// Always.
pub fn nameless_file(_: &std::path::Path) -> io::Result<File> {
    Err(unsupported_io())
}

/// Fails: memory without a name is made only where rings are.
///
/// # Errors
/// Always.
pub fn nameless_memory(_: &str) -> io::Result<File> {
    Err(unsupported_io())
}
