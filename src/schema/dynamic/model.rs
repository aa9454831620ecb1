//! A schema that was read from schema text.

use std::fmt;

use crate::schema::description::describe::Scalar;
use crate::schema::description::domain::DomainModel;
use crate::schema::description::ext_words::ExtWords;

/// The length of the longest schema text that can be read, in bytes. The header section of a ring file has room for a
/// text of this length.
pub const MAX_TEXT_BYTES: usize = crate::layout::extension::SCHEMA_TEXT_MAX_BYTES;
/// The largest fixed struct, in bytes.
pub(in crate::schema) const MAX_STRUCT_BYTES: usize = 1 << 24;
/// The largest number of fields of a struct, and of trailing arrays of an event.
pub(in crate::schema) const MAX_FIELDS: usize = 4096;
/// The deepest nesting of structs and arrays.
pub(in crate::schema) const MAX_DEPTH: usize = 32;
/// The longest name, in bytes.
pub(in crate::schema) const MAX_NAME_BYTES: usize = 256;

/// A schema, read from schema text by [`SchemaModel::parse`].
///
/// The offsets, sizes and references in a model are consistent, whatever the schema text holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaModel {
    pub(in crate::schema) content_type: u16,
    pub(in crate::schema) name: String,
    pub(in crate::schema) version: u32,
    /// The hash that the text states. If it states none, the hash of the text without its comment lines.
    pub(in crate::schema) schema_hash: [u8; 32],
    /// True if the text states the hash.
    pub(in crate::schema) states_hash: bool,
    pub(in crate::schema) ext_words: ExtWords,
    /// The domains, by ascending number.
    pub(in crate::schema) domains: Vec<DomainModel>,
    pub(in crate::schema) structs: Vec<StructModel>,
    pub(in crate::schema) enums: Vec<EnumModel>,
    /// The events, by ascending code.
    pub(in crate::schema) events: Vec<EventModel>,
}

impl SchemaModel {
    /// Returns the `content_type` that the text states.
    #[must_use]
    pub fn content_type(&self) -> u16 {
        self.content_type
    }

    /// Returns the name of the content type.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the author's version number.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the `schema_hash` of ring files with this schema. This is the published hash that the text states. If
    /// the text states none, it is the KECCAK-256 of the text without its comment lines.
    #[must_use]
    pub fn schema_hash(&self) -> [u8; 32] {
        self.schema_hash
    }

    /// Returns the names of the descriptors' extension words.
    #[must_use]
    pub fn ext_words(&self) -> &ExtWords {
        &self.ext_words
    }

    /// Returns the domains of the schema, by ascending number. Returns an empty list if the schema has no domains.
    #[must_use]
    pub fn domains(&self) -> &[DomainModel] {
        &self.domains
    }

    /// Returns the domain to which the event of that code belongs. Returns `None` if the schema has no domains or no
    /// such event, and for RECORD_ERROR.
    #[must_use]
    pub fn domain_of(&self, code: u16) -> Option<&DomainModel> {
        let number = self.event(code)?.domain?;
        self.domains.iter().find(|domain| domain.number() == number)
    }

    /// Returns the events, by ascending code.
    #[must_use]
    pub fn events(&self) -> &[EventModel] {
        &self.events
    }

    /// Returns the event of that code.
    #[must_use]
    pub fn event(&self, code: u16) -> Option<&EventModel> {
        self.events.binary_search_by_key(&code, |event| event.code).ok().map(|i| &self.events[i])
    }

    /// Returns the event of that name, as the schema names it (`ORDER_FILLED`) or as the program's source does
    /// (`OrderFilled`). Upper and lower case never matter. An event of just that name comes first.
    #[must_use]
    pub fn event_by_name(&self, name: &str) -> Option<&EventModel> {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let find = |is_it: &dyn Fn(&str) -> bool| self.events.iter().find(|event| is_it(&event.name));
        find(&|known| known == name)
            .or_else(|| find(&|known| known.eq_ignore_ascii_case(name)))
            .or_else(|| find(&|known| plain(known) == plain(name)))
    }

    pub(in crate::schema) fn bytes_of(&self, ty: &TypeModel) -> usize {
        match ty {
            TypeModel::Scalar(scalar) => scalar.bytes(),
            // The product does not overflow, because the parser refuses arrays of more than `MAX_STRUCT_BYTES`.
            TypeModel::Array { element, len } => self.bytes_of(element).saturating_mul(*len),
            TypeModel::Struct(index) => self.structs[*index].bytes,
            TypeModel::Enum(index) => self.enums[*index].repr.bytes(),
        }
    }

