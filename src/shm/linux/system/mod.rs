//! Single system calls, and helpers that need nothing else.
//!
//! | file | idea |
//! |---|---|
//! | `calls`, `paths`, `errno` | single system calls, and their errors |
//! | `descriptor` | file descriptors that the program may have closed |
//! | `nameless` | files without a name |
//! | `other_side` | the process and user on the other side of a connection |
//! | `page_size` | the pages of a file's mapping |
//! | `thread_name` | the name of the calling thread, also in signal handlers |
//! | `thread_usage` | what the kernel has counted for the calling thread |
//! | `trust` | which owners of files are accepted |
//! | `handler_list` | a list that signal handlers and exit handlers can iterate |
//! | `pinned` | keeping this library's code loaded if it is part of a plugin |

pub(super) mod calls;
pub(super) mod descriptor;
pub(super) mod errno;
pub(super) mod handler_list;
pub(super) mod nameless;
pub(super) mod other_side;
pub(super) mod page_size;
pub(super) mod paths;
pub(super) mod pinned;
pub(super) mod thread_name;
#[cfg(feature = "thread-time")]
pub(super) mod thread_usage;
pub(super) mod trust;
