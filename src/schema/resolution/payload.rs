//! Resolution of whole payloads: the fixed struct and the trailing arrays.

use super::super::payload::EventPayload;
use super::fields::TypeResolution;
use super::resolver::{Resolver, index_of};
use crate::schema::description::describe::{EventInfo, StructInfo, TrailingCount, TrailingInfo};
use crate::schema::dynamic::model::{CountModel, EventModel, MAX_STRUCT_BYTES, StructModel, TrailingModel};
use crate::schema::fields::trailing::{count_at, read_count};
use std::ops::Range;

/// The largest number of bytes that defaults add to a payload. Without a limit, a small ring could make a reader take
/// much memory: a default may stand in each element of an array.
const ADDED_BYTES_MAX: usize = MAX_STRUCT_BYTES;

/// How the payloads of one event change.
#[derive(Debug)]
pub(super) struct PayloadResolution {
    writer_bytes: usize,
    reader_bytes: usize,
    fixed: TypeResolution,
    /// The arrays in the ring: where their counts are, and the sizes of their elements.
    writer_arrays: Vec<(CountModel, usize)>,
    reader_arrays: Vec<ArrayResolution>,
}

/// An array of the reader's payload.
#[derive(Debug)]
struct ArrayResolution {
    /// The index of the array in the ring, or `None` if the ring lacks it.
    from: Option<usize>,
    reader_bytes: usize,
    element: TypeResolution,
}

impl PayloadResolution {
    /// Replaces a payload. Returns false if it does not fit the writer's schema.
    pub(super) fn resolve(&self, payload: &mut Vec<u8>) -> bool {
        let Some((arrays, reader_bytes)) = self.measure(payload) else { return false };
        let writer_bytes = payload.len();
        // The new payload is made after the old one, in the same memory, which the caller uses again.
        payload.resize(writer_bytes + reader_bytes, 0);
        let (writer, reader) = payload.split_at_mut(writer_bytes);
        let (fixed, mut rest) = reader.split_at_mut(self.reader_bytes);
        self.fixed.apply(&writer[..self.writer_bytes], fixed);
        for array in &self.reader_arrays {
            let Some(from) = array.from else { continue };
            let element_bytes = self.writer_arrays[from].1;
            for element in writer[arrays[from].clone()].chunks_exact(element_bytes) {
                let (reader, after) = rest.split_at_mut(array.reader_bytes);
                array.element.apply(element, reader);
                rest = after;
            }
        }
        payload.drain(..writer_bytes);
        true
    }

    /// Returns the places of the arrays in a payload of the ring, and the size of the reader's payload in bytes.
    /// Returns `None` if the payload does not fit the writer's schema, or if the reader's payload is too large.
    fn measure(&self, payload: &[u8]) -> Option<(Vec<Range<usize>>, usize)> {
        let fixed = payload.get(..self.writer_bytes)?;
        let mut arrays = Vec::with_capacity(self.writer_arrays.len());
        let mut end = self.writer_bytes;
        for (count, element_bytes) in &self.writer_arrays {
            let left = payload.len() - end;
            let bytes = match count {
                CountModel::At(offset, scalar) => {
                    let count = usize::try_from(read_count(fixed, *offset, *scalar)).ok()?;
                    count.checked_mul(*element_bytes).filter(|bytes| *bytes <= left)?
                }
                CountModel::Rest => left - left % element_bytes,
            };
            arrays.push(end..end + bytes);
            end += bytes;
        }
        if end != payload.len() {
            return None;
        }
        let mut reader_bytes = self.reader_bytes;
        for array in &self.reader_arrays {
            let Some(from) = array.from else { continue };
            let elements = arrays[from].len() / self.writer_arrays[from].1;
            reader_bytes = reader_bytes.checked_add(elements.checked_mul(array.reader_bytes)?)?;
        }
        (reader_bytes <= payload.len().saturating_add(ADDED_BYTES_MAX)).then_some((arrays, reader_bytes))
    }
}

impl Resolver<'_> {
    /// Compares the payloads of an event. Returns how they change, if they do.
    pub(super) fn payload(&mut self, event: &EventInfo, found: &EventModel) -> Option<PayloadResolution> {
        let no_struct = StructModel { bytes: 0, depth: 0, fields: Vec::new() };
        let writer = found.payload.map_or(&no_struct, |index| &self.writer.structs[index]);
        let reader = event.payload.unwrap_or(<() as EventPayload>::STRUCT);
        let fixed = self.structs(event.name, writer, reader);
        let mut is_same = fixed.is_same() && found.trailing.len() == event.trailing.len();
        let mut reader_arrays = Vec::new();
        for (i, array) in event.trailing.iter().enumerate() {
            let place = format!("{}.{}", event.name, array.name);
            let from = index_of(&found.trailing, |array| &array.name, array.name, &array.evolution);
            let element = match from.map(|from| &found.trailing[from]) {
                Some(from) => self.arrays(&place, reader, &fixed, from, array),
                None => {
                    self.missing_array(&place, reader, &fixed, array);
                    TypeResolution::Same
                }
            };
            is_same &= from == Some(i) && element.is_same();
            reader_arrays.push(ArrayResolution { from, reader_bytes: array.element.bytes(), element });
        }
        for array in &found.trailing {
            let is_known = |known: &TrailingInfo| known.name == array.name || known.evolution.has_alias(&array.name);
            if !event.trailing.iter().any(is_known) {
                self.differences.allow(format_args!("{}.{} is only in the ring", event.name, array.name));
            }
        }
        let element_bytes = |array: &TrailingModel| (array.count, self.writer.bytes_of(&array.element));
        (!is_same).then(|| PayloadResolution {
            writer_bytes: writer.bytes,
            reader_bytes: reader.bytes,
            fixed,
            writer_arrays: found.trailing.iter().map(element_bytes).collect(),
            reader_arrays,
        })
    }

    /// Compares two arrays. The reader finds the number of elements in the field that holds it in the ring.
    fn arrays(
        &mut self,
        place: &str,
        reader: &StructInfo,
        fixed: &TypeResolution,
        from: &TrailingModel,
        array: &TrailingInfo,
    ) -> TypeResolution {
        if let TrailingCount::Field(path) = array.count {
            let is_same = match from.count {
                CountModel::At(offset, _) => fixed.source_of(count_at(reader, path).0) == Ok(offset),
                CountModel::Rest => false,
            };
            if !is_same {
                self.differences.forbid(format_args!(
                    "{place} is counted by {path} here, and in another way in the ring: give the new array another name"
                ));
            }
        }
        if self.writer.bytes_of(&from.element) == 0 {
            self.differences.forbid(format_args!("{place} has elements of 0 bytes in the ring: use matching versions"));
        }
        self.types(place, &from.element, &array.element)
    }

    /// Notes that the ring lacks an array. It is empty, so its count must be 0 in all rings without it.
    fn missing_array(&mut self, place: &str, reader: &StructInfo, fixed: &TypeResolution, array: &TrailingInfo) {
        if !self.is_dispensable(place, "is not in the ring", "#[event(default)]", &array.evolution) {
            return;
        }
        let TrailingCount::Field(path) = array.count else { return };
        let (offset, count) = count_at(reader, path);
        let default = fixed.source_of(offset).err().and_then(|default| default.get(..count.bytes()));
        if !default.is_some_and(|default| default.iter().all(|byte| *byte == 0)) {
            self.differences.forbid(format_args!(
                "{place} is not in the ring, and its count {path} is: give the array a count of its own with the default 0"
            ));
        }
    }
}
