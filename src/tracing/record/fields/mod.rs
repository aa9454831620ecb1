//! The fields of spans and events: their values, their limits, and how they look encoded.
//!
//! | file | idea |
//! |---|---|
//! | `values` | the values that this crate's own macros record |
//! | `args` | the arguments of a text |
//! | `limits` | how many bytes fields may have |
//! | `redact` | the names of fields that must not be recorded |
//! | `encoded` | fields that are encoded |

pub(in crate::tracing) mod args;
pub(in crate::tracing) mod encoded;
pub(in crate::tracing) mod limits;
pub(in crate::tracing) mod redact;
pub(in crate::tracing) mod values;
