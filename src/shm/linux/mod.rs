//! The implementation of the operating-system layer for Linux.
//!
//! Each folder uses only the folders above it in this table.
//!
//! | folder | idea |
//! |---|---|
//! | `system/` | single system calls |
//! | `process/` | this process: forks, descriptors, threads |
//! | `writer/` | the writing process of a ring, and whether it lives |
//! | `memory/` | memory for a file, and its mapping |
//! | `file/` | ring files: making, finding, replacing, removing |

mod file;
mod memory;
mod process;
mod system;
mod writer;

pub(crate) use file::core_filter::put_named_files_into_cores;
pub use file::create::{UnpublishedFile, create};
pub use file::destination::check_ring_directory;
pub(crate) use file::destination::prepare_ring_directory;
pub use file::directory::RingDirectories;
pub(crate) use file::leftovers::{remove_dead_file, remove_dead_parts};
pub use file::memfd::create_memfd;
pub use file::open::RingFile;
pub use file::open_files::{OpenFile, is_own_or_roots};
pub use file::owned::OwnedRingFile;
pub(crate) use file::removed_at_exit::RemovedAtExit;
pub use file::stale::StaleFile;
pub(crate) use memory::allocate::{address_space_limit, allocate_more, lengthen};
pub use memory::free_memory::free_bytes;
pub use memory::huge_pages::{HugePagePool, huge_page_mounts};
pub use memory::mapping::Mapping;
pub use process::fork_guard::ForkGuard;
pub(crate) use process::not_recording::leave_note;
#[cfg(all(feature = "otel-context", target_arch = "x86_64"))]
pub(crate) use process::process_context::publish_process_context;
pub(crate) use process::this_process::process_number;
#[cfg(test)]
pub(crate) use process::this_process::same_pid;
pub(crate) use process::timed_lock::lock_with_timeout;
pub(crate) use process::uninherited::UninheritedFd;
pub use system::calls::*;
pub(crate) use system::descriptor::OwnDescriptor;
pub(crate) use system::errno::keeping_errno;
pub use system::nameless::nameless_file;
pub use system::nameless::nameless_memory;
pub(crate) use system::other_side::{is_all_read, process_and_user};
pub use system::pinned::keep_loaded;
pub(crate) use system::thread_name::current_thread_name;
#[cfg(feature = "thread-time")]
pub(crate) use system::thread_usage::{SchedstatFile, ThreadUsage, thread_cpu_nanos};
pub(crate) use system::trust::is_of_another_user;
pub use writer::identity::own_number;
pub use writer::liveness::writer_liveness;
pub use writer::lock::lock_state;
