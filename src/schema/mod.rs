//! The meaning of payloads: field types and their bytes, event types, schema text and its hash, and decoding.
//!
//! - To describe events, derive [`EventPayload`] for their structs and [`EventType`] for the enum of the events.
//! - To decode events whose Rust types the program has, use [`EventPayload::decode`]. For trailing arrays, use the
//!   views that the derive makes.
//! - To decode other events, use [`SchemaModel`], which reads the schema text of a ring.
//!
//! This crate has the schemas `test` (content type 1), [`exec`] (content type 2, feature `exec`) and `perf` (content
//! type 3, eventring's own).

mod description;
pub(crate) mod dynamic;
mod error;
mod fields;
pub(crate) mod of_ring;
mod payload;
mod record_error;
pub(crate) mod resolution;
pub(crate) mod schema_text;
#[cfg(feature = "serde")]
mod serialize;
mod values;

#[cfg(feature = "exec")]
pub mod exec;
#[cfg(feature = "macros")]
pub mod perf;
#[cfg(feature = "macros")]
pub mod test;

pub use self::description::describe::{
    EnumInfo, EventInfo, FieldInfo, FieldType, Scalar, SchemaInfo, StructInfo, TrailingCount, TrailingInfo,
};
pub use self::description::domain::{DomainInfo, DomainModel};
pub use self::description::evolution::Evolution;
pub use self::description::ext_words::{ExtWord, ExtWordKind, ExtWords};
pub use self::dynamic::decode::MALFORMED;
pub use self::dynamic::model::{EventModel, SchemaModel, SchemaTextError, SchemaTextErrorKind};
pub use self::error::{DecodeError, DecodeErrorKind};
pub use self::fields::field::PayloadField;
pub use self::of_ring::give_schema;
pub(crate) use self::of_ring::{ext_words, published_schema};
pub use self::payload::{EventPayload, EventType, PayloadOf};
pub use self::record_error::{RECORD_ERROR_CODE, RecordError, RecordErrorView};
pub(crate) use self::resolution::Resolution;
pub use self::resolution::SchemaDifference;
pub use self::values::hex::Hex;

pub use self::dynamic::shape::Shape;
pub use self::fields::trailing::{ArrayView, encode_array};
pub use self::fields::utf8::Utf8;
pub use self::schema_text::schema::Schema;
pub use self::values::value::Value;

/// Functions for the code that the derives generate.
#[doc(hidden)]
pub mod derive_support {
    pub use super::record_error::RECORD_ERROR_EVENT;
    pub use crate::schema::description::describe::{Layout, count_problem};
    pub use crate::schema::description::ext_words::word_problem;
    pub use crate::schema::fields::trailing::{count_at, expect_end, split_counted, split_rest};
    pub use crate::sync::locked_section::get_or_make;
    pub use std::sync::OnceLock;
}
