//! Ring files: making, finding, replacing, removing.
//!
//! | file | idea |
//! |---|---|
//! | `directory` | the directory for rings with bare names |
//! | `create`, `destination`, `unfinished` | making a ring file |
//! | `stale`, `leftovers`, `replacer` | replacing and removing files of dead processes |
//! | `owned`, `removed_at_exit` | owning a file, and removing it at the end |
//! | `memfd` | a ring without a name |
//! | `open` | opening a ring file for reading |
//! | `open_files` | files that are open in processes but are in no directory |
//! | `core_filter` | which memory of this process a core file contains |

pub(super) mod core_filter;
pub(super) mod create;
pub(super) mod destination;
pub(super) mod directory;
pub(super) mod leftovers;
pub(super) mod memfd;
pub(super) mod open;
pub(super) mod open_files;
pub(super) mod owned;
pub(super) mod removed_at_exit;
pub(super) mod replacer;
pub(super) mod stale;
pub(super) mod unfinished;
