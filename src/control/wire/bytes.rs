//! The parts of a body: numbers, texts and arrays.

use super::fault::{TEXT_BYTES_MAX, WireFault};

/// A body that is being written.
pub(crate) struct Body {
    bytes: Vec<u8>,
}

impl Body {
    /// Begins a body after the bytes of a head.
    pub(super) fn after(head: &[u8]) -> Self {
        Self { bytes: head.to_vec() }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn array(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.array(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.array(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.array(&value.to_le_bytes());
    }

    /// Appends a text: its size in bytes, and its bytes. A text that is too long for a message is cut.
    pub(super) fn text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.u32(text.len() as u32);
        self.array(text.as_bytes());
    }
}

/// The parts of a body that were not taken yet.
pub(crate) struct BodyParts<'b> {
    rest: &'b [u8],
}

impl<'b> BodyParts<'b> {
    pub(super) fn new(rest: &'b [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn rest(self) -> &'b [u8] {
        self.rest
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireFault> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireFault::Short)?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireFault> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireFault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireFault> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a flag: 0 or 1.
    pub(super) fn flag(&mut self) -> Result<bool, WireFault> {
        match self.u16()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireFault::Value("a flag is neither 0 nor 1")),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, WireFault> {
        let bytes = self.u32()? as usize;
        if bytes > TEXT_BYTES_MAX {
            return Err(WireFault::Value("a text has more than 16,384 bytes"));
        }
        let (text, rest) = self.rest.split_at_checked(bytes).ok_or(WireFault::Short)?;
        self.rest = rest;
        let text = std::str::from_utf8(text).map_err(|_| WireFault::Value("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }
}
