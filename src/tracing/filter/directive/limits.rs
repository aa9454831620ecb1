//! The levels, and the limits of a list of directives.

use tracing_core::LevelFilter;

/// All levels, the most important first.
pub(in crate::tracing) const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

/// Largest length of a list of directives, in bytes.
pub(in crate::tracing) const TEXT_BYTES_MAX: usize = 16 << 10;
/// Largest number of directives of a list.
pub(super) const DIRECTIVES_MAX: usize = 256;
/// Largest number of fields of a directive.
pub(super) const CONDITIONS_MAX: usize = 16;
