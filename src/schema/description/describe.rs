//! Descriptions of payload types. The derives make them at compile time, and [`Schema`](crate::schema::Schema) reads them.

use super::domain::DomainInfo;
use super::evolution::Evolution;
use super::ext_words::ExtWords;
use super::segment::is_segment;

/// A number, a bool, or a byte of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// `u8`, one byte.
    U8,
    /// `u16`, little endian.
    U16,
    /// `u32`, little endian.
    U32,
    /// `u64`, little endian.
    U64,
    /// `u128`, little endian, aligned to 16.
    U128,
    /// An unsigned integer of 256 bits, little endian, aligned to 8 bytes.
    U256,
    /// `i8`, one byte.
    I8,
    /// `i16`, little endian.
    I16,
    /// `i32`, little endian.
    I32,
    /// `i64`, little endian.
    I64,
    /// `i128`, little endian, aligned to 16.
    I128,
    /// `f32`, IEEE 754, little endian.
    F32,
    /// `f64`, IEEE 754, little endian.
    F64,
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// One byte of UTF-8 text ([`Utf8`](crate::schema::Utf8)).
    Utf8,
}

impl Scalar {
    /// Every scalar.
    pub const ALL: [Self; 15] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::U128,
        Self::U256,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::F32,
        Self::F64,
        Self::Bool,
        Self::Utf8,
    ];

    /// Returns the name in schema text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::U256 => "u256",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Utf8 => "utf8",
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool | Self::Utf8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 | Self::I128 => 16,
            Self::U256 => 32,
        }
    }

    /// Returns true for an unsigned integer of at most 64 bits. A field of such a type can hold the number of elements
    /// of a trailing array.
    #[must_use]
    pub const fn is_count(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Returns true for an integer of at most 64 bits. Only such an integer can represent an enum.
    #[must_use]
    pub const fn is_enum_repr(self) -> bool {
        self.is_count() || matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the scalar of that name in schema text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }
}

/// The type of a payload field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A number, a bool, or a byte of text.
    Scalar(Scalar),
    /// An array: `len` elements, one directly after the other. An array of [`Scalar::U8`] is a byte string, shown as
    /// hex.
    Array {
        /// The type of an element.
        element: &'static FieldType,
        /// The number of elements.
        len: usize,
    },
    /// A payload struct within a payload struct.
    Struct(&'static StructInfo),
    /// An enum without fields.
    Enum(&'static EnumInfo),
}

impl FieldType {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.bytes(),
            Self::Array { element, len } => element.bytes() * *len,
            Self::Struct(info) => info.bytes,
            Self::Enum(info) => info.repr.bytes(),
        }
    }
}

/// A field of a payload struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The field's name.
    pub name: &'static str,
    /// Its type.
    pub ty: FieldType,
    /// Its offset in the struct, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// True if the field is redacted: it is never recorded, and its bytes are zero in the ring.
    pub redacted: bool,
    /// Earlier names, and the value for rings without the field.
    pub evolution: Evolution,
    /// The first paragraph of the field's documentation comment, or an empty text if the field has none.
    pub description: &'static str,
}

/// A payload struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructInfo {
    /// The struct's name.
    pub name: &'static str,
    /// Its size in bytes, padding at the end included.
    pub bytes: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its fields, in order.
    pub fields: &'static [FieldInfo],
    /// The first paragraph of the struct's documentation comment, or an empty text if the struct has none.
    pub description: &'static str,
}

impl StructInfo {
    /// Returns the field of that name, in constant expressions too.
    #[must_use]
    pub const fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        let mut i = 0;
        while i < self.fields.len() {
            if is_segment(self.fields[i].name, name, 0, name.len()) {
                return Some(&self.fields[i]);
            }
            i += 1;
        }
        None
    }
}

/// An enum without fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumInfo {
    /// The enum's name.
    pub name: &'static str,
    /// The integer that represents it.
    pub repr: Scalar,
    /// The enum's values in the order of declaration. Each value is a number and a name (`BLOCK_PROLOGUE`).
    pub values: &'static [(i128, &'static str)],
    /// Earlier names of the values, in the same order; empty if no value has one.
    pub evolution: &'static [Evolution],
    /// The first paragraph of the enum's documentation comment, or an empty text if the enum has none.
    pub description: &'static str,
}

/// A trailing array. It follows the fixed struct of an event's payload, without padding in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailingInfo {
    /// The array's name.
    pub name: &'static str,
    /// The type of an element.
    pub element: FieldType,
    /// The number of elements.
    pub count: TrailingCount,
    /// Earlier names, and whether a ring may lack the array.
    pub evolution: Evolution,
}

/// The place of the number of elements of a trailing array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingCount {
    /// The number is in a field of the fixed struct. The text is the path of this field from the struct, for example
    /// `txn_header.data_length`.
    Field(&'static str),
    /// The array takes the rest of the payload.
    Rest,
}

