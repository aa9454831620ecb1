//! Schema text: a schema as lines of UTF-8, for people and for other programs. The schema hash is computed from this
//! text.
//!
//! `docs/FORMAT.md`, "Schema text", has the grammar. [`SchemaModel::parse`] parses schema text.

use std::fmt::{self, Write as _};
use std::sync::OnceLock;

use tiny_keccak::{Hasher as _, Keccak};

use crate::schema::description::describe::{
    EnumInfo, EventInfo, FieldType, Scalar, SchemaInfo, StructInfo, TrailingCount,
};
use crate::schema::description::domain::DomainInfo;
use crate::schema::description::ext_words::{ExtWord, ExtWords};
use crate::schema::dynamic::model::{SchemaModel, SchemaTextError};
use crate::schema::values::hex::write_hex;
use crate::sync::locked_section::get_or_make;

/// The first line of every schema text. The number is the version of the grammar.
pub(in crate::schema) const FIRST_LINE: &str = "schema-text 1";

/// The beginning of a line that names an extension word. Readers that do not know such lines take them for comments.
/// The hash does not depend on these lines. A description cannot be mistaken for such a line, because a description
/// has a blank after the `#`.
pub(in crate::schema) const EXT_WORD: &str = "#ext ";

/// The smallest content type that programs may use. The schema text of a smaller content type names only the word
/// `span`; `docs/FORMAT.md` names the other words.
const FIRST_PROGRAM_CONTENT_TYPE: u16 = 256;

/// The schema of a content type: its text and its hash. [`EventType::schema`](crate::schema::EventType::schema) returns it.
#[derive(Debug)]
pub struct Schema {
    info: &'static SchemaInfo,
    text: String,
    hash: [u8; 32],
    model: OnceLock<Result<SchemaModel, SchemaTextError>>,
}

impl Schema {
    /// Writes the text and computes the hash. Call [`EventType::schema`](crate::schema::EventType::schema) instead: it makes
    /// the schema only once.
    #[must_use]
    pub fn new(info: &'static SchemaInfo) -> Self {
        let text = Writer::default().schema(info);
        let hash = info.published_hash.unwrap_or_else(|| schema_text_hash(&text));
        Self { info, text, hash, model: OnceLock::new() }
    }

    /// Returns the description that the derive made.
    #[must_use]
    pub fn info(&self) -> &'static SchemaInfo {
        self.info
    }

    /// Returns the `content_type` of ring files with this schema.
    #[must_use]
    pub fn content_type(&self) -> u16 {
        self.info.content_type
    }

    /// Returns the name of the content type (`SHOP`).
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.info.name
    }

    /// Returns the `schema_hash` of ring files with this schema. This is the published hash, if there is one.
    /// Otherwise it is the hash of the schema text.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// Returns the schema text, with descriptions as comment lines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the schema text without its comment lines. The hash is computed from this text.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        canonical_lines(&self.text).flat_map(|line| [line, "\n"]).collect()
    }

    /// Returns the event of that code.
    #[must_use]
    pub fn event(&self, code: u16) -> Option<&'static EventInfo> {
        let events = self.info.events;
        events.binary_search_by_key(&code, |event| event.code).ok().map(|i| &events[i])
    }

    /// Returns the domains of the schema, by ascending number. Returns an empty list if the schema has no domains.
    #[must_use]
    pub fn domains(&self) -> Vec<DomainInfo> {
        let mut domains: Vec<DomainInfo> = self.info.events.iter().filter_map(|event| event.domain).collect();
        domains.sort_by_key(|domain| domain.number);
        domains.dedup_by_key(|domain| domain.number);
        domains
    }

    /// Returns the model of this schema. A model decodes payloads without knowing their Rust types. The first call
    /// makes the model.
    ///
    /// # Errors
    /// Returns an error if the schema exceeds a limit of [`SchemaModel::parse`].
    pub fn model(&self) -> Result<&SchemaModel, &SchemaTextError> {
        let model = || {
            let model = SchemaModel::parse(&self.text)?;
            Ok(SchemaModel { ext_words: self.info.ext_words.clone(), ..model })
        };
        get_or_make(&self.model, model).as_ref()
    }
}

/// Computes the KECCAK-256 of a schema text without its comment lines. This is the schema hash, unless another hash was
/// published for the schema.
#[must_use]
pub fn schema_text_hash(text: &str) -> [u8; 32] {
    let mut hasher = Keccak::v256();
    for line in canonical_lines(text) {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    let mut hash = [0; 32];
    hasher.finalize(&mut hash);
    hash
}

fn canonical_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').filter(|line| !line.starts_with('#'))
}

