//! The arrays that follow the fixed struct of a payload.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use super::field::PayloadField;
use super::utf8::Utf8;
use crate::schema::description::describe::{FieldType, Scalar, StructInfo, field_at};
use crate::schema::error::DecodeError;

/// A trailing array of a payload. An element is decoded only when the caller asks for it.
///
/// The derive of [`EventType`](crate::schema::EventType) makes views of events. A view has one field of this type for each
/// trailing array of its event.
pub struct ArrayView<'a, T> {
    bytes: &'a [u8],
    element: PhantomData<fn() -> T>,
}

// These traits are implemented by hand. A derive would require `T` to have the same traits.
impl<T> Clone for ArrayView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ArrayView<'_, T> {}

impl<T> PartialEq for ArrayView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for ArrayView<'_, T> {}

impl<T: PayloadField + fmt::Debug> fmt::Debug for ArrayView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> ArrayView<'a, Utf8> {
    /// Returns the text. Invalid UTF-8 is replaced.
    #[must_use]
    pub fn to_text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

impl<'a, T: PayloadField> ArrayView<'a, T> {
    /// Returns the number of elements, or 0 if an element has 0 bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(T::WIRE_BYTES).unwrap_or(0)
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all elements.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the element at `index`. Returns `None` if the array has no such element.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Result<T, DecodeError>> {
        let start = index.checked_mul(T::WIRE_BYTES)?;
        let bytes = self.bytes.get(start..)?.get(..T::WIRE_BYTES)?;
        (index < self.len()).then(|| T::decode_field(bytes))
    }

    /// Decodes the elements, one after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<T, DecodeError>> + use<'a, T> {
        // If an element has 0 bytes, there are no bytes, and the iterator is empty. `max(1)` is needed because a chunk
        // size of 0 would panic.
        self.bytes.chunks_exact(T::WIRE_BYTES.max(1)).map(T::decode_field)
    }

    /// Decodes all elements.
    ///
    /// # Errors
    /// Returns an error if an element cannot be decoded.
    pub fn to_vec(&self) -> Result<Vec<T>, DecodeError> {
        self.iter().collect()
    }
}

/// Splits an array of `count` elements off the beginning of `bytes`. Returns the array and the bytes after it.
///
/// Returns an error if there are too few bytes. `owner` and `field` name the event and the array in this error.
pub(in crate::schema) fn split_array<'a, T: PayloadField>(
    owner: &'static str,
    field: &'static str,
    bytes: &'a [u8],
    count: u64,
) -> Result<(ArrayView<'a, T>, &'a [u8]), DecodeError> {
    let (array, rest) = split_bytes(owner, field, bytes, count.saturating_mul(T::WIRE_BYTES as u64))?;
    Ok((ArrayView { bytes: array, element: PhantomData }, rest))
}

/// Splits an array off `rest`, the rest of the payload. The number of elements is in the fixed struct, at the place
/// that [`count_at`] returns. The derives call this.
pub fn split_counted<'a, T: PayloadField>(
    owner: &'static str,
    field: &'static str,
    rest: &'a [u8],
    fixed: &[u8],
    (offset, scalar): (usize, Scalar),
) -> Result<(ArrayView<'a, T>, &'a [u8]), DecodeError> {
    split_array(owner, field, rest, read_count(fixed, offset, scalar))
}

/// Splits the last array off `rest`, the rest of the payload. The array takes all whole elements there. The derives
/// call this.
pub fn split_rest<'a, T: PayloadField>(
    owner: &'static str,
    field: &'static str,
    rest: &'a [u8],
) -> Result<(ArrayView<'a, T>, &'a [u8]), DecodeError> {
    split_array(owner, field, rest, (rest.len() / T::WIRE_BYTES.max(1)) as u64)
}

/// Returns the offset and type of the field at `path`, which holds the number of elements of a trailing array. The
/// derives have already checked that the field can hold this number.
#[must_use]
pub const fn count_at(info: &StructInfo, path: &str) -> (usize, Scalar) {
    match field_at(info, path) {
        Some((offset, field)) => match field.ty {
            FieldType::Scalar(scalar) => (offset, scalar),
            _ => (offset, Scalar::U8),
        },
        None => (0, Scalar::U8),
    }
}

/// Reads the number of elements of a trailing array from the fixed struct. The caller has checked that the field at
/// `offset` lies within the struct.
pub(in crate::schema) fn read_count(fixed: &[u8], offset: usize, scalar: Scalar) -> u64 {
    let Some(bytes) = fixed.get(offset..offset + scalar.bytes()) else { return 0 };
    bytes.iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte))
}

/// Splits `count` bytes off the beginning of `bytes`. Returns them and the bytes after them. `owner` and `field` name
/// the event and the array in the error for too few bytes.
pub(crate) fn split_bytes<'a>(
    owner: &'static str,
    field: &'static str,
    bytes: &'a [u8],
    count: u64,
) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    bytes
        .split_at_checked(wanted)
        .ok_or_else(|| DecodeError::too_short(owner, bytes.len(), wanted).inside(owner, field))
}

/// Checks that nothing follows the last array.
///
/// # Errors
/// Returns an error if bytes are left over.
pub fn expect_end(owner: &'static str, rest: &[u8]) -> Result<(), DecodeError> {
    if rest.is_empty() { Ok(()) } else { Err(DecodeError::left_over(owner, rest.len())) }
}

/// Encodes a slice of elements, to record it as a trailing array.
///
/// A slice of bytes needs no encoding; record it as it is. For a slice such as `[[u8; 32]]`, `as_flattened` returns a
/// slice of bytes.
#[must_use]
pub fn encode_array<T: PayloadField>(elements: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; elements.len() * T::WIRE_BYTES];
    for (i, element) in elements.iter().enumerate() {
        element.encode_field(&mut bytes[i * T::WIRE_BYTES..(i + 1) * T::WIRE_BYTES]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::error::DecodeErrorKind;

    #[test]
    fn an_array_that_claims_more_than_there_is_is_an_error() {
        for count in [3, u64::MAX, u64::MAX / 8 + 1] {
            let error = split_array::<u64>("EVENT", "items", &[0; 23], count).unwrap_err();
            assert_eq!(error.kind(), DecodeErrorKind::TooShort);
            assert_eq!((error.owner(), error.field()), ("EVENT", "items"));
        }
    }

    #[test]
    fn elements_come_back_one_by_one_and_all_together() {
        let bytes = encode_array(&[[1u16, 2], [3, 4], [5, 6]]);
        let (view, rest) = split_array::<[u16; 2]>("EVENT", "pairs", &bytes, 3).unwrap();
        assert!(rest.is_empty());
        assert_eq!((view.len(), view.iter().len()), (3, 3));
        assert_eq!(view.get(1).unwrap().unwrap(), [3, 4]);
        assert!(view.get(3).is_none() && view.get(usize::MAX).is_none());
        assert_eq!(view.to_vec().unwrap(), [[1, 2], [3, 4], [5, 6]]);
    }

    #[test]
    fn an_element_that_is_no_bool_is_an_error_of_that_element_only() {
        let (view, _) = split_array::<bool>("EVENT", "flags", &[1, 7, 0], 3).unwrap();
        assert_eq!(view.iter().map(|flag| flag.ok()).collect::<Vec<_>>(), [Some(true), None, Some(false)]);
        assert!(view.to_vec().is_err());
    }
}