/// An event of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// The `event_type` of its descriptors.
    pub code: u16,
    /// Its name (`ORDER_PLACED`).
    pub name: &'static str,
    /// The domain to which the event belongs. `None` if the schema has no domains, and for RECORD_ERROR.
    pub domain: Option<DomainInfo>,
    /// The fixed struct at the beginning of the event's payload, or `None` if the payload has no fixed struct.
    pub payload: Option<&'static StructInfo>,
    /// The arrays that follow, in order.
    pub trailing: &'static [TrailingInfo],
    /// Earlier names. An event has no default: a ring without it just brings none.
    pub evolution: Evolution,
    /// The first paragraph of the event's documentation comment, or an empty text if the event has none.
    pub description: &'static str,
}

/// The description of a schema. `#[derive(EventType)]` makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaInfo {
    /// The `content_type` of ring files with this schema.
    pub content_type: u16,
    /// Its name (`EXEC`).
    pub name: &'static str,
    /// The version number that the author of the schema gives. The hash depends on it. Raise it when a payload gets
    /// another meaning but keeps its layout.
    pub version: u32,
    /// The events, by ascending code; RECORD_ERROR (code 1) is always among them.
    pub events: &'static [EventInfo],
    /// The hash that others have published for this schema, or `None` if nobody has. It replaces the computed hash.
    pub published_hash: Option<[u8; 32]>,
    /// The names of the descriptors' extension words. The hash does not depend on them.
    pub ext_words: ExtWords,
    /// The first paragraph of the enum's documentation comment, or an empty text if the enum has none.
    pub description: &'static str,
}

impl SchemaInfo {
    /// Returns the bit of the domain to which the event with the code `code` belongs. Returns all bits if the event
    /// belongs to no domain.
    pub(crate) const fn domain_bit(&self, code: u16) -> u64 {
        let mut i = 0;
        while i < self.events.len() {
            if let (true, Some(domain)) = (self.events[i].code == code, self.events[i].domain) {
                return domain.bit();
            }
            i += 1;
        }
        u64::MAX
    }
}

/// Returns the field that the dotted path `path` names, and the field's offset from the beginning of the struct
/// `info`. Returns `None` if there is no such field.
#[must_use]
pub(in crate::schema) const fn field_at(info: &StructInfo, path: &str) -> Option<(usize, &'static FieldInfo)> {
    let bytes = path.as_bytes();
    let (mut offset, mut fields, mut start) = (0, info.fields, 0);
    loop {
        let mut end = start;
        while end < bytes.len() && bytes[end] != b'.' {
            end += 1;
        }
        let mut i = 0;
        while i < fields.len() && !is_segment(fields[i].name, path, start, end) {
            i += 1;
        }
        if i == fields.len() {
            return None;
        }
        offset += fields[i].offset;
        if end == bytes.len() {
            return Some((offset, &fields[i]));
        }
        match fields[i].ty {
            FieldType::Struct(inner) => fields = inner.fields,
            _ => return None,
        }
        start = end + 1;
    }
}

/// Returns the reason why the field at `path` cannot hold the number of elements of a trailing array. Returns `None`
/// if it can. `info` is the fixed struct that has the field. The derives call this.
#[must_use]
pub const fn count_problem(info: &StructInfo, path: &str) -> Option<&'static str> {
    let Some((_, field)) = field_at(info, path) else {
        return Some("the payload struct has no such field to count a trailing array");
    };
    if field.redacted {
        return Some("a redacted field is never recorded: it cannot count a trailing array");
    }
    match field.ty {
        FieldType::Scalar(scalar) if scalar.is_count() => None,
        _ => Some("the count of a trailing array must be a u8, u16, u32 or u64"),
    }
}

/// The offsets, size and alignment of a struct, as a C compiler lays it out. The derives use this.
#[derive(Clone, Copy, Debug)]
pub struct Layout<const N: usize> {
    /// The offset of each field.
    pub offsets: [usize; N],
    /// The size, padding at the end included.
    pub bytes: usize,
    /// The alignment.
    pub align: usize,
}

impl<const N: usize> Layout<N> {
    /// Lays out fields that are given as (size, alignment).
    #[must_use]
    pub const fn new(fields: [(usize, usize); N]) -> Self {
        let mut layout = Self { offsets: [0; N], bytes: 0, align: 1 };
        let mut i = 0;
        while i < N {
            let (bytes, align) = fields[i];
            layout.offsets[i] = layout.bytes.next_multiple_of(align);
            layout.bytes = layout.offsets[i] + bytes;
            if align > layout.align {
                layout.align = align;
            }
            i += 1;
        }
        layout.bytes = layout.bytes.next_multiple_of(layout.align);
        layout
    }
}
