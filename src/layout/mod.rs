//! The bytes of the format: constants, offsets and plain values. This module does no I/O and accesses no memory.
//!
//! All values are little endian. The first [`header::FIXED_BYTES`] bytes of a file follow the published `RING01`
//! format. The rest of the header section is eventring's [`extension`], which other programs ignore. `docs/FORMAT.md`
//! has the tables, too.

pub mod descriptor;
pub mod extension;
pub mod fit;
pub mod geometry;
pub mod header;
pub mod limits;
pub mod now;
pub mod record_error;
pub mod start_table;

pub use descriptor::Descriptor;
pub use geometry::{Geometry, GeometryError};
