//! The meaning of payloads: field types and their bytes, event types, schema text and its hash, and decoding.
//!
//! - To describe events, derive [`EventPayload`] for their structs and [`EventType`] for the enum of the events.
//! - To decode events whose Rust types the program has, use [`EventPayload::decode`]. For events with trailing arrays,
//!   use the views that the derive makes.
//! - To decode events whose Rust types the program does not have, use [`SchemaModel`]. It reads the schema text of a
//!   ring.
//!
//! This crate has three schemas: `test` (content type 1), [`exec`] (content type 2, feature `exec`) and `perf`
//! (content type 3, eventring's own).

mod decimal;
mod decode;
mod describe;
mod domain;
mod error;
mod evolution;
mod ext_words;
mod field;
mod float;
mod hex;
pub(crate) mod model;
pub(crate) mod of_ring;
mod parse;
mod payload;
pub(crate) mod places;
mod record_error;
pub(crate) mod resolution;
#[cfg(feature = "serde")]
mod serialize;
mod shape;
pub(crate) mod text;
mod trailing;
mod utf8;
mod value;

#[cfg(feature = "exec")]
pub mod exec;
#[cfg(feature = "macros")]
pub mod perf;
#[cfg(feature = "macros")]
pub mod test;

pub use self::decode::MALFORMED;
pub use self::describe::{
    EnumInfo, EventInfo, FieldInfo, FieldType, Scalar, SchemaInfo, StructInfo, TrailingCount, TrailingInfo,
};
pub use self::domain::{DomainInfo, DomainModel};
pub use self::error::{DecodeError, DecodeErrorKind};
pub use self::evolution::Evolution;
pub use self::ext_words::{ExtWord, ExtWordKind, ExtWords};
pub use self::field::PayloadField;
pub use self::hex::Hex;
pub use self::model::{EventModel, SchemaModel, SchemaTextError, SchemaTextErrorKind};
pub use self::of_ring::give_schema;
pub(crate) use self::of_ring::{ext_words, published_schema};
pub use self::payload::{EventPayload, EventType, PayloadOf};
pub use self::record_error::{RECORD_ERROR_CODE, RecordError, RecordErrorView};
pub(crate) use self::resolution::Resolution;
pub use self::resolution::SchemaDifference;

pub use self::shape::Shape;
pub use self::text::Schema;
pub use self::trailing::{ArrayView, encode_array};
#[cfg(feature = "macros")]
pub(crate) use self::trailing::{expect_end, split_bytes};
pub use self::utf8::Utf8;
pub use self::value::Value;
#[cfg(feature = "macros")]
pub use eventring_macros::{EventPayload, EventType, PayloadField};

/// Functions for the code that the derives generate.
#[doc(hidden)]
pub mod derive_support {
    pub use super::describe::{Layout, count_problem};
    pub use super::ext_words::word_problem;
    pub use super::record_error::RECORD_ERROR_EVENT;
    pub use super::trailing::{count_at, expect_end, split_counted, split_rest};
    pub use crate::locked_section::get_or_make;
    pub use std::sync::OnceLock;
}
