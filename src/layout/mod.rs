//! The bytes of the format: constants, offsets and plain values. No I/O, no memory access.
//!
//! Everything is little endian. Offsets and sizes up to [`header::FIXED_BYTES`] are those of the published `RING01`
//! files. The rest of the header section is eventring's [`extension`], which other readers ignore. `docs/FORMAT.md` has
//! the same tables for people.

pub mod descriptor;
pub mod extension;
pub mod geometry;
pub mod header;
pub mod limits;
pub mod record_error;

pub use descriptor::Descriptor;
pub use geometry::{Geometry, GeometryError};
