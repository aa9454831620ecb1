//! The names of events and fields that a condition or option may use.
//!
//! | file | idea |
//! |---|---|
//! | `decoder` | the names of events, and the decoding of payloads |
//! | `fields` | the fields that a condition may name |
//! | `unknown_names` | names in a condition that no event has |

pub(crate) mod decoder;
pub(crate) mod fields;
pub(crate) mod unknown_names;