    /// Returns the widths in bytes of the fields of an event's fixed struct, in their order. Padding between fields has
    /// an entry of its own, so the sum is the size of the struct. Fields of nested structs stand for themselves.
    /// Returns an empty list if the event is not known or has no fixed struct.
    pub fn field_widths(&self, code: u16) -> Vec<usize> {
        let mut widths = Vec::new();
        if let Some(payload) = self.event(code).and_then(|event| event.payload) {
            self.add_widths(payload, &mut widths);
        }
        widths
    }

    fn add_widths(&self, index: usize, widths: &mut Vec<usize>) {
        let model = &self.structs[index];
        let mut end = 0;
        let mut fields: Vec<&FieldModel> = model.fields.iter().collect();
        fields.sort_by_key(|field| field.offset);
        for field in fields {
            // No reader of captures wants more columns than this.
            if widths.len() > MAX_FIELDS {
                return;
            }
            widths.extend(Some(field.offset - end).filter(|padding| *padding > 0));
            match &field.ty {
                TypeModel::Struct(inner) => self.add_widths(*inner, widths),
                ty => widths.extend(Some(self.bytes_of(ty)).filter(|bytes| *bytes > 0)),
            }
            end = field.offset + self.bytes_of(&field.ty);
        }
        widths.extend(Some(model.bytes - end).filter(|padding| *padding > 0));
    }

    pub(in crate::schema) fn depth_of(&self, ty: &TypeModel) -> usize {
        match ty {
            TypeModel::Scalar(_) | TypeModel::Enum(_) => 0,
            TypeModel::Array { element, .. } => 1 + self.depth_of(element),
            TypeModel::Struct(index) => 1 + self.structs[*index].depth,
        }
    }
}

/// An event of a [`SchemaModel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventModel {
    pub(in crate::schema) code: u16,
    pub(in crate::schema) name: String,
    /// Number of its domain.
    pub(in crate::schema) domain: Option<u8>,
    /// Index of its fixed struct.
    pub(in crate::schema) payload: Option<usize>,
    pub(in crate::schema) trailing: Vec<TrailingModel>,
}

impl EventModel {
    /// Returns the `event_type` of its descriptors.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// An array that follows the fixed struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schema) struct TrailingModel {
    pub(in crate::schema) name: String,
    pub(in crate::schema) element: TypeModel,
    pub(in crate::schema) count: CountModel,
}

/// The place of the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schema) enum CountModel {
    /// At an offset in the fixed struct.
    At(usize, Scalar),
    /// The array takes the rest of the payload.
    Rest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schema) struct StructModel {
    pub(in crate::schema) bytes: usize,
    /// The depth of the types of its fields.
    pub(in crate::schema) depth: usize,
    pub(in crate::schema) fields: Vec<FieldModel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schema) struct FieldModel {
    pub(in crate::schema) name: String,
    pub(in crate::schema) ty: TypeModel,
    pub(in crate::schema) offset: usize,
    pub(in crate::schema) redacted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schema) struct EnumModel {
    pub(in crate::schema) repr: Scalar,
    /// The values, by ascending number.
    pub(in crate::schema) values: Vec<(i128, String)>,
    /// True if the text has only numbers, and the names were added.
    pub(in crate::schema) is_added: bool,
}

/// A type. The variants `Struct` and `Enum` hold the index of the definition in the [`SchemaModel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schema) enum TypeModel {
    Scalar(Scalar),
    Array { element: Box<TypeModel>, len: usize },
    Struct(usize),
    Enum(usize),
}

/// An error for schema text that is missing or cannot be used. The ring's events can still be read as raw bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaTextError {
    pub(in crate::schema) kind: SchemaTextErrorKind,
    pub(in crate::schema) line: usize,
    pub(in crate::schema) problem: String,
}

/// The kinds of [`SchemaTextError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaTextErrorKind {
    /// The text does not begin as schema text of a known version.
    NotSchemaText,
    /// A line is not in the grammar.
    Syntax,
    /// A line fits the grammar but contradicts another line. For example, a name is unknown or repeated, or fields
    /// overlap or lie outside their struct.
    Inconsistent,
    /// The text belongs to another schema than the ring, or the ring has no text.
    NotOfThisRing,
    /// The text exceeds a limit: 1.9 MiB for the text, 16 MiB for a struct, 4,096 fields for a struct, 32 levels of
    /// nested types, or 256 bytes for a name.
    TooLarge,
}

impl SchemaTextError {
    /// Returns the kind of problem.
    #[must_use]
    pub fn kind(&self) -> SchemaTextErrorKind {
        self.kind
    }

    /// Returns the number of the line that has the problem, from 1. Returns 0 if the problem is about the text as a
    /// whole.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for SchemaTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schema text")?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        write!(f, ": {}", self.problem)
    }
}

debug_as_displayed!(SchemaTextError);

impl std::error::Error for SchemaTextError {}
