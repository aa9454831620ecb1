//! RECORD_ERROR, event code 1 of every schema. This event takes the place of an event that could not be recorded.

/// Event code of RECORD_ERROR in every schema.
pub const EVENT_TYPE: u16 = 1;
/// Size of the fixed part of a RECORD_ERROR payload in bytes.
pub const FIXED_BYTES: usize = 16;
/// Size, in bytes, of a RECORD_ERROR payload that carries the start of an oversized payload.
pub const TRUNCATED_EVENT_BYTES: usize = 8192;
/// Number of bytes that a RECORD_ERROR carries from the start of an oversized payload.
pub const TRUNCATED_PAYLOAD_BYTES: usize = TRUNCATED_EVENT_BYTES - FIXED_BYTES;

/// Reason why an event could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ErrorType {
    /// A payload whose rounded size does not fit 32 bits.
    Overflow4Gb = 1,
    /// A payload so large that it could expire before a reader has read it.
    OverflowExpire = 2,
    /// A reservation that was dropped without a commit. The published format has this code; its meaning here is
    /// eventring's own. An event that found no free payload memory does not get this code: its RECORD_ERROR has an
    /// empty payload, which holds no error type.
    MissingEvent = 3,
}

impl ErrorType {
    /// All reasons, by ascending number.
    pub(crate) const ALL: [Self; 3] = [Self::Overflow4Gb, Self::OverflowExpire, Self::MissingEvent];

    /// Returns the reason with this number, or `None` if there is none.
    #[must_use]
    pub fn of_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u16 == number)
    }

    /// Returns the name of the published system.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow4Gb => "OVERFLOW_4GB",
            Self::OverflowExpire => "OVERFLOW_EXPIRE",
            Self::MissingEvent => "MISSING_EVENT",
        }
    }
}

/// Returns the fixed 16 bytes of a RECORD_ERROR payload.
pub fn encode(
    error_type: ErrorType,
    dropped_event_type: u16,
    truncated_payload_bytes: u32,
    requested_payload_bytes: u64,
) -> [u8; FIXED_BYTES] {
    let mut bytes = [0; FIXED_BYTES];
    bytes[..2].copy_from_slice(&(error_type as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&dropped_event_type.to_le_bytes());
    bytes[4..8].copy_from_slice(&truncated_payload_bytes.to_le_bytes());
    bytes[8..].copy_from_slice(&requested_payload_bytes.to_le_bytes());
    bytes
}
