//! Domains: groups of a schema's events. A program records the events of a domain or leaves them out.

/// The largest number of a domain. The recorder keeps one bit for each domain in a word.
pub(in crate::schema) const DOMAINS_MAX: u8 = u64::BITS as u8;

/// A domain of a schema. `#[derive(EventType)]` makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainInfo {
    /// The number of the domain, from 1 to 64.
    pub number: u8,
    /// The name of the domain (`orderbook`).
    pub name: &'static str,
}

impl DomainInfo {
    /// Returns the bit of the domain in a word of 64 domains.
    ///
    /// # Panics
    /// If the number is not from 1 to 64. The derive gives only such numbers.
    pub(crate) const fn bit(self) -> u64 {
        assert!(0 < self.number && self.number <= DOMAINS_MAX, "the number of a domain is from 1 to 64");
        1 << (self.number - 1)
    }
}

/// A domain of a [`SchemaModel`](crate::schema::SchemaModel).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainModel {
    number: u8,
    name: String,
}

impl DomainModel {
    pub(in crate::schema) fn new(number: u8, name: String) -> Self {
        Self { number, name }
    }

    /// Returns the number of the domain, from 1 to 64.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Returns the name of the domain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
