//! A note for other processes about why this process records nothing.
//!
//! A process that records nothing keeps the reason in an open file in anonymous memory. This file needs no directory,
//! nobody can plant a link in its place, and it disappears when the process ends. Only the process's own user and root
//! can read it.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};

use super::super::system::descriptor::OwnDescriptor;

/// The name that `/proc/PID/fd` shows of a note.
pub(in crate::shm::linux) const NAME: &str = "eventring-note";
/// The largest number of bytes of a note.
pub(in crate::shm::linux) const BYTES_MAX: usize = 4096;

static NOTE: Mutex<Option<OwnDescriptor>> = Mutex::new(None);

/// Leaves a note with this text in place of an earlier one, or takes the earlier one back if `text` is `None`. If the
/// system refuses a file in memory, there is no note.
pub(crate) fn leave_note(text: Option<&str>) {
    let note = text.and_then(|text| {
        let mut file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC).ok()?);
        file.write_all(&text.as_bytes()[..text.len().min(BYTES_MAX)]).ok()?;
        OwnDescriptor::new(OwnedFd::from(file)).ok()
    });
    *NOTE.lock().unwrap_or_else(PoisonError::into_inner) = note;
}
