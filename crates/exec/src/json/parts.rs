//! Texts, bytes and numbers of a block.

use eventring::schema::Hex;
use eventring::schema::exec::U256;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Display;

/// The integers up to here are the same as a double.
const EXACT_MAX: u64 = 1 << 53;

/// A value as it is shown.
pub struct Text<'a>(pub &'a dyn Display);

/// Bytes as hex.
pub struct Bytes<'a>(pub &'a [u8]);

/// A number. It is a text if a double does not hold it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(U256);

impl From<U256> for Number {
    fn from(number: U256) -> Self {
        Self(number)
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("0x{}", Hex(self.0)))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.limbs() {
            [number @ ..=EXACT_MAX, 0, 0, 0] => serializer.serialize_u64(number),
            _ => serializer.collect_str(&self.0),
        }
    }
}

/// Makes these schemas, which stand where they are used.
macro_rules! schemas {
    ($($name:ty: $schema:tt),*) => {
        $(impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

schemas! {
    Text<'_>: { "type": "string" },
    Bytes<'_>: { "type": "string" },
    Number: { "type": ["integer", "string"] }
}