/// A struct or enum that has been written.
#[derive(PartialEq)]
enum Definition {
    Struct(&'static StructInfo),
    Enum(&'static EnumInfo),
}

/// The writer of a schema text. It writes the definition of each struct and enum before the first line that uses it.
#[derive(Default)]
struct Writer {
    out: String,
    definitions: Vec<(String, Definition)>,
}

impl Writer {
    fn schema(mut self, info: &'static SchemaInfo) -> String {
        self.line(format_args!("{FIRST_LINE}"));
        self.comment(info.description);
        self.line(format_args!("content {} {} {}", info.content_type, info.name, info.version));
        if let Some(hash) = info.published_hash {
            self.out.push_str("hash ");
            let _ = write_hex(&mut self.out, &hash);
            self.out.push('\n');
        }
        if info.content_type >= FIRST_PROGRAM_CONTENT_TYPE {
            info.ext_words.iter().for_each(|(index, word)| self.ext_word(index, word));
        } else if info.ext_words.has_span() {
            ExtWords::SPAN.iter().for_each(|(index, word)| self.ext_word(index, word));
        }
        for event in info.events {
            self.event(event);
        }
        self.out
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{line}");
    }

    fn ext_word(&mut self, index: usize, word: &ExtWord) {
        match word.kind().name() {
            None => self.line(format_args!("{EXT_WORD}{index} {}", word.name())),
            Some(kind) => self.line(format_args!("{EXT_WORD}{index} {} {kind}", word.name())),
        }
    }

    fn comment(&mut self, description: &str) {
        for line in description.lines() {
            self.line(format_args!("# {line}"));
        }
    }

    fn event(&mut self, event: &'static EventInfo) {
        let payload = event.payload.map(|info| self.type_name(&FieldType::Struct(info)));
        let elements: Vec<String> = event.trailing.iter().map(|array| self.type_name(&array.element)).collect();
        self.comment(event.description);
        match payload {
            Some(payload) => self.line(format_args!("event {} {} {payload}", event.code, event.name)),
            None => self.line(format_args!("event {} {}", event.code, event.name)),
        }
        if let Some(DomainInfo { number, name }) = event.domain {
            self.line(format_args!("domain {number} {name}"));
        }
        for (array, element) in event.trailing.iter().zip(elements) {
            let count = match array.count {
                TrailingCount::Field(path) => path,
                TrailingCount::Rest => "*",
            };
            self.line(format_args!("trailing {} {element} {count}", array.name));
        }
    }

    /// Writes the definitions that a type needs. Returns the type's name as it stands in the line of a field.
    fn type_name(&mut self, ty: &FieldType) -> String {
        match ty {
            FieldType::Scalar(scalar) => scalar.name().into(),
            FieldType::Array { element: FieldType::Scalar(Scalar::U8), len } => format!("bytes{len}"),
            FieldType::Array { element, len } => format!("{}[{len}]", self.type_name(element)),
            FieldType::Struct(info) => self.define(Definition::Struct(info)),
            FieldType::Enum(info) => self.define(Definition::Enum(info)),
        }
    }

    fn define(&mut self, definition: Definition) -> String {
        if let Some((name, _)) = self.definitions.iter().find(|(_, known)| *known == definition) {
            return name.clone();
        }
        let name = match definition {
            Definition::Struct(info) => {
                // The definitions of the fields' types are written first. One of these types may take the name that
                // this struct would get, so the name of this struct is chosen afterwards.
                let types: Vec<String> = info.fields.iter().map(|field| self.type_name(&field.ty)).collect();
                let name = self.free_name(info.name);
                self.struct_lines(&name, info, &types);
                name
            }
            Definition::Enum(info) => {
                let name = self.free_name(info.name);
                self.enum_lines(&name, info);
                name
            }
        };
        self.definitions.push((name.clone(), definition));
        name
    }

    /// Returns `plain`. If another Rust type has taken this name, returns `plain` with a number after it (`plain_2`).
    fn free_name(&self, plain: &str) -> String {
        let is_taken = |name: &str| self.definitions.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        std::iter::once(plain.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn enum_lines(&mut self, name: &str, info: &EnumInfo) {
        self.comment(info.description);
        self.line(format_args!("enum {name} {}", info.repr.name()));
        for (value, value_name) in info.values {
            self.line(format_args!("value {value} {value_name}"));
        }
    }

    fn struct_lines(&mut self, name: &str, info: &StructInfo, types: &[String]) {
        self.comment(info.description);
        self.line(format_args!("struct {name} {}", info.bytes));
        for (field, ty) in info.fields.iter().zip(types) {
            self.comment(field.description);
            let redacted = if field.redacted { " redacted" } else { "" };
            self.line(format_args!("field {} {ty} {} {}{redacted}", field.name, field.offset, field.bytes));
        }
    }
}
