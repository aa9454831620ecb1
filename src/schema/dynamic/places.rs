//! The offsets of an event's fields in its payload, for reading the same fields of very many payloads.

use std::ops::Range;

use super::decode::PayloadDecoder;
use super::model::{SchemaModel, TrailingModel, TypeModel};
use crate::schema::description::describe::Scalar;
use crate::schema::values::value::Value;

/// The places of the fields of an event's payload.
#[derive(Clone, Debug)]
pub struct PayloadPlaces {
    /// The fields of the fixed struct. The fields of a nested struct stand behind it.
    pub fields: Vec<FieldPlace>,
    /// The trailing arrays.
    pub trailing: Vec<FieldPlace>,
    /// The size of the fixed struct.
    pub fixed_bytes: usize,
    arrays: Vec<TrailingModel>,
}

/// A field of a fixed struct, or a trailing array.
#[derive(Clone, Debug)]
pub struct FieldPlace {
    /// The names of the structs around it, and its own.
    pub path: Vec<String>,
    /// The place of a field's bytes in the payload. A trailing array has none that is always the same.
    pub bytes: Range<usize>,
    /// True for a struct, and for a list of anything but bytes and characters: its value is made of others.
    pub has_parts: bool,
    /// True for an integer of at most 64 bits with a sign, false for one without. `None` for everything else.
    pub is_signed: Option<bool>,
    /// `None` if the field is never recorded.
    ty: Option<TypeModel>,
    is_trailing: bool,
}

impl SchemaModel {
    /// Returns the places of the fields of event `code`. Takes their number from `places_left`. Returns `None` if there
    /// is no such event, or if that is not enough: a small schema text can describe very many fields.
    #[doc(hidden)]
    pub fn payload_places(&self, code: u16, places_left: &mut usize) -> Option<PayloadPlaces> {
        let event = self.event(code)?;
        let mut fields = Vec::new();
        if let Some(index) = event.payload {
            self.add_places(index, 0, &[], &mut fields, places_left)?;
        }
        *places_left = places_left.checked_sub(event.trailing.len())?;
        let trailing = event.trailing.iter().map(|array| FieldPlace {
            path: vec![array.name.clone()],
            bytes: 0..0,
            has_parts: !is_string(&array.element),
            is_signed: None,
            ty: Some(array.element.clone()),
            is_trailing: true,
        });
        let fixed_bytes = event.payload.map_or(0, |index| self.structs[index].bytes);
        Some(PayloadPlaces { fields, trailing: trailing.collect(), fixed_bytes, arrays: event.trailing.clone() })
    }

    fn add_places(
        &self,
        index: usize,
        start: usize,
        around: &[String],
        places: &mut Vec<FieldPlace>,
        places_left: &mut usize,
    ) -> Option<()> {
        for field in &self.structs[index].fields {
            *places_left = places_left.checked_sub(1)?;
            let path: Vec<String> = around.iter().chain([&field.name]).cloned().collect();
            let offset = start + field.offset;
            let inner = match &field.ty {
                TypeModel::Struct(inner) if !field.redacted => Some(*inner),
                _ => None,
            };
            let is_list = matches!(&field.ty, TypeModel::Array { element, .. } if !is_string(element));
            places.push(FieldPlace {
                path: path.clone(),
                bytes: offset..offset + self.bytes_of(&field.ty),
                has_parts: !field.redacted && (inner.is_some() || is_list),
                is_signed: is_signed(&field.ty).filter(|_| !field.redacted),
                ty: Some(field.ty.clone()).filter(|_| !field.redacted),
                is_trailing: false,
            });
            if let Some(inner) = inner {
                self.add_places(inner, offset, &path, places, places_left)?;
            }
        }
        Some(())
    }

    /// Decodes the bytes of a field or trailing array as [`Self::decode`] does.
    #[doc(hidden)]
    pub fn value_at<'a>(&'a self, place: &'a FieldPlace, bytes: &'a [u8]) -> Value<'a> {
        let Some(ty) = &place.ty else { return Value::Redacted };
        let mut decoder = PayloadDecoder::new(self);
        if !place.is_trailing {
            return decoder.value(ty, bytes);
        }
        decoder.array(ty, (bytes.len() / self.bytes_of(ty).max(1)) as u64, bytes)
    }

    /// Returns the bytes of each trailing array of a payload. Returns `None` if the payload is too short or too long
    /// for its event.
    #[doc(hidden)]
    pub fn trailing_bytes<'a>(
        &self,
        places: &PayloadPlaces,
        payload: &'a [u8],
        mut each: impl FnMut(usize, &'a [u8]),
    ) -> Option<()> {
        let (fixed, mut rest) = payload.split_at_checked(places.fixed_bytes)?;
        for (index, array) in places.arrays.iter().enumerate() {
            let (_, wanted) = self.size_of_array(array, fixed, rest);
            let (bytes, after) = rest.split_at_checked(usize::try_from(wanted).ok()?)?;
            each(index, bytes);
            rest = after;
        }
        rest.is_empty().then_some(())
    }
}

fn is_string(element: &TypeModel) -> bool {
    matches!(element, TypeModel::Scalar(Scalar::U8 | Scalar::Utf8))
}

fn is_signed(ty: &TypeModel) -> Option<bool> {
    match ty {
        TypeModel::Scalar(Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64) => Some(false),
        TypeModel::Scalar(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64) => Some(true),
        _ => None,
    }
}
