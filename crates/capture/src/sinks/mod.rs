//! Where captures go.
//!
//! | file | idea |
//! |---|---|
//! | `file` | the functions that capture: into files, or into an open writer |
//! | `rotation_set` | the files of a capture, and continuing after the newest |
//! | `rolling`, `cut` | a capture that keeps only the last seconds, and cutting files out of it |
//! | `batches` | small whole files, which are sent to a broker or a follower |
//! | `next_seqnos` | where to continue in rings whose captures may be removed |
//! | `present` | a capture of the events that rings hold now |

#[doc(hidden)]
pub mod batches;
pub(crate) mod cut;
pub(crate) mod file;
pub(crate) mod next_seqnos;
pub(crate) mod present;
pub(crate) mod rolling;
pub(crate) mod rotation_set;
