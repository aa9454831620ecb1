//! The payload of RECORD_ERROR, which is event 1 of every schema.

use std::fmt;

use super::description::describe::{EventInfo, FieldInfo, FieldType, StructInfo, TrailingCount, TrailingInfo};
use super::description::evolution::Evolution;
use super::error::DecodeError;
use super::fields::field::PayloadField;
use super::fields::trailing::{expect_end, split_bytes};
use super::payload::EventPayload;
use crate::layout;
use crate::layout::record_error::ErrorType;

/// The event code of RECORD_ERROR.
pub const RECORD_ERROR_CODE: u16 = layout::record_error::EVENT_TYPE;

const BYTES: usize = layout::record_error::FIXED_BYTES;

/// The fixed struct of RECORD_ERROR, of 16 bytes. A RECORD_ERROR stands in the ring in place of an event that could
/// not be recorded. The beginning of that event's payload follows the struct.
///
/// If the ring has no payload memory left, the RECORD_ERROR has a payload of 0 bytes, and does not say which event is
/// missing. [`RecordErrorView`] decodes both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The number of the reason; see [`reason`](Self::reason).
    pub error_type: u16,
    /// The code of the event that was not recorded.
    pub dropped_event_type: u16,
    /// The number of bytes of the original payload that follow.
    pub truncated_payload_size: u32,
    /// The number of bytes of the original payload.
    pub requested_payload_size: u64,
}

impl RecordError {
    /// Returns the reason. Returns `None` if the number is unknown.
    #[must_use]
    pub fn reason(&self) -> Option<ErrorType> {
        ErrorType::of_number(self.error_type)
    }
}

/// Returns the description of a field of [`STRUCT`].
const fn field(name: &'static str, ty: FieldType, offset: usize, description: &'static str) -> FieldInfo {
    FieldInfo { name, ty, offset, bytes: ty.bytes(), redacted: false, evolution: Evolution::NONE, description }
}

/// The description of the fixed struct. It is written by hand, because it must also exist without the derives of the
/// feature `macros`.
const STRUCT: StructInfo = StructInfo {
    name: "RecordError",
    bytes: BYTES,
    align: 8,
    fields: &[
        field(
            "error_type",
            u16::TYPE,
            0,
            "1 payload over 4 GiB, 2 payload over the ring's buffer, 3 reserved and not committed",
        ),
        field("dropped_event_type", u16::TYPE, 2, "Code of the event that was not recorded"),
        field("truncated_payload_size", u32::TYPE, 4, "Bytes of the original payload that follow"),
        field("requested_payload_size", u64::TYPE, 8, "Bytes of the original payload"),
    ],
    description: "Stands in place of an event that could not be recorded",
};

/// The description of RECORD_ERROR in every schema.
pub const RECORD_ERROR_EVENT: EventInfo = EventInfo {
    code: RECORD_ERROR_CODE,
    name: "RECORD_ERROR",
    domain: None,
    payload: Some(&STRUCT),
    trailing: &[TrailingInfo {
        name: "truncated_payload",
        element: u8::TYPE,
        count: TrailingCount::Field("truncated_payload_size"),
        evolution: Evolution::NONE,
    }],
    evolution: Evolution::NONE,
    description: "An event that could not be recorded",
};

impl PayloadField for RecordError {
    const WIRE_BYTES: usize = BYTES;
    const WIRE_ALIGN: usize = 8;
    const TYPE: FieldType = FieldType::Struct(&STRUCT);
    const ZERO_IS_VALID: bool = true;

    #[inline]
    fn encode_field(&self, out: &mut [u8]) {
        self.error_type.encode_field(&mut out[0..2]);
        self.dropped_event_type.encode_field(&mut out[2..4]);
        self.truncated_payload_size.encode_field(&mut out[4..8]);
        self.requested_payload_size.encode_field(&mut out[8..16]);
    }

    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() != BYTES {
            return Err(DecodeError::too_short("RecordError", bytes.len(), BYTES));
        }
        Ok(Self {
            error_type: u16::decode_field(&bytes[0..2])?,
            dropped_event_type: u16::decode_field(&bytes[2..4])?,
            truncated_payload_size: u32::decode_field(&bytes[4..8])?,
            requested_payload_size: u64::decode_field(&bytes[8..16])?,
        })
    }
}

impl EventPayload for RecordError {
    const STRUCT: &'static StructInfo = &STRUCT;

    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = [0; BYTES];
        self.encode_field(&mut bytes);
        f(&bytes)
    }
}

/// The whole payload of a RECORD_ERROR event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordErrorView<'a> {
    /// The fixed struct. `None` if the payload is empty, because stalled writers held all payload memory and not even
    /// the fixed struct could be recorded.
    pub error: Option<RecordError>,
    /// The beginning of the payload of the event that could not be recorded.
    pub truncated_payload: &'a [u8],
}

impl<'a> RecordErrorView<'a> {
    /// Decodes a payload. An empty payload is valid: `error` is then `None`.
    ///
    /// # Errors
    /// Returns an error if the length of the payload is neither 0 nor the length that the payload states.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "RECORD_ERROR";
        if payload.is_empty() {
            return Ok(Self { error: None, truncated_payload: &[] });
        }
        let (error, rest) = RecordError::decode(payload)?;
        let (truncated_payload, rest) =
            split_bytes(OWNER, "truncated_payload", rest, error.truncated_payload_size.into())?;
        expect_end(OWNER, rest)?;
        Ok(Self { error: Some(error), truncated_payload })
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error_type, dropped_event_type, truncated_payload_size, requested_payload_size } = self;
        write!(
            f,
            "event type {dropped_event_type} with a payload of {requested_payload_size} bytes was not recorded: "
        )?;
        match self.reason() {
            Some(ErrorType::Overflow4Gb) => f.write_str("it exceeds 4 GiB")?,
            Some(ErrorType::OverflowExpire) => f.write_str("it exceeds what the ring's payload buffer can keep")?,
            Some(ErrorType::MissingEvent) => f.write_str("it was reserved and not committed")?,
            None => write!(f, "error {error_type}")?,
        }
        write!(f, "; its first {truncated_payload_size} bytes follow")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_layout_encodes_is_what_the_schema_decodes() {
        let mut payload = layout::record_error::encode(ErrorType::OverflowExpire, 18, 3, 1 << 40).to_vec();
        payload.extend([7, 8, 9]);
        let view = RecordErrorView::decode(&payload).unwrap();
        assert_eq!(view.truncated_payload, [7, 8, 9]);
        let error = view.error.unwrap();
        assert_eq!(error.with_bytes(<[u8]>::to_vec), payload[..16]);
        assert_eq!(
            error.to_string(),
            "event type 18 with a payload of 1099511627776 bytes was not recorded: \
             it exceeds what the ring's payload buffer can keep; its first 3 bytes follow"
        );
        assert!(RecordErrorView::decode(&payload[..18]).is_err());
        payload.push(0);
        assert!(RecordErrorView::decode(&payload).is_err());
        assert_eq!(RecordErrorView::decode(&[]).unwrap().error, None);
    }
}
