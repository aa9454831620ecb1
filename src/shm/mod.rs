//! The operating system: ring files, where they live, who owns them, and how they are mapped.
//!
//! This layer knows bytes and files and nothing of the ring format; the sizes of the sections are handed to it.
//!
//! | file | idea |
//! |---|---|
//! | `name` | the configuration string and ring names |
//! | `directory`, `huge_pages` | where a bare name lives |
//! | `create`, `target`, `stale`, `leftovers` | making a ring file, replacing an old one, removing what dead processes left |
//! | `allocate`, `room`, `memory` | giving it memory, or saying why not |
//! | `owned` | owning and removing it |
//! | `memfd` | a ring without a name |
//! | `open` | opening a ring file for reading |
//! | `trust` | whose files are accepted |
//! | `sections`, `page_size`, `mapping` | the file in memory, payload twice |
//! | `extents` | what is there of a sparse file |
//! | `sigbus` | surviving truncation of a mapped file |
//! | `lock`, `write_lock`, `identity`, `liveness` | who writes, and whether it lives |
//! | `replacer` | who may take a dead file's name |
//! | `descriptor` | descriptors that the program may close under us |
//! | `paths` | what the system is asked about paths |
//! | `fork_guard`, `process` | are we a forked child |
//! | `slots` | the list that signal and exit handlers walk |

mod allocate;
mod create;
mod descriptor;
mod directory;
mod error;
mod extents;
mod fork_guard;
mod huge_pages;
mod identity;
mod leftovers;
mod liveness;
mod lock;
mod mapping;
mod memfd;
mod memory;
mod name;
mod open;
mod owned;
mod page_size;
mod paths;
mod process;
mod replacer;
mod room;
mod sections;
mod sigbus;
mod slots;
mod stale;
mod target;
mod trust;
mod write_lock;

pub use create::{CreateOptions, UnpublishedFile, create};
pub use directory::{DIRECTORY_VARIABLE, Place, PlaceWarning, RingDirectories};
pub use error::{ShmError, ShmErrorKind};
pub use fork_guard::ForkGuard;
pub use huge_pages::{HugePagePool, huge_page_mounts};
pub use identity::{Liveness, ProcessIdentity};
pub(crate) use leftovers::remove_dead_parts;
pub use liveness::{DeathWatch, writer_liveness};
pub use lock::{FileId, LockState, lock_state};
pub use mapping::{Access, LostPages, MapOptions, Mapping};
pub use memfd::{MemfdOptions, create_memfd};
pub use name::{ConfigLimits, RingConfig, RingName, ShiftLimits};
pub use open::{OpenOptions, RingFile};
pub use owned::OwnedRingFile;
pub(crate) use process::process_number;
#[cfg(test)]
pub(crate) use process::same_pid;
pub use sections::Sections;
pub use stale::StaleFile;
pub use write_lock::WRITE_LOCK_OFFSET;
