//! The structure of payloads, for formats that declare the types of their values before the values.

use super::model::{SchemaModel, TypeModel};
use crate::schema::description::describe::Scalar;

/// The largest number of types that one structure has. A small schema text can describe a type of very many parts: 32
/// structs, each of which has the next one twice.
const SHAPE_PARTS_MAX: usize = 1 << 14;

/// The structure of the values that [`SchemaModel::decode`] makes of well-formed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape<'m> {
    /// A [`Value`](crate::schema::Value) of this scalar. It is no [`Scalar::Utf8`].
    Scalar(Scalar),
    /// A text.
    Text,
    /// A byte string.
    Bytes,
    /// A value of an enum: its representation, and its numbers with their names, by ascending number.
    Enum(Scalar, &'m [(i128, String)]),
    /// A list of this many elements.
    Array(usize, Box<Shape<'m>>),
    /// A list of any number of elements.
    List(Box<Shape<'m>>),
    /// Named values in order.
    Struct(Vec<(&'m str, Shape<'m>)>),
    /// A field that is never recorded.
    Redacted,
}

impl SchemaModel {
    /// Returns the structure of the payload of event `code`. Returns `None` if there is no such event, or if the
    /// structure has too many parts.
    pub fn payload_shape(&self, code: u16) -> Option<Shape<'_>> {
        let event = self.event(code)?;
        let mut parts_left = SHAPE_PARTS_MAX;
        let mut fields = match event.payload {
            Some(index) => self.fields_shape(index, &mut parts_left)?,
            None => Vec::new(),
        };
        for array in &event.trailing {
            let element = self.type_shape(&array.element, &mut parts_left)?;
            fields.push((array.name.as_str(), array_shape(&array.element, None, element)));
        }
        Some(Shape::Struct(fields))
    }

    fn fields_shape(&self, index: usize, parts_left: &mut usize) -> Option<Vec<(&str, Shape<'_>)>> {
        let fields = self.structs[index].fields.iter().map(|field| {
            let shape = if field.redacted { Shape::Redacted } else { self.type_shape(&field.ty, parts_left)? };
            *parts_left = parts_left.checked_sub(1)?;
            Some((field.name.as_str(), shape))
        });
        fields.collect()
    }

    fn type_shape(&self, ty: &TypeModel, parts_left: &mut usize) -> Option<Shape<'_>> {
        *parts_left = parts_left.checked_sub(1)?;
        Some(match ty {
            TypeModel::Scalar(Scalar::Utf8) => Shape::Text,
            TypeModel::Scalar(scalar) => Shape::Scalar(*scalar),
            TypeModel::Struct(index) => Shape::Struct(self.fields_shape(*index, parts_left)?),
            TypeModel::Enum(index) => {
                let info = &self.enums[*index];
                *parts_left = parts_left.checked_sub(info.values.len())?;
                Shape::Enum(info.repr, &info.values)
            }
            TypeModel::Array { element, len } => {
                let shape = self.type_shape(element, parts_left)?;
                array_shape(element, Some(*len), shape)
            }
        })
    }
}

/// Returns the structure of an array, which is a list of any number of elements if `len` is `None`.
fn array_shape<'m>(element: &TypeModel, len: Option<usize>, shape: Shape<'m>) -> Shape<'m> {
    match (element, len) {
        (TypeModel::Scalar(Scalar::U8), _) => Shape::Bytes,
        (TypeModel::Scalar(Scalar::Utf8), _) => Shape::Text,
        (_, Some(len)) => Shape::Array(len, Box::new(shape)),
        (_, None) => Shape::List(Box::new(shape)),
    }
}
