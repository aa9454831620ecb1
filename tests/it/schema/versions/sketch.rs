//! A schema as simple data, and the model of what is compatible. Nothing here is shared with the library.

use eventring::schema::{
    EnumInfo, EventInfo, Evolution, ExtWords, FieldInfo, FieldType, Scalar, SchemaInfo, StructInfo, TrailingCount,
    TrailingInfo,
};
use std::collections::HashMap;
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
    fn find<'m, T>(&self, items: &'m [T], names: impl Fn(&T) -> &Names) -> Option<&'m T> {
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

/// A rule of the model, which a control can leave out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Version,
    EventCode,
    FieldType,
    MissingField,
    Redacted,
    EnumMeaning,
    ArrayCount,
    MissingArray,
    DefaultValue,
    Alias,
}

pub const RULES: [Rule; 10] = [
    Rule::Version,
    Rule::EventCode,
    Rule::FieldType,
    Rule::MissingField,
    Rule::Redacted,
    Rule::EnumMeaning,
    Rule::ArrayCount,
    Rule::MissingArray,
    Rule::DefaultValue,
    Rule::Alias,
];

/// A value, by which the model says what is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Number(u64),
    Bytes(Vec<u8>),
    Struct(Vec<(&'static str, Val)>),
    List(Vec<Val>),
    Redacted,
}

/// The model: whether a ring of one schema can be read with another, and what is read.
pub struct Model {
    /// The rule that a control leaves out.
    pub without: Option<Rule>,
}

impl Model {
    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn find<'m, T>(&self, names: &Names, items: &'m [T], of: impl Fn(&T) -> &Names) -> Option<&'m T> {
        match self.has(Rule::Alias) {
            true => names.find(items, of),
            false => Names::new(names.name).find(items, of),
        }
    }

    pub fn is_compatible(&self, ring: &Sketch, reader: &Sketch) -> bool {
        (ring.version == reader.version || !self.has(Rule::Version))
            && reader.events.iter().all(|event| self.is_event_compatible(ring, event))
    }

    fn is_event_compatible(&self, ring: &Sketch, event: &Event) -> bool {
        match self.find(&event.names, &ring.events, |event| &event.names) {
            Some(found) if found.code != event.code => !self.has(Rule::EventCode),
            Some(found) => {
                self.are_fields_compatible(&found.fields, &event.fields)
                    && event.arrays.iter().all(|array| self.is_array_compatible(found, event, array))
            }
            None => ring.events.iter().all(|other| other.code != event.code) || !self.has(Rule::EventCode),
        }
    }

    fn are_fields_compatible(&self, ring: &[Field], reader: &[Field]) -> bool {
        let is_compatible = |field: &Field| {
            let found = self.find(&field.names, ring, |field| &field.names);
            match found.filter(|found| !found.redacted || !self.has(Rule::Redacted)) {
                _ if field.redacted => true,
                Some(found) => self.is_type_compatible(&found.ty, &field.ty),
                None => field.default.is_some() || !self.has(Rule::MissingField),
            }
        };
        reader.iter().all(is_compatible)
    }

    fn is_type_compatible(&self, ring: &Type, reader: &Type) -> bool {
        match (ring, reader) {
            (Type::Struct(ring), Type::Struct(reader)) => self.are_fields_compatible(ring, reader),
            (Type::Array(ring, ring_len), Type::Array(reader, len)) if ring_len == len => {
                self.is_type_compatible(ring, reader)
            }
            (Type::Enum(ring), Type::Enum(reader)) => {
                let is_kept = |(number, names): &(u8, Names)| {
                    let here = ring.iter().find(|(other, _)| other == number);
                    let named = self.find(names, ring, |(_, names)| names);
                    match here {
                        Some((_, other)) => {
                            names.name == other.name || (self.has(Rule::Alias) && names.aliases.contains(&other.name))
                        }
                        None => named.is_none(),
                    }
                };
                reader.iter().all(is_kept) || !self.has(Rule::EnumMeaning)
            }
            _ => ring == reader || !self.has(Rule::FieldType),
        }
    }

    fn is_array_compatible(&self, ring: &Event, reader: &Event, array: &Array) -> bool {
        let count = array.count.map(|name| reader.fields.iter().find(|field| field.names.name == name).unwrap());
        let in_ring = count.and_then(|count| self.find(&count.names, &ring.fields, |field| &field.names));
        let in_ring = in_ring.filter(|found| !found.redacted);
        match self.find(&array.names, &ring.arrays, |array| &array.names) {
            Some(found) => {
                let is_counted_alike =
                    count.is_none() || in_ring.is_some_and(|field| found.count == Some(field.names.name));
                (is_counted_alike || !self.has(Rule::ArrayCount))
                    && self.is_type_compatible(&found.element, &array.element)
            }
            None => {
                let is_empty = count.is_none_or(|count| in_ring.is_none() && count.default == Some(0));
                (array.has_default && is_empty) || !self.has(Rule::MissingArray)
            }
        }
    }

    /// Returns what is read of an event of which the ring has these values.
    pub fn read(&self, ring: &Event, reader: &Event, values: &[Val]) -> Vec<(&'static str, Val)> {
        let (fields, arrays) = values.split_at(ring.fields.len());
        let mut read = self.read_fields(&ring.fields, &reader.fields, fields);
        for array in &reader.arrays {
            let found = self.find(&array.names, &ring.arrays, |array| &array.names);
            let value = match found.map(|found| (found, ring.arrays.iter().position(|array| array == found).unwrap())) {
                Some((found, index)) => match &arrays[index] {
                    Val::List(elements) => Val::List(
                        elements.iter().map(|value| self.read_type(&found.element, &array.element, value)).collect(),
                    ),
                    other => other.clone(),
                },
                None if array.element == Type::Uint(1) => Val::Bytes(Vec::new()),
                None => Val::List(Vec::new()),
            };
            read.push((array.names.name, value));
        }
        read
    }

    fn read_fields(&self, ring: &[Field], reader: &[Field], values: &[Val]) -> Vec<(&'static str, Val)> {
        let values: HashMap<&str, &Val> = ring.iter().map(|field| field.names.name).zip(values).collect();
        let read = |field: &Field| {
            let found = self.find(&field.names, ring, |field| &field.names).filter(|found| !found.redacted);
            let value = match found {
                _ if field.redacted => Val::Redacted,
                Some(found) => self.read_type(&found.ty, &field.ty, values[found.names.name]),
                None if self.has(Rule::DefaultValue) => field.ty.of_byte(field.default.unwrap_or(0)),
                None => field.ty.of_byte(0),
            };
            (field.names.name, value)
        };
        reader.iter().map(read).collect()
    }

    fn read_type(&self, ring: &Type, reader: &Type, value: &Val) -> Val {
        match (ring, reader, value) {
            (Type::Struct(ring), Type::Struct(reader), Val::Struct(values)) => {
                let values: Vec<Val> = values.iter().map(|(_, value)| value.clone()).collect();
                Val::Struct(self.read_fields(ring, reader, &values))
            }
            (Type::Array(ring, _), Type::Array(reader, _), Val::List(values)) => {
                Val::List(values.iter().map(|value| self.read_type(ring, reader, value)).collect())
            }
            _ => value.clone(),
        }
    }
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

