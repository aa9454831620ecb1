//! The parts of a span's id.

/// Number of bits of an id that hold the index of the cell. So nearly 2^24 spans can be open at the same time, and
/// their cells take 256 MiB.
pub(super) const INDEX_BITS: u32 = 24;
pub(super) const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// Bits of an id.
pub(super) const ID_BITS: u32 = 52;
/// Bit of an id: the span belongs to a layer.
pub(super) const LAYER_BIT: u64 = 1 << ID_BITS;
/// Bit of the id in a cell: the span is closed. No id has this bit.
pub(super) const CLOSED: u64 = 1 << 63;
/// Bits of an id that hold the generation.
pub(super) const GENERATION_MASK: u64 = (LAYER_BIT - 1) & !INDEX_MASK;
/// The last generation of a cell, after 2^28 spans. A thread that does nothing but make spans reaches it in about
/// half a minute.
pub(super) const GENERATION_MAX: u64 = if cfg!(test) { 1000 } else { (1 << (ID_BITS - INDEX_BITS)) - 1 };
/// The largest id whose generation is not the last one. The generation of this id is `GENERATION_MAX - 1`, and its
/// index is the largest index, `NO_CELL - 1`. The code compares ids with this constant and not with the smallest id of
/// the last generation, because this saves an instruction.
pub(super) const BELOW_LAST_IDS: u64 = (GENERATION_MAX << INDEX_BITS) - 2;
/// Index that means no cell.
pub(super) const NO_CELL: u64 = INDEX_MASK;
