//! Resolution of enums, and names of types for messages.

use super::resolver::{Resolver, index_of};
use crate::schema::description::describe::{EnumInfo, FieldType, Scalar};
use crate::schema::description::evolution::Evolution;
use crate::schema::dynamic::model::{EnumModel, TypeModel};

impl Resolver<'_> {
    /// Compares two enums. A number means the same in both.
    pub(super) fn enums(&mut self, place: &str, writer: &EnumModel, reader: &EnumInfo) {
        for (i, (number, name)) in reader.values.iter().enumerate() {
            let evolution = reader.evolution.get(i).unwrap_or(&Evolution::NONE);
            match writer.values.binary_search_by_key(number, |(number, _)| *number) {
                Ok(found) if writer.values[found].1 == *name => {}
                Ok(found) if evolution.has_alias(&writer.values[found].1) => {
                    let found = &writer.values[found].1;
                    self.differences.allow(format_args!("{place}: the value {name} is called {found} in the ring"));
                }
                Ok(found) => self.differences.forbid(format_args!(
                    "{place}: {number} is {found} in the ring and {name} here: if the value was renamed, say \
                     #[event(alias = \"{found}\")]; otherwise give {name} a number of its own",
                    found = writer.values[found].1
                )),
                Err(_) => match index_of(&writer.values, |(_, name)| name, name, evolution) {
                    Some(found) => self.differences.forbid(format_args!(
                        "{place}: {name} is {} in the ring and {number} here: a value keeps its number",
                        writer.values[found].0
                    )),
                    None => self.differences.allow(format_args!("{place}: the ring never has the value {name}")),
                },
            }
        }
        for (number, name) in &writer.values {
            if !reader.values.iter().any(|(known, _)| known == number) {
                let text = "is a value of the ring only: an event with it cannot be decoded here";
                self.differences.allow(format_args!("{place}: {name} ({number}) {text}"));
            }
        }
    }

    /// Returns words for a type of the ring.
    pub(super) fn name_of(&self, ty: &TypeModel) -> String {
        match ty {
            TypeModel::Scalar(scalar) => scalar.name().to_owned(),
            TypeModel::Array { element, len } => array_name(&self.name_of(element), *len),
            TypeModel::Struct(_) => "a struct".to_owned(),
            TypeModel::Enum(index) => enum_name(self.writer.enums[*index].repr),
        }
    }
}

/// Returns words for a type of the reader.
pub(super) fn name_of(ty: &FieldType) -> String {
    match ty {
        FieldType::Scalar(scalar) => scalar.name().to_owned(),
        FieldType::Array { element, len } => array_name(&name_of(element), *len),
        FieldType::Struct(_) => "a struct".to_owned(),
        FieldType::Enum(info) => enum_name(info.repr),
    }
}

fn array_name(element: &str, len: usize) -> String {
    match element {
        "u8" => format!("bytes{len}"),
        _ => format!("{element}[{len}]"),
    }
}

fn enum_name(repr: Scalar) -> String {
    format!("an enum of {}", repr.name())
}
