//! A schema as simple data: its layout, its text and its payloads. Nothing here is shared with the library.

use std::fmt::Write as _;

/// A schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    pub version: u32,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub code: u16,
    pub names: Names,
    pub fields: Vec<Field>,
    pub arrays: Vec<Array>,
}

/// The name of an item, and its earlier names.
#[derive(Clone, Debug, PartialEq)]
pub struct Names {
    pub name: &'static str,
    pub aliases: Vec<&'static str>,
}

impl Names {
    pub fn new(name: &'static str) -> Self {
        Self { name, aliases: Vec::new() }
    }

    /// Finds the item that an older or newer schema has under this name, or under an earlier one.
    pub fn find<'m, T>(&self, items: &'m [T], names: impl Fn(&T) -> &Names) -> Option<&'m T> {
        let by = |wanted: &str| items.iter().find(|item| names(item).name == wanted);
        by(self.name).or_else(|| items.iter().find(|item| self.aliases.contains(&names(item).name)))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub names: Names,
    pub ty: Type,
    pub redacted: bool,
    /// Each byte of the default value is this number, 0 or 1.
    pub default: Option<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// An unsigned integer of this many bytes: 1, 2, 4 or 8.
    Uint(usize),
    Bytes(usize),
    Enum(Vec<(u8, Names)>),
    Struct(Vec<Field>),
    Array(Box<Type>, usize),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub names: Names,
    pub element: Type,
    /// The field that holds the number of elements, or `None` for the rest of the payload.
    pub count: Option<&'static str>,
    pub has_default: bool,
}

/// A value, by which the model says what is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Number(u64),
    Bytes(Vec<u8>),
    Struct(Vec<(&'static str, Val)>),
    List(Vec<Val>),
    Redacted,
}

impl Type {
    /// Returns the size and the alignment, as a C compiler has them.
    pub fn layout(&self) -> (usize, usize) {
        match self {
            Self::Uint(bytes) => (*bytes, *bytes),
            Self::Bytes(bytes) => (*bytes, 1),
            Self::Enum(_) => (1, 1),
            Self::Struct(fields) => {
                let (_, bytes, align) = offsets(fields);
                (bytes, align)
            }
            Self::Array(element, len) => {
                let (bytes, align) = element.layout();
                (bytes * len, align)
            }
        }
    }

    /// Returns the value whose bytes are all this number.
    pub fn of_byte(&self, byte: u8) -> Val {
        match self {
            Self::Uint(bytes) => Val::Number((0..*bytes).fold(0, |number, _| number << 8 | u64::from(byte))),
            Self::Enum(_) => Val::Number(byte.into()),
            Self::Bytes(len) => Val::Bytes(vec![byte; *len]),
            Self::Array(element, len) => Val::List(vec![element.of_byte(byte); *len]),
            Self::Struct(fields) => Val::Struct(
                fields
                    .iter()
                    .map(|field| {
                        (field.names.name, if field.redacted { Val::Redacted } else { field.ty.of_byte(byte) })
                    })
                    .collect(),
            ),
        }
    }
}

/// Returns the offsets, the size and the alignment of a struct.
pub fn offsets(fields: &[Field]) -> (Vec<usize>, usize, usize) {
    let (mut end, mut align, mut offsets) = (0usize, 1, Vec::new());
    for field in fields {
        let (bytes, of_field) = field.ty.layout();
        offsets.push(end.next_multiple_of(of_field));
        end = end.next_multiple_of(of_field) + bytes;
        align = align.max(of_field);
    }
    (offsets, end.next_multiple_of(align), align)
}

/// Encodes a value into exactly as many bytes as its type has.
pub fn encode(ty: &Type, value: &Val, out: &mut [u8]) {
    match (ty, value) {
        (_, Val::Number(number)) => out.copy_from_slice(&number.to_le_bytes()[..out.len()]),
        (_, Val::Bytes(bytes)) => out.copy_from_slice(bytes),
        (Type::Struct(fields), Val::Struct(values)) => {
            let values: Vec<Val> = values.iter().map(|(_, value)| value.clone()).collect();
            encode_fields(fields, &values, out);
        }
        (Type::Array(element, _), Val::List(values)) => {
            let bytes = element.layout().0;
            values.iter().enumerate().for_each(|(i, value)| encode(element, value, &mut out[i * bytes..][..bytes]));
        }
        _ => {}
    }
}

pub fn encode_fields(fields: &[Field], values: &[Val], out: &mut [u8]) {
    for ((field, value), offset) in fields.iter().zip(values).zip(offsets(fields).0) {
        encode(&field.ty, value, &mut out[offset..][..field.ty.layout().0]);
    }
}

/// Writes schema text.
pub fn text(sketch: &Sketch) -> String {
    let mut lines = format!("schema-text 1\ncontent 300 SHOP {}\n", sketch.version);
    let mut types = 0;
    for event in &sketch.events {
        let name = define(&Type::Struct(event.fields.clone()), &mut lines, &mut types);
        let elements: Vec<String> =
            event.arrays.iter().map(|array| define(&array.element, &mut lines, &mut types)).collect();
        writeln!(lines, "event {} {} {name}", event.code, event.names.name).unwrap();
        for (array, element) in event.arrays.iter().zip(elements) {
            writeln!(lines, "trailing {} {element} {}", array.names.name, array.count.unwrap_or("*")).unwrap();
        }
    }
    lines
}

/// Writes the lines that a type needs, and returns its name.
fn define(ty: &Type, lines: &mut String, types: &mut u32) -> String {
    match ty {
        Type::Uint(bytes) => format!("u{}", bytes * 8),
        Type::Bytes(bytes) => format!("bytes{bytes}"),
        Type::Array(element, len) => match define(element, lines, types) {
            byte if byte == "u8" => format!("bytes{len}"),
            element => format!("{element}[{len}]"),
        },
        Type::Enum(values) => {
            *types += 1;
            let name = format!("E{types}");
            writeln!(lines, "enum {name} u8").unwrap();
            values.iter().for_each(|(number, names)| writeln!(lines, "value {number} {}", names.name).unwrap());
            name
        }
        Type::Struct(fields) => {
            let names: Vec<String> = fields.iter().map(|field| define(&field.ty, lines, types)).collect();
            *types += 1;
            let name = format!("S{types}");
            let (offsets, bytes, _) = offsets(fields);
            writeln!(lines, "struct {name} {bytes}").unwrap();
            for ((field, ty), offset) in fields.iter().zip(names).zip(offsets) {
                let redacted = if field.redacted { " redacted" } else { "" };
                let (name, bytes) = (field.names.name, field.ty.layout().0);
                writeln!(lines, "field {name} {ty} {offset} {bytes}{redacted}").unwrap();
            }
            name
        }
    }
}
