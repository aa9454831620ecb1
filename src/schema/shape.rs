//! The shapes of decoded payloads, for formats that declare the types of their columns before the first value.

use super::describe::Scalar;
use super::model::{EventModel, SchemaModel, TypeModel};

/// The type of a decoded [`Value`](super::Value). A value that is redacted or malformed has no shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// [`Value::Int`](super::Value::Int), or [`Value::Uint`](super::Value::Uint) of at most 32 bits.
    Int,
    /// [`Value::Uint`](super::Value::Uint).
    Uint,
    /// [`Value::F32`](super::Value::F32).
    F32,
    /// [`Value::F64`](super::Value::F64).
    F64,
    /// [`Value::Bool`](super::Value::Bool).
    Bool,
    /// Any value that is written as a text: text, bytes, integers of more than 64 bits.
    Text,
    /// [`Value::Enum`](super::Value::Enum).
    Name,
    /// [`Value::List`](super::Value::List).
    List(Box<Shape>),
    /// [`Value::Struct`](super::Value::Struct), with the fields in their order. There is at least one field.
    Struct(Vec<(String, Shape)>),
}

impl SchemaModel {
    /// Returns the shapes of the fields of an event's decoded payload, in their order. Returns `None` if the schema has
    /// no such event, or if the payload has more than `values_max` values that are not in lists.
    pub(crate) fn payload_shapes(&self, code: u16, values_max: usize) -> Option<Vec<(String, Shape)>> {
        let EventModel { payload, trailing, .. } = self.event(code)?;
        let mut values_left = values_max;
        let mut shapes = match payload {
            Some(index) => self.field_shapes(*index, &mut values_left)?,
            None => Vec::new(),
        };
        for array in trailing {
            shapes.push((array.name.clone(), self.array_shape(&array.element, &mut values_left)?));
        }
        Some(shapes)
    }

    fn field_shapes(&self, index: usize, values_left: &mut usize) -> Option<Vec<(String, Shape)>> {
        let fields = &self.structs[index].fields;
        fields.iter().map(|field| Some((field.name.clone(), self.shape(&field.ty, values_left)?))).collect()
    }

    fn array_shape(&self, element: &TypeModel, values_left: &mut usize) -> Option<Shape> {
        match element {
            TypeModel::Scalar(Scalar::U8 | Scalar::Utf8) => {
                *values_left = values_left.checked_sub(1)?;
                Some(Shape::Text)
            }
            element => Some(Shape::List(Box::new(self.shape(element, values_left)?))),
        }
    }

    fn shape(&self, ty: &TypeModel, values_left: &mut usize) -> Option<Shape> {
        *values_left = values_left.checked_sub(1)?;
        Some(match ty {
            TypeModel::Scalar(scalar) => scalar_shape(*scalar),
            TypeModel::Array { element, .. } => self.array_shape(element, values_left)?,
            // No format has a struct without fields. As a text, it is `{}`.
            TypeModel::Struct(index) if self.structs[*index].fields.is_empty() => Shape::Text,
            TypeModel::Struct(index) => Shape::Struct(self.field_shapes(*index, values_left)?),
            TypeModel::Enum(_) => Shape::Name,
        })
    }
}

fn scalar_shape(scalar: Scalar) -> Shape {
    match scalar {
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Shape::Int,
        Scalar::U64 => Shape::Uint,
        Scalar::U128 | Scalar::U256 | Scalar::I128 | Scalar::Utf8 => Shape::Text,
        Scalar::F32 => Shape::F32,
        Scalar::F64 => Shape::F64,
        Scalar::Bool => Shape::Bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(body: &str) -> SchemaModel {
        SchemaModel::parse(&format!("eventring-schema 1\n{body}")).unwrap()
    }

    #[test]
    #[cfg(feature = "exec")]
    fn every_value_of_a_decoded_payload_has_the_shape_of_its_field() {
        use crate::schema::exec::ExecEvent;
        use crate::schema::{EventType as _, Value};
        fn fits(value: &Value<'_>, shape: &Shape) -> bool {
            match (value, shape) {
                (Value::Int(_), Shape::Int) | (Value::Uint(_), Shape::Int | Shape::Uint) => true,
                (Value::Bool(_), Shape::Bool) | (Value::Enum { .. }, Shape::Name) => true,
                (Value::Bytes(_) | Value::Text(_) | Value::Uint128(_) | Value::Uint256(_), Shape::Text) => true,
                (Value::List(values), Shape::List(shape)) => values.iter().all(|value| fits(value, shape)),
                (Value::Struct(values), Shape::Struct(shapes)) => {
                    values.len() == shapes.len()
                        && values.iter().zip(shapes).all(|((a, value), (b, shape))| a == b && fits(value, shape))
                }
                _ => false,
            }
        }
        let model = ExecEvent::schema().model().unwrap();
        for event in model.events() {
            let shapes = model.payload_shapes(event.code(), 1000).unwrap();
            // The payload has only zeros, so its trailing arrays are empty.
            let bytes = event.payload.map_or(0, |index| model.structs[index].bytes);
            let payload = vec![0; bytes];
            let Value::Struct(values) = model.decode(event.code(), &payload) else { panic!("{}", event.name()) };
            let value = Value::Struct(values);
            assert!(shapes.is_empty() || fits(&value, &Shape::Struct(shapes)), "{}: {value}", event.name());
        }
    }

    #[test]
    fn a_payload_of_too_many_values_has_no_shapes() {
        let _ = model;
    }
}
