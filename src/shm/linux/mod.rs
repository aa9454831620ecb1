//! The implementation of the operating-system layer for Linux.
//!
//! | file | idea |
//! |---|---|
//! | `directory`, `huge_pages` | the directory for rings with bare names |
//! | `create`, `destination`, `stale`, `leftovers` | ring files: making, replacing, removing after a death |
//! | `allocate`, `room`, `memory` | memory for a file, or the reason why there is none |
//! | `owned` | owning and removing a ring file |
//! | `memfd` | a ring without a name |
//! | `core_filter` | which rings a core file of this process holds |
//! | `nameless` | other files without a name |
//! | `held` | files that processes have open, and that no directory has |
//! | `note` | why this process records nothing, for those who look at it |
//! | `open` | opening a ring file for reading |
//! | `other_side` | the other side of a connection |
//! | `trust` | which owners of files are accepted |
//! | `plan`, `page_size`, `reservation`, `mapping` | mapping a ring file, with the payload buffer twice |
//! | `extents` | the parts of a sparse file that have data |
//! | `sigbus` | surviving truncation of a mapped file |
//! | `lock`, `write_lock`, `identity`, `liveness` | the writing process, and whether it lives |
//! | `ending` | owners that are about to end |
//! | `replacer` | the right to replace a file without an owner |
//! | `descriptor` | file descriptors that the program may have closed |
//! | `paths`, `errno`, `system` | single system calls, and their errors |
//! | `fork_guard`, `process` | noticing a fork |
//! | `uninherited` | descriptors that forked children do not have |
//! | `thread_name` | the name of the calling thread, also in signal handlers |
//! | `patience` | locks that a forked child can do without |
//! | `removed_at_exit` | other files that the process removes when it exits |
//! | `handler_list` | the list that signal handlers and exit handlers go through |
//! | `pinned` | staying loaded as a part of a plugin |

use super::{answers, decimal, error, fd, location, name, options, sections};

mod allocate;
mod core_filter;
mod create;
mod descriptor;
mod destination;
mod directory;
mod ending;
mod errno;
mod extents;
mod fork_guard;
mod handler_list;
mod held;
mod huge_pages;
mod identity;
mod leftovers;
mod liveness;
mod lock;
mod mapping;
mod memfd;
mod memory;
mod nameless;
mod note;
mod open;
mod other_side;
mod owned;
mod page_size;
mod paths;
pub(crate) mod patience;
mod pinned;
mod plan;
mod process;
#[cfg(all(feature = "otel-context", target_arch = "x86_64"))]
mod process_context;
mod removed_at_exit;
mod replacer;
mod reservation;
mod room;
mod sigbus;
mod stale;
mod system;
mod thread_name;
mod trust;
mod uninherited;
mod write_lock;

pub(crate) use allocate::{address_space_limit, allocate_more, lengthen};
pub(crate) use core_filter::put_named_files_into_cores;
pub use create::{UnpublishedFile, create};
pub(crate) use descriptor::OwnDescriptor;
pub use destination::check_ring_directory;
pub(crate) use destination::prepare_ring_directory;
pub use directory::RingDirectories;
pub(crate) use errno::keeping_errno;
pub use fork_guard::ForkGuard;
pub use held::{HeldFile, is_own_or_roots};
pub use huge_pages::{HugePagePool, huge_page_mounts};
pub use identity::own_number;
pub(crate) use leftovers::{remove_dead_file, remove_dead_parts};
pub use liveness::writer_liveness;
pub use lock::lock_state;
pub use mapping::Mapping;
pub use memfd::create_memfd;
pub use nameless::nameless_file;
pub use nameless::nameless_memory;
pub(crate) use note::leave_note;
pub use open::RingFile;
pub(crate) use other_side::{is_all_read, process_and_user};
pub use owned::OwnedRingFile;
pub use pinned::keep_loaded;
pub(crate) use process::process_number;
#[cfg(test)]
pub(crate) use process::same_pid;
#[cfg(all(feature = "otel-context", target_arch = "x86_64"))]
pub(crate) use process_context::publish_process_context;
pub(crate) use removed_at_exit::RemovedAtExit;
pub use room::free_bytes;
pub use stale::StaleFile;
pub use system::*;
pub(crate) use thread_name::current_thread_name;
pub(crate) use trust::is_of_another_user;
pub(crate) use uninherited::UninheritedFd;
