//! Execution events of a recording.
//!
//! | file | idea |
//! |---|---|
//! | `rings` | the blocks of rings of execution events |
//! | `ring_blocks` | the block of each event of an execution ring |
//! | `states` | the commit states of blocks |

#[doc(hidden)]
pub mod ring_blocks;
#[doc(hidden)]
pub mod rings;
pub(crate) mod states;
