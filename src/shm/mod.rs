//! The operating-system layer: where ring files are, who owns them, how they are locked and mapped.
//!
//! This layer handles only bytes and files. It does not depend on the format of a ring: callers pass the sizes of the
//! sections.
//!
//! Ring files work on Linux only (`linux/`). On other systems, and with `--cfg eventring_unsupported`, `unsupported.rs`
//! has the same items. It can read copied ring files. Making a ring fails with [`ShmErrorKind::Unsupported`].
//!
//! | file | idea |
//! |---|---|
//! | `name`, `decimal`, `byte_count` | the configuration string and ring names |
//! | `placeholders` | `{pid}` and `{exe}` in the names of new rings |
//! | `options` | how ring files are made, opened and mapped |
//! | `location` | where a ring file is to be made |
//! | `sections` | the sizes of a ring file's sections |
//! | `answers` | types for the results of system calls about files and processes |
//! | `error` | errors of this layer |
//! | `fd` | types of file descriptors, or their replacement |
//! | `linux/` | the implementation for Linux |
//! | `unsupported` | what other systems can do: read copies |

use std::io::{self, Read as _};
use std::path::Path;

mod answers;
mod byte_count;
mod decimal;
mod error;
mod fd;
mod location;
mod name;
mod options;
mod placeholders;
mod sections;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
mod unsupported;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use linux as system;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use unsupported as system;

pub use answers::{FileId, Liveness, LockState, LostPages, NotAFile, ProcessIdentity};
pub use byte_count::ByteCount;
pub use error::{ShmError, ShmErrorKind};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use fd::OwnedFd;
pub use fd::{AsFd, BorrowedFd};
pub use location::{DIRECTORY_VARIABLE, HugePageWarning, RingLocation};
pub use name::{ConfigLimits, RingConfig, RingName, RingSize, ShiftLimits};
pub(crate) use options::OWNER_TIMEOUT;
pub use options::{Access, CreateOptions, MapOptions, MemfdOptions, OpenOptions};
pub(crate) use placeholders::program_name;
pub use sections::{Sections, WRITE_LOCK_OFFSET};
pub use system::host_name;
pub use system::nameless_file;
pub use system::nameless_memory;
pub(crate) use system::put_named_files_into_cores;
pub use system::{
    ForkGuard, Mapping, OwnedRingFile, RingDirectories, RingFile, UnpublishedFile, create, create_memfd, free_bytes,
    lock_state,
};
pub(crate) use system::{address_space_limit, allocate_more, lengthen};
pub use system::{boottime_nanos, keep_loaded, monotonic_nanos, open_file, read_exact_at};
pub(crate) use system::{current_thread_id, current_thread_name, leave_note};
pub(crate) use system::{
    duplicate, is_of_another_user, process_number, realtime_nanos, remove_dead_file, remove_dead_parts,
};

#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub(crate) use linux::publish_process_context;
#[cfg(all(test, target_os = "linux", not(eventring_unsupported)))]
pub(crate) use linux::same_pid;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use linux::{HugePagePool, StaleFile, check_ring_directory, huge_page_mounts, writer_liveness};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use linux::{OpenFile, is_own_or_roots, link_to, open_file_if, own_number};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) use linux::{OwnDescriptor, keeping_errno};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) use linux::{
    RemovedAtExit, UninheritedFd, is_all_read, is_in_memory, lock_with_timeout, open_read_only, prepare_ring_directory,
    process_and_user,
};
#[cfg(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported)))]
pub(crate) use linux::{SchedstatFile, ThreadUsage, thread_cpu_nanos};

/// Reads a whole file, as [`open_file`] opens it.
///
/// # Errors
/// As [`open_file`].
pub fn read_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path.as_ref())?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole text file, as [`open_file`] opens it.
///
/// # Errors
/// As [`open_file`], and if the file is no text in UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    open_file(path.as_ref()).and_then(io::read_to_string)
}
