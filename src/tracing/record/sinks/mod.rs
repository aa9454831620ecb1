//! The recorder to which a subscriber or a layer records.
//!
//! | file | idea |
//! |---|---|
//! | `sink` | the common part of subscribers and layers |
//! | `owner` | whose spans are whose |
//! | `answer` | whether they want a call site of this crate's own macros |
//! | `deciders` | which of them decide about such a call site |

pub(in crate::tracing) mod answer;
pub(in crate::tracing) mod deciders;
pub(in crate::tracing) mod owner;
pub(in crate::tracing) mod sink;
