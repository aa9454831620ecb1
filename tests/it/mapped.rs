//! Single bytes of mapped memory.

use std::ptr::NonNull;

/// Reads the byte at `offset` within a mapping that begins at `place`.
pub fn load(place: NonNull<u8>, offset: usize) -> u8 {
    // SAFETY: the tests pass places and offsets within a mapping.
    let place = unsafe { place.add(offset) };
    // SAFETY: as above.
    unsafe { place.read_volatile() }
}

/// Writes the byte at `offset` within a writable mapping that begins at `place`.
pub fn store(place: NonNull<u8>, offset: usize, byte: u8) {
    // SAFETY: all callers are tests, which pass a place and an offset within a writable mapping.
    let place = unsafe { place.add(offset) };
    // SAFETY: as above.
    unsafe { place.write_volatile(byte) };
}
