//! The limits of a list of directives.

/// Largest length of a list of directives, in bytes.
pub(in crate::tracing) const TEXT_BYTES_MAX: usize = 16 << 10;
/// Largest number of directives of a list.
pub(super) const DIRECTIVES_MAX: usize = 256;
/// Largest number of fields of a directive.
pub(super) const CONDITIONS_MAX: usize = 16;
