//! Memory for a ring file, and its mapping.
//!
//! | file | idea |
//! |---|---|
//! | `allocate`, `free_memory`, `meminfo` | memory for a file, or the reason why there is none |
//! | `huge_pages` | pools of huge pages |
//! | `plan`, `reservation`, `mapping` | mapping a ring file, with the payload buffer twice |
//! | `extents` | the parts of a sparse file that have data |
//! | `sigbus` | surviving truncation of a mapped file |

pub(super) mod allocate;
pub(super) mod extents;
pub(super) mod free_memory;
pub(super) mod huge_pages;
pub(super) mod mapping;
pub(super) mod meminfo;
pub(super) mod plan;
pub(super) mod reservation;
pub(super) mod sigbus;
