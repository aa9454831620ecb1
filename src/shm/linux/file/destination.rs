//! The directory in which a ring is made, and the ring's final and temporary names there.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fchmod, fstat};
use rustix::io::Errno;

use super::super::system::descriptor::OwnDescriptor;
use super::super::system::paths;
use super::super::system::trust;
use super::owned::DirectoryEntry;
use super::unfinished::{ATTEMPTS, OPERATION, STICKY, too_much_traffic};
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::location::RingLocation;
use crate::shm::options::CreateOptions;

/// The final and the temporary name of a ring that is being made.
pub(in crate::shm::linux) struct Destination {
    pub finished: Arc<DirectoryEntry>,
    pub temporary: Arc<DirectoryEntry>,
}

impl Destination {
    pub(in crate::shm::linux) fn open(place: &RingLocation, options: &CreateOptions) -> Result<Self, ShmError> {
        let path = &place.path;
        let name = path
            .file_name()
            .ok_or_else(|| ShmError::new(ShmErrorKind::BadConfig, OPERATION, "it names a directory").at(path))?;
        let parent = paths::parent(path).unwrap_or(Path::new("."));
        let directory = if place.in_ring_directory {
            open_ring_directory(parent, options)?
        } else {
            open_directory(parent, OFlags::empty()).map_err(|errno| directory_error(parent, errno))?
        };
        let failed = |errno| ShmError::from_errno(OPERATION, errno).at(path);
        let directory = Arc::new(OwnDescriptor::new(directory).map_err(failed)?);
        let named = |suffix: &str| {
            let name = CString::new([name.as_bytes(), suffix.as_bytes()].concat()).map_err(|_| failed(Errno::INVAL))?;
            let mut named = DirectoryEntry::new(&directory, parent, name, place.in_ring_directory);
            named.remove_empty_directory = place.remove_empty_directory;
            Ok(Arc::new(named))
        };
        // Always as long: what the program allocates afterwards must not depend on the digits of its number, or
        // instructions that are counted would.
        Ok(Self { finished: named("")?, temporary: named(&format!(".~{:010}", std::process::id()))? })
    }
}

/// Makes the ring directory if it is missing. Refuses a directory in which no ring would be made either.
///
/// # Errors
/// [`PermissionDenied`](ShmErrorKind::PermissionDenied) if other users could replace files in the directory, or if this
/// user may not make any there; the errors of making it.
pub(crate) fn prepare_ring_directory(path: &Path) -> Result<(), ShmError> {
    open_ring_directory(path, &CreateOptions::default()).map(drop)
}

fn open_directory(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    paths::open(path, OFlags::PATH | OFlags::DIRECTORY | more)
}

fn directory_error(directory: &Path, errno: Errno) -> ShmError {
    ShmError::from_errno("open the directory of the ring file,", errno)
        .at(directory)
        .mend("make it, or choose another path")
}

/// Checks whether a recorder of this user would make rings in the directory. Returns false if it is not there, and a
/// recorder would make it.
///
/// # Errors
/// The error that a recorder would have.
pub fn check_ring_directory(path: &Path) -> Result<bool, ShmError> {
    if open_existing_ring_directory(path, &CreateOptions::default())?.is_some() {
        return Ok(true);
    }
    // The first recorder makes it, with its missing parents.
    let parent = path.ancestors().skip(1).find(|parent| paths::stat(parent).is_ok());
    let made =
        parent.map_or(Ok(()), |parent| accessat(CWD, parent, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS));
    made.map(|()| false).map_err(|errno| not_made(path, errno))
}

/// Opens the ring directory. Makes it if it is missing.
fn open_ring_directory(path: &Path, options: &CreateOptions) -> Result<OwnedFd, ShmError> {
    for _ in 0..ATTEMPTS {
        match open_existing_ring_directory(path, options)? {
            Some(directory) => return Ok(directory),
            None => make_ring_directory(path, options)?,
        }
    }
    // The directory was made in every attempt, but each time another process removed it again, because it was empty.
    Err(too_much_traffic(path))
}

/// Opens the ring directory, or returns `None` if it is missing. Refuses a link, a directory in which other users can
/// replace files, and one in which this process may make none.
fn open_existing_ring_directory(path: &Path, options: &CreateOptions) -> Result<Option<OwnedFd>, ShmError> {
    const OPERATION: &str = "use ring directory";
    let failed = |errno| ShmError::from_errno(OPERATION, errno).at(path);
    let directory = match open_directory(path, OFlags::NOFOLLOW) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR) => return Err(trust::not_a_directory(OPERATION, path)),
        Err(errno) => return Err(failed(errno)),
    };
    let stat = fstat(&directory).map_err(failed)?;
    if !options.allow_foreign_owner {
        trust::check_directory(OPERATION, &stat, path)?;
    }
    trust::check_writable(OPERATION, &directory, &stat, path)?;
    Ok(Some(directory))
}

fn not_made(path: &Path, errno: Errno) -> ShmError {
    ShmError::from_errno("make ring directory", errno)
        .at(path)
        .mend("make it and give it to this user, or set EVENTRING_DIR")
}

/// Makes the directory and its missing parents.
fn make_ring_directory(path: &Path, options: &CreateOptions) -> Result<(), ShmError> {
    if let Some(parent) = paths::parent(path).filter(|parent| paths::stat(parent).is_err()) {
        // The parents get the mode that the umask gives. `directory_mode` is only for the last directory, which has
        // the rings.
        paths::make_directories(parent).map_err(|errno| {
            ShmError::from_errno("make ring directory", errno)
                .at(path)
                .mend(format_args!("make {} and give it to this user, or set EVENTRING_DIR", parent.display()))
        })?;
    }
    let parent_exists = || path.parent().is_some_and(|parent| paths::stat(parent).is_ok());
    let made = paths::make_directory(path, 0o700);
    if made == Err(Errno::NOENT) && parent_exists() {
        let found = "its parent takes no directories, as /proc does";
        let error = ShmError::new(ShmErrorKind::NotFound, "make ring directory", found).at(path);
        return Err(error.mend("set EVENTRING_DIR to a directory elsewhere"));
    }
    let made = made.and_then(|()| {
        // `fchmod` sets the mode, because `mkdir` would clear the bits of the umask in the mode. The directory is
        // opened without following a link, so that no directory elsewhere gets the mode.
        let made = paths::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
        // If other users may make files in the directory, the sticky bit keeps them from replacing this user's files.
        let sticky = if options.directory_mode & 0o022 != 0 { STICKY } else { 0 };
        fchmod(made, Mode::from_raw_mode(options.directory_mode | sticky))
    });
    match made {
        // Another process has made the directory meanwhile (EXIST), or has removed it again (NOENT). The caller tries
        // to open it once more.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) if parent_exists() => Ok(()),
        Err(errno) => Err(not_made(path, errno)),
    }
}
