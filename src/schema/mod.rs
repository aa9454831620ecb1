//! What payloads mean: field types, their bytes, event types, schema text and its hash, and decoding — by type, or by schema text alone.
//!
//! - Describe events with `#[derive(EventPayload)]` on structs and `#[derive(EventType)]` on an enum: see [`EventPayload`] and
//!   [`EventType`].
//! - Decode typed with [`EventPayload::decode`], the views beside the structs, and [`split_array`] for arrays of your own.
//! - Decode what you were not built for with [`SchemaModel`], from the schema text that a ring file carries.
//!
//! Schemas that are part of this crate (feature `macros`): `exec` (content type 2), `test` (content type 1) and `perf` (content
//! type 3, eventring's own).

mod decimal;
mod decode;
mod describe;
mod error;
mod ext_words;
mod field;
mod hex;
mod model;
mod of_ring;
mod parse;
mod payload;
mod record_error;
mod text;
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
pub use self::error::{DecodeError, DecodeErrorKind};
pub use self::ext_words::{ExtWord, ExtWordKind, ExtWords};
pub use self::field::PayloadField;
pub use self::model::{
    EventModel, MAX_DEPTH, MAX_FIELDS, MAX_NAME_BYTES, MAX_STRUCT_BYTES, MAX_TEXT_BYTES, SchemaModel, SchemaTextError,
    SchemaTextErrorKind,
};
#[cfg(feature = "macros")]
pub use self::of_ring::decode_event;
pub use self::of_ring::{ext_words, published_schema};
pub use self::payload::{EventPayload, EventType, PayloadOf};
pub use self::record_error::{RECORD_ERROR_CODE, RecordError, RecordErrorView};
pub use self::text::{Schema, schema_text_hash};
pub use self::trailing::{ArrayView, encode_array, expect_end, split_array, split_bytes};
pub use self::utf8::Utf8;
pub use self::value::Value;
#[cfg(feature = "macros")]
pub use eventring_macros::{EventPayload, EventType, PayloadField};

/// What the code that the derives generate needs, and nobody else.
#[doc(hidden)]
pub mod derive_support {
    pub use super::describe::{Layout, count_problem};
    pub use super::record_error::RECORD_ERROR_EVENT;
    pub use super::trailing::{count_at, expect_end, split_counted, split_rest};
    pub use std::sync::OnceLock;
}
