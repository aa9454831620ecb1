//! Resolution of structs and of the types of their fields.

use super::resolver::{Resolver, index_of};
use super::types::name_of;
use crate::schema::description::describe::{FieldInfo, FieldType, StructInfo};
use crate::schema::description::evolution::Evolution;
use crate::schema::dynamic::model::{FieldModel, StructModel, TypeModel};
use std::ops::Range;

/// How a value of the writer's type becomes a value of the reader's type.
#[derive(Debug)]
pub(super) enum TypeResolution {
    /// The bytes are the same.
    Same,
    Struct {
        /// The reader's struct, with the defaults of the fields that the writer lacks.
        template: Vec<u8>,
        fields: Vec<FieldResolution>,
    },
    Array {
        writer_bytes: usize,
        reader_bytes: usize,
        element: Box<TypeResolution>,
    },
}

/// A field that both structs have, with its places in them.
#[derive(Debug)]
pub(super) struct FieldResolution {
    writer: Range<usize>,
    reader: Range<usize>,
    ty: TypeResolution,
}

impl TypeResolution {
    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same)
    }

    /// Writes the reader's value. Both slices are exactly as long as the types.
    pub(super) fn apply(&self, writer: &[u8], reader: &mut [u8]) {
        match self {
            Self::Same => reader.copy_from_slice(writer),
            Self::Struct { template, fields } => {
                reader.copy_from_slice(template);
                for field in fields {
                    field.ty.apply(&writer[field.writer.clone()], &mut reader[field.reader.clone()]);
                }
            }
            Self::Array { writer_bytes, reader_bytes, element } => {
                // A struct of 0 bytes has no chunks. `max(1)` is needed because a chunk size of 0 would panic.
                let elements = reader.chunks_exact_mut((*reader_bytes).max(1)).enumerate();
                elements.for_each(|(i, reader)| element.apply(&writer[i * writer_bytes..][..*writer_bytes], reader));
            }
        }
    }

    /// Returns the offset in the writer's value from which the byte at `offset` of the reader's value comes. Returns
    /// the bytes of the default from there on as an error if it comes from a default. There is no array around the
    /// byte.
    pub(super) fn source_of(&self, offset: usize) -> Result<usize, &[u8]> {
        match self {
            Self::Same => Ok(offset),
            Self::Struct { template, fields } => match fields.iter().find(|field| field.reader.contains(&offset)) {
                Some(field) => Ok(field.writer.start + field.ty.source_of(offset - field.reader.start)?),
                None => Err(&template[offset..]),
            },
            Self::Array { .. } => Err(&[]),
        }
    }
}

impl Resolver<'_> {
    pub(super) fn structs(&mut self, place: &str, writer: &StructModel, reader: &StructInfo) -> TypeResolution {
        let mut template = vec![0; reader.bytes];
        let mut fields = Vec::new();
        let mut is_same = writer.bytes == reader.bytes;
        for field in reader.fields {
            let place = format!("{place}.{}", field.name);
            let found = index_of(&writer.fields, |field| &field.name, field.name, &field.evolution);
            let found = found.map(|index| &writer.fields[index]);
            if field.redacted {
                // It is zeros here, whatever the ring has.
                is_same &= found.is_some_and(|found| found.redacted && self.place_of(found) == place_in(field));
                continue;
            }
            match found.filter(|found| !found.redacted) {
                Some(found) => {
                    if found.name != field.name {
                        self.differences.allow(format_args!("{place} is called {} in the ring", found.name));
                    }
                    let ty = self.types(&place, &found.ty, &field.ty);
                    let writer = self.place_of(found);
                    is_same &= ty.is_same() && writer == place_in(field);
                    fields.push(FieldResolution { writer, reader: place_in(field), ty });
                }
                None => {
                    is_same = false;
                    let why =
                        found.map_or("is not in the ring", |_| "is redacted in the ring, so it was never recorded");
                    let remedy = "#[event(default)] or #[event(default = VALUE)]";
                    if self.is_dispensable(&place, why, remedy, &field.evolution)
                        && let Some(encode) = field.evolution.default
                    {
                        encode(&mut template[place_in(field)]);
                    }
                }
            }
        }
        for field in &writer.fields {
            let is_known = |known: &FieldInfo| known.name == field.name || known.evolution.has_alias(&field.name);
            if !reader.fields.iter().any(is_known) {
                self.differences.allow(format_args!("{place}.{} is only in the ring", field.name));
            }
        }
        if is_same { TypeResolution::Same } else { TypeResolution::Struct { template, fields } }
    }

    /// Notes that the ring lacks a field or array. Returns true if it has a default.
    pub(super) fn is_dispensable(&mut self, place: &str, why: &str, remedy: &str, evolution: &Evolution) -> bool {
        match evolution.default {
            Some(_) => self.differences.allow(format_args!("{place} {why}: it has its default")),
            None => self
                .differences
                .forbid(format_args!("{place} {why}: say {remedy}, or #[event(alias = \"NAME\")] if it was renamed")),
        }
        evolution.default.is_some()
    }

    fn place_of(&self, field: &FieldModel) -> Range<usize> {
        field.offset..field.offset + self.writer.bytes_of(&field.ty)
    }

    pub(super) fn types(&mut self, place: &str, writer: &TypeModel, reader: &FieldType) -> TypeResolution {
        let schema = self.writer;
        match (writer, reader) {
            (TypeModel::Scalar(found), FieldType::Scalar(expected)) if found == expected => TypeResolution::Same,
            // The ring's text has numbers here: its model has names for them.
            (TypeModel::Enum(index), FieldType::Scalar(expected))
                if schema.enums[*index].is_added && schema.enums[*index].repr == *expected =>
            {
                TypeResolution::Same
            }
            (TypeModel::Array { element, len }, FieldType::Array { element: expected, len: expected_len })
                if len == expected_len =>
            {
                match self.types(place, element, expected) {
                    TypeResolution::Same => TypeResolution::Same,
                    other => TypeResolution::Array {
                        writer_bytes: schema.bytes_of(element),
                        reader_bytes: expected.bytes(),
                        element: Box::new(other),
                    },
                }
            }
            (TypeModel::Struct(index), FieldType::Struct(expected)) => {
                self.structs(place, &schema.structs[*index], expected)
            }
            (TypeModel::Enum(index), FieldType::Enum(expected)) if schema.enums[*index].repr == expected.repr => {
                self.enums(place, &schema.enums[*index], expected);
                TypeResolution::Same
            }
            _ => {
                self.differences.forbid(format_args!(
                    "{place} is {} in the ring and {} here: a field keeps its type; give the new type another name and \
                     a default",
                    self.name_of(writer),
                    name_of(reader)
                ));
                TypeResolution::Same
            }
        }
    }
}

fn place_in(field: &FieldInfo) -> Range<usize> {
    field.offset..field.offset + field.bytes
}
