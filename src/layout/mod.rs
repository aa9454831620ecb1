//! The bytes of the format: constants, offsets and plain values. No I/O, no memory access.
//!
//! Everything is little endian. Offsets and sizes up to [`header::FIXED_BYTES`] are those of the published `RING01`
//! files; what lies behind them in the header section is eventring's [`extension`], which old readers never look at.
//! `docs/FORMAT.md` holds the same tables for people.

pub mod descriptor;
pub mod extension;
pub mod geometry;
pub mod header;
pub mod limits;
pub mod record_error;

pub use descriptor::Descriptor;
pub use geometry::{Geometry, GeometryError};
