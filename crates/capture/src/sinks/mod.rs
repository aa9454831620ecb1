//! Where captures go.
//!
//! | file | idea |
//! |---|---|
//! | `file` | functions that capture into files, or into an open writer |
//! | `rotation_set` | the files of a capture, and continuing after the newest |
//! | `rolling`, `cut` | a capture that keeps only the last seconds, and the files that are cut from such a capture |
//! | `batches` | small whole files, which are sent to a broker or a follower |
//! | `next_seqnos` | the seqnos at which a capture continues, also if the earlier captures were removed |
//! | `present` | a capture of the events that rings hold now |

#[doc(hidden)]
pub mod batches;
pub(crate) mod cut;
pub(crate) mod file;
pub(crate) mod next_seqnos;
pub(crate) mod present;
pub(crate) mod rolling;
pub(crate) mod rotation_set;
