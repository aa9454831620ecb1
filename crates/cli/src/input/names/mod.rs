//! The names of events and fields that a condition or option may use.
//!
//! | file | idea |
//! |---|---|
//! | `decoder` | events and payloads by their schema |
//! | `fields` | the fields that a condition may name |
//! | `unknown_names` | names that nothing had |

pub(crate) mod decoder;
pub(crate) mod fields;
pub(crate) mod unknown_names;
