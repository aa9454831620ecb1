//! Ring files: making, finding, replacing, removing.
//!
//! | file | idea |
//! |---|---|
//! | `directory` | the directory for rings with bare names |
//! | `create`, `destination` | making a ring file |
//! | `stale`, `leftovers`, `replacer` | replacing and removing what a dead process has left |
//! | `owned`, `removed_at_exit` | owning a file, and removing it at the end |
//! | `memfd` | a ring without a name |
//! | `open` | opening a ring file for reading |
//! | `open_files` | files that processes have open, and that no directory has |
//! | `core_filter` | which rings a core file of this process holds |

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
