//! The parts of a description for reading rings with another version of the schema: earlier names and default values.

/// The earlier names of a field, array, event or value of an enum, and the value of a field that a ring lacks.
///
/// [`ReaderOptions::compatible`](crate::reader::ReaderOptions::compatible) uses it. Schema text and hash say nothing of
/// it. So it does not count in comparisons: two descriptions are equal if their bytes have the same meaning.
#[derive(Clone, Copy, Debug)]
pub struct Evolution {
    /// The names that earlier versions of the schema gave it.
    pub aliases: &'static [&'static str],
    /// Encodes the value for rings without the field. An array that a ring lacks is empty, so for an array this
    /// function does nothing. `None` if a ring without the field is refused.
    pub default: Option<fn(&mut [u8])>,
}

impl Evolution {
    /// No earlier names and no default.
    pub const NONE: Self = Self { aliases: &[], default: None };

    /// Returns true if `name` is an earlier name.
    pub(in crate::schema) fn has_alias(&self, name: &str) -> bool {
        self.aliases.contains(&name)
    }
}

impl PartialEq for Evolution {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Evolution {}
