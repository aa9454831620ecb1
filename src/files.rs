//! Ring files: their directories, names, locks and sizes.
//!
//! A [`Reader`](crate::reader::Reader) opens one ring. This module is for programs that list the rings of a machine,
//! remove files of dead programs, or choose the size of a new ring.
//!
//! ```
//! use eventring::files::{LockState, RingDirectories, lock_state};
//!
//! for directory in RingDirectories::from_environment().for_reading() {
//!     for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
//!         if let Ok(file) = std::fs::File::open(entry.path()) {
//!             let is_written = matches!(lock_state(&file), LockState::Held { .. });
//!             println!("{}: {}", entry.path().display(), if is_written { "is being written" } else { "has no writer" });
//!         }
//!     }
//! }
//! ```

pub use crate::layout::fit::{Events as EventSizes, Shifts};
pub use crate::layout::header::{
    CONTENT_TYPE_EXEC, CONTENT_TYPE_FIRST_FREE, CONTENT_TYPE_PERF, MAGIC, content_type_name,
};
pub use crate::layout::start_table::ENTRIES as BLOCK_TABLE_ENTRIES;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use crate::shm::StaleFile;
pub use crate::shm::{
    ByteCount, DIRECTORY_VARIABLE, FileId, LockState, RingDirectories, RingLocation, RingName, ShmError, ShmErrorKind,
    free_bytes, lock_state,
};
