//! The hashes of names and values. Files contain these hashes, so the hash functions never change.

use twox_hash::XxHash3_64;

/// The key of a name: of a field, or of what else conditions name. A field of a struct has the path with dots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NameKey(u64);

/// What conditions name besides fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NameKind {
    /// The name of a span, with its target and without.
    Span = 1,
    /// The name of a typed event, log record or mark.
    Event = 2,
    /// The target of a span or log record.
    Target = 3,
    /// The name of a thread.
    Thread = 4,
}

impl NameKey {
    /// The key of the empty path.
    pub(crate) const ROOT: Self = Self(0);

    /// Returns the key of a field.
    #[must_use]
    pub fn field(path: &str) -> Self {
        path.split('.').fold(Self::ROOT, Self::part)
    }

    /// Returns the key of a field of this struct.
    pub(crate) fn part(self, name: &str) -> Self {
        Self(XxHash3_64::oneshot_with_seed(self.0, name.as_bytes()))
    }

    /// Returns the key of names of this kind.
    #[must_use]
    pub fn of_kind(kind: NameKind) -> Self {
        Self(XxHash3_64::oneshot_with_seed(kind as u64, b"kind"))
    }

    /// Returns the part that stands in files.
    pub(crate) fn short(self) -> u32 {
        self.0 as u32
    }

    /// Returns the key of a number of this name. An integer of more than 53 bits has the key of its neighbours.
    #[must_use]
    pub fn number(self, number: f64) -> u64 {
        // 0.0 and -0.0 are equal.
        let number = if number == 0.0 { 0.0 } else { number };
        self.value(1, &number.to_bits().to_le_bytes())
    }

    /// Returns the key of a text of this name.
    #[must_use]
    pub fn text(self, text: &str) -> u64 {
        self.value(2, text.as_bytes())
    }

    /// Returns the key of a truth value of this name.
    #[must_use]
    pub fn truth(self, value: bool) -> u64 {
        self.value(3, &[value.into()])
    }

    fn value(self, kind: u64, bytes: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.0.wrapping_add(kind), bytes)
    }
}
