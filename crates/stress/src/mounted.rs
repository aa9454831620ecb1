//! File systems that only a test sees.

use std::ffi::CString;
use std::io::Error;
use std::path::Path;
use std::ptr::null;

/// A mounted file system. It is unmounted at the end: a directory with a mount cannot be removed.
#[must_use = "it is unmounted when this is dropped"]
pub struct Mounted {
    path: CString,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: the string is valid.
        unsafe { libc::umount2(self.path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Does what [`mount`] does. Returns `None`, after saying that the test is skipped, if this process may not do that.
pub fn mount_or_skip(directory: &Path, kind: &str, options: &str) -> Option<Mounted> {
    let mounted = mount(directory, kind, options);
    if let Err(error) = &mounted {
        crate::missing(format_args!("cannot mount a {kind}: {error}"));
    }
    mounted.ok()
}

/// Mounts a file system of type `kind` at `directory`. Only the calling thread and the children that it starts see the
/// mount. The function needs root.
pub fn mount(directory: &Path, kind: &str, options: &str) -> Result<Mounted, Error> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let [path, kind, options] = [directory.to_str().unwrap(), kind, options].map(|text| CString::new(text).unwrap());
    // SAFETY: the call gives this thread a mount namespace of its own. It reads and writes no memory of the process.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all pointers are valid strings or null. This call only makes the existing mounts private. For that,
    // `mount` reads no type and no data, so these two pointers may be null.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), null(), private, null()) })?;
    // SAFETY: all pointers are valid strings.
    check(unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) })?;
    Ok(Mounted { path })
}

/// Unmounts what is mounted at `directory`, after a call of [`mount`] by this thread: only this thread and its children
/// see that it is gone.
pub fn unmount(directory: &Path) -> Result<(), Error> {
    let path = CString::new(directory.to_str().unwrap()).unwrap();
    // SAFETY: the string is valid.
    let result = unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}
