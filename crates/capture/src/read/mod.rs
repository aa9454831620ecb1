//! Reading captures. Nothing in a file is trusted.
//!
//! | file | idea |
//! |---|---|
//! | `file` | opening a capture file, or the readable part of a truncated one |
//! | `several` | opening several files as one capture |
//! | `file_block` | the blocks of events, and the gap that a damaged block leaves |
//! | `events`, `ahead`, `workers` | the events in the order of time; other threads decode the next blocks in advance |
//! | `content` | all events of a capture, or those of a selection |
//! | `matching_blocks` | the blocks in which an event may fulfil a condition |
//! | `payloads` | counts of events whose payload is lost |
//! | `window` | checking the time window of a selection |
//! | `other_schemas` | perf rings with the schema of another version, whose spans cannot be read |
//! | `present` | the content of tables of the present at the end |
//! | `process_end` | how a program ended, from its rings in a capture |

pub(crate) mod ahead;
pub(crate) mod content;
pub(crate) mod events;
pub(crate) mod file;
pub(crate) mod file_block;
pub(crate) mod matching_blocks;
pub(crate) mod other_schemas;
pub mod payloads;
pub(crate) mod present;
pub(crate) mod process_end;
pub(crate) mod several;
pub(crate) mod window;
pub(crate) mod workers;
