//! The engine that writes captures: threads that copy events out of rings, encode and write them.
//!
//! | file | idea |
//! |---|---|
//! | `options`, `summary` | the settings of a capture, and its progress and result |
//! | `rotation` | when a rotated capture begins its next file, and which old files it removes |
//! | `start` | where a capture begins in rings that were captured before |
//! | `sources` | the rings that are captured, also rings that are made during the capture |
//! | `copy`, `pace` | the copying thread, and its timing |
//! | `filter` | the events that the copying thread leaves out |
//! | `overlaps` | refusing payloads that share bytes with other payloads: only a damaged ring has such payloads |
//! | `stop` | the stop of a capture, and the check that all events before it are copied |
//! | `slots` | the messages from one thread to the next |
//! | `encoding` | the encoding threads |
//! | `run` | the writing thread: rings, progress, the end |
//! | `output` | the file that is being written: its size limits, its table entries, its end |
//! | `fields_in_rings` | fields of open spans for which tables of the present have no room |
//! | `sink` | the engine's interface to the receiver of the files |

pub(crate) mod copy;
pub(crate) mod encoding;
pub(crate) mod fields_in_rings;
pub(crate) mod filter;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod overlaps;
pub(crate) mod pace;
pub(crate) mod rotation;
pub(crate) mod run;
pub(crate) mod sink;
pub(crate) mod slots;
pub(crate) mod sources;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod summary;
