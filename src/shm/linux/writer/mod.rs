//! The writing process of a ring, and whether it lives.
//!
//! | file | idea |
//! |---|---|
//! | `lock`, `write_lock` | the locks that the process holds |
//! | `identity`, `liveness` | the identity of the process, and whether the process lives |
//! | `ending` | owners that are about to end |

pub(super) mod ending;
pub(super) mod identity;
pub(super) mod liveness;
pub(super) mod lock;
pub(super) mod write_lock;
