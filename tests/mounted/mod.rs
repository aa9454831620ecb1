//! File systems that only a test sees.

use std::ffi::CString;
use std::io::Error;
use std::path::Path;
use std::ptr::null;

/// Mounts a file system of this kind at `directory`. It is visible only to the calling thread and its children, and
/// ends with them. Needs root.
pub fn mount(directory: &Path, kind: &str, options: &str) -> Result<(), Error> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let [path, kind, options] = [directory.to_str().unwrap(), kind, options].map(|text| CString::new(text).unwrap());
    // SAFETY: gives this thread a mount namespace of its own; touches no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all pointers are valid strings or null, as mount allows for a change of propagation.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), null(), private, null()) })?;
    // SAFETY: all pointers are valid strings.
    check(unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) })
}
