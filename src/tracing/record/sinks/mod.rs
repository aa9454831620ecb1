//! The recorder to which a subscriber or a layer records.
//!
//! | file | idea |
//! |---|---|
//! | `sink` | the common part of subscribers and layers |
//! | `active` | how many subscribers and layers record to the global recorder |
//! | `owner_filter` | whether the filters of a layer's stack enable a call site of this crate's own macros |

pub(in crate::tracing) mod active;
pub(in crate::tracing) mod owner_filter;
pub(in crate::tracing) mod sink;