/// Makes the description that a derive would make. It lives as long as the program, as a derive's does.
pub fn info(sketch: &Sketch) -> &'static SchemaInfo {
    let mut events: Vec<EventInfo> = sketch.events.iter().map(event_info).collect();
    events.sort_by_key(|event| event.code);
    leak(SchemaInfo {
        content_type: 300,
        name: "SHOP",
        version: sketch.version,
        events: events.leak(),
        published_hash: None,
        ext_words: ExtWords::NONE,
        description: "",
    })
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn evolution(names: &Names, default: Option<fn(&mut [u8])>) -> Evolution {
    Evolution { aliases: names.aliases.clone().leak(), default }
}

fn event_info(event: &Event) -> EventInfo {
    let trailing = event.arrays.iter().map(|array| TrailingInfo {
        name: array.names.name,
        element: type_info(&array.element),
        count: array.count.map_or(TrailingCount::Rest, TrailingCount::Field),
        evolution: evolution(&array.names, array.has_default.then_some(|_: &mut [u8]| ())),
    });
    EventInfo {
        code: event.code,
        name: event.names.name,
        domain: None,
        payload: Some(struct_info(&event.fields)),
        trailing: trailing.collect::<Vec<_>>().leak(),
        evolution: evolution(&event.names, None),
        description: "",
    }
}

fn struct_info(fields: &[Field]) -> &'static StructInfo {
    let (offsets, bytes, align) = offsets(fields);
    let fields = fields.iter().zip(offsets).map(|(field, offset)| FieldInfo {
        name: field.names.name,
        ty: type_info(&field.ty),
        offset,
        bytes: field.ty.layout().0,
        redacted: field.redacted,
        evolution: evolution(&field.names, field.default.map(default_of)),
        description: "",
    });
    leak(StructInfo { name: "S", bytes, align, fields: fields.collect::<Vec<_>>().leak(), description: "" })
}

/// Returns the function that encodes [`Field::default`].
fn default_of(byte: u8) -> fn(&mut [u8]) {
    match byte {
        0 => |out| out.fill(0),
        _ => |out| out.fill(1),
    }
}

fn type_info(ty: &Type) -> FieldType {
    match ty {
        Type::Uint(1) => FieldType::Scalar(Scalar::U8),
        Type::Uint(2) => FieldType::Scalar(Scalar::U16),
        Type::Uint(4) => FieldType::Scalar(Scalar::U32),
        Type::Uint(_) => FieldType::Scalar(Scalar::U64),
        Type::Bytes(len) => FieldType::Array { element: leak(FieldType::Scalar(Scalar::U8)), len: *len },
        Type::Array(element, len) => FieldType::Array { element: leak(type_info(element)), len: *len },
        Type::Struct(fields) => FieldType::Struct(struct_info(fields)),
        Type::Enum(values) => {
            let evolutions: Vec<Evolution> = values.iter().map(|(_, names)| evolution(names, None)).collect();
            let values: Vec<_> = values.iter().map(|(number, names)| (i128::from(*number), names.name)).collect();
            let (values, evolution) = (values.leak(), evolutions.leak());
            FieldType::Enum(leak(EnumInfo { name: "E", repr: Scalar::U8, values, evolution, description: "" }))
        }
    }
}
