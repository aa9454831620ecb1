//! The slices of spans, their rows on a track, and the arrows between them.
//!
//! | file | idea |
//! |---|---|
//! | `line_slices` | the slices of open spans, for JSON lines |
//! | `track_rows` | rows for slices that overlap without nesting |
//! | `flows`, `joins` | the arrows between slices of one process, and of several processes |

#[doc(hidden)]
pub mod flows;
pub(crate) mod joins;
#[doc(hidden)]
pub mod line_slices;
#[doc(hidden)]
pub mod track_rows;
