//! The model of what is compatible, and of what is read.

use super::sketch::{Array, Event, Field, Names, Sketch, Type, Val};
use crate::fixtures::*;

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
