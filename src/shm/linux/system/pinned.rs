//! Code that stays loaded until the process ends.
//!
//! A plugin that contains this library stays in memory, even if the program calls `dlclose`. The C library, the kernel
//! and other threads hold addresses of this library's code: exit handlers, fork handlers, the handler of SIGBUS,
//! destructors of thread-locals, the thread of a server.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes sure that `dlclose` does not unload this code. Call this before something outside of this code learns an
/// address of it. Returns false if that could not be done.
pub fn keep_loaded() -> bool {
    const KEPT: u8 = 1;
    const NOT_KEPT: u8 = 2;
    static DONE: AtomicU8 = AtomicU8::new(0);
    // Relaxed: a thread that finds the answer relies on nothing. The plugin is not unloaded while its code runs.
    match DONE.load(Ordering::Relaxed) {
        0 => {
            let is_kept = cfg!(target_feature = "crt-static") || pin();
            DONE.store(if is_kept { KEPT } else { NOT_KEPT }, Ordering::Relaxed);
            is_kept
        }
        done => done == KEPT,
    }
}

fn pin() -> bool {
    // SAFETY: the call reads a vector that the kernel has made for the process.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    let program = object_of(std::ptr::without_provenance(headers as usize));
    let Some(own) = object_of(pin as *const () as *const c_void) else { return false };
    if program.is_some_and(|program| program.dli_fbase == own.dli_fbase) {
        // The program itself is never unloaded, and has no name by which it could be opened.
        return true;
    }
    // RTLD_NOLOAD finds the object that is loaded already, and RTLD_NODELETE marks it for good. If the object is not
    // found under its name, it can be unloaded, as without this call.
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: `dladdr` has returned the name of a loaded object, which contains this running function. So the name is a
    // valid string. No constructor runs, because nothing is loaded.
    !unsafe { libc::dlopen(own.dli_fname, flags) }.is_null()
}

/// Returns what the dynamic linker knows about the program or shared library that contains the address.
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` only compares the address with those of loaded objects. `found` has room for the answer.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: the call has succeeded, so it has filled `found`.
    is_found.then(|| unsafe { found.assume_init() })
}
