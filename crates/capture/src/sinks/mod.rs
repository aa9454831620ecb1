//! Where captures go.
//!
//! | file | idea |
//! |---|---|
//! | `file` | the functions that capture: into files, or into an open writer |
//! | `row` | one file, or a row of files, and going on after the newest |
//! | `rolling`, `cut` | a capture that keeps only the last seconds, and cutting files out of it |
//! | `batches` | small whole files, which are sent away |
//! | `next_seqnos` | where to go on in rings whose captures may be gone |
//! | `present` | a capture of what rings hold now |

#[doc(hidden)]
pub mod batches;
pub(crate) mod cut;
pub(crate) mod file;
pub(crate) mod next_seqnos;
pub(crate) mod present;
pub(crate) mod rolling;
pub(crate) mod row;
