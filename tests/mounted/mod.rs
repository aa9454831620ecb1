//! File systems that only a test sees.

use std::ffi::CString;
use std::io::Error;
use std::path::Path;
use std::ptr::null;

/// Mounts a file system of type `kind` at `directory`. Only the calling thread and its children see the mount, and
/// the mount ends with them. The function needs root.
pub fn mount(directory: &Path, kind: &str, options: &str) -> Result<(), Error> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let [path, kind, options] = [directory.to_str().unwrap(), kind, options].map(|text| CString::new(text).unwrap());
    // SAFETY: the call gives this thread a mount namespace of its own. It reads and writes no memory of the process.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all pointers are valid strings or null. `mount` allows null for a call that only changes the
    // propagation.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), null(), private, null()) })?;
    // SAFETY: all pointers are valid strings.
    check(unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) })
}
