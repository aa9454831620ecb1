//! Rings without a name. They are for tests, for private use, and for programs that send the file descriptor to
//! another process.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use super::super::memory::allocate::allocate;
use super::super::memory::huge_pages::HugePagePool;
use super::super::system::descriptor::OwnDescriptor;
use super::super::system::page_size::huge_page_bytes;
use super::super::system::paths;
use super::super::writer::lock::{OwnedLock, TryLockError, try_lock};
use super::create::UnpublishedFile;
use super::owned::{OwnedRingFile, Registration};
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::options::MemfdOptions;

const OPERATION: &str = "create anonymous ring";

/// Makes an anonymous file of at least `bytes` bytes. Then lets `initialise` fill the file.
///
/// `name` is only for people who look into `/proc/PID/maps`. The file is sealed, so it can neither shrink nor grow. A
/// process that gets the descriptor therefore cannot cut the file while the writer uses it. The file lives until its
/// last descriptor is closed and its last mapping is gone.
///
/// # Errors
/// The errors are, among others:
/// - [`NoSpace`](ShmErrorKind::NoSpace).
/// - [`NoHugePages`](ShmErrorKind::NoHugePages) if huge pages are requested and the pool is empty.
/// - The errors of `initialise`.
pub fn create_memfd<T, E: From<ShmError>>(
    name: &str,
    bytes: u64,
    options: &MemfdOptions,
    initialise: impl FnOnce(&UnpublishedFile<'_>) -> Result<T, E>,
) -> Result<(OwnedRingFile, T), E> {
    let owned = make(name, bytes, options)?;
    let value = initialise(&UnpublishedFile::new(&owned))?;
    Ok((owned, value))
}

fn make(name: &str, bytes: u64, options: &MemfdOptions) -> Result<OwnedRingFile, ShmError> {
    let failed = |errno| ShmError::from_errno(OPERATION, errno);
    let label = format!("memfd:{name}");
    let label = Path::new(&label);
    if options.huge_pages && HugePagePool::of_this_machine().is_empty() {
        return Err(ShmError::new(ShmErrorKind::NoHugePages, OPERATION, "the pool of 2 MiB pages is empty")
            .at(label)
            .mend("fill it (`sysctl vm.nr_hugepages=N`), or do without huge pages"));
    }
    let file = open_memfd(name, options.huge_pages).map_err(failed)?;
    // The second description, which will hold the lock, is opened before the file gets its final mode. The final mode
    // may not allow this process to open the file.
    let lock = open_for_lock(&file)
        .map_err(|errno| failed(errno).mend("mount /proc: the lock of an anonymous ring needs /proc/thread-self/fd"))?;
    fchmod(&file, Mode::from_raw_mode(options.file_mode)).map_err(failed)?;
    let huge = huge_page_bytes(file.as_fd()).map_err(failed)?;
    let page_bytes = huge.unwrap_or(rustix::param::page_size() as u64);
    let bytes = bytes
        .checked_next_multiple_of(page_bytes)
        .ok_or_else(|| ShmError::new(ShmErrorKind::BadSections, OPERATION, "it is larger than any file"))?;
    allocate(file.as_fd(), bytes, huge, label)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).map_err(failed)?;
    match try_lock(&lock) {
        Ok(()) => {}
        Err(TryLockError::System(errno)) => return Err(failed(errno)),
        Err(TryLockError::Held { pid }) => {
            return Err(ShmError::new(ShmErrorKind::AlreadyOwned { pid }, OPERATION, "another process has locked it"));
        }
    }
    let file = OwnDescriptor::new(file).map_err(failed)?;
    Ok(OwnedRingFile {
        registration: Registration::new(None, file.file()),
        file,
        lock: OwnedLock::keep(&lock).map_err(failed)?,
        path: None,
        bytes,
        warning: None,
    })
}

fn open_memfd(name: &str, huge_pages: bool) -> Result<OwnedFd, Errno> {
    let mut flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    if huge_pages {
        flags |= MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    }
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know NOEXEC_SEAL.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    }
}

/// Opens a second description of `file`, for the lock. The first description must not hold the lock: the program may
/// send a descriptor of it to other processes, and these would then hold the lock, too.
fn open_for_lock(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    paths::open(path.as_ref(), OFlags::RDWR)
}
