//! Encoding and decoding numbers and texts, little endian.

/// A decoder of untrusted bytes. Its methods return `None` if too few bytes are left.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn hash(&mut self) -> Option<[u8; 32]> {
        self.array()
    }

    /// Takes a text that follows its length. Bytes that are not UTF-8, and control characters except line feeds, are
    /// replaced by U+FFFD.
    pub(crate) fn text(&mut self) -> Option<String> {
        self.text_without(|c| c.is_control() && c != '\n')
    }

    /// Takes a name that follows its length: a text of one line. A line feed is replaced, too.
    pub(crate) fn name(&mut self) -> Option<String> {
        self.text_without(char::is_control)
    }

    fn text_without(&mut self, is_bad: impl Fn(char) -> bool) -> Option<String> {
        let bytes = self.u32()?;
        let text = String::from_utf8_lossy(self.take(bytes as usize)?);
        Some(text.chars().map(|c| if is_bad(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
    }
}

pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

/// Appends the length of a text, and then the text. A text longer than 16 MiB is cut.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min(16 << 20)];
    put_u32(out, bytes.len() as u32);
    out.extend(bytes);
}
