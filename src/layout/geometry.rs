//! The sizes of one ring. They are checked once; all code that indexes a ring uses the checked values.

use super::limits::{
    DEFAULT_CHUNK_BYTES, DESCRIPTOR_BYTES, HEADER_SECTION_BYTES, MAX_CHUNKS, MAX_CONTEXT_SHIFT, MAX_RUN_BYTES,
    MIN_CHUNK_BYTES, MIN_CHUNKS, MIN_PAYLOAD_BUF_BYTES, MIN_RUNS, PAYLOAD_SHIFTS, SMALL_WINDOW_STEPS, WINDOW_INCR,
};
use core::fmt;

/// Sizes of a ring: powers of two within limits. [`Self::new`] checks them, so every value of this type is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    descriptor_capacity: u64,
    payload_buf_bytes: u64,
    context_area_bytes: u64,
}

impl Geometry {
    /// Checks three sizes: `descriptor_capacity` descriptors, `payload_buf_bytes` bytes of payload buffer, and
    /// `context_area_bytes` bytes of context area. The last is 0 if the ring has no context area.
    ///
    /// This check is meant for sizes that were read from a file. It accepts every power of two with which no
    /// computation overflows: a capacity from 2 to 2^32, and a payload buffer from 2^12 to 2^40 bytes. The limits for
    /// *new* rings are narrower, see [`super::limits`].
    ///
    /// # Errors
    /// Fails if a size is not a power of two, or not within the limits. The error names the size.
    pub const fn new(
        descriptor_capacity: u64,
        payload_buf_bytes: u64,
        context_area_bytes: u64,
    ) -> Result<Self, GeometryError> {
        if !descriptor_capacity.is_power_of_two() || descriptor_capacity < 2 || descriptor_capacity > 1 << 32 {
            return Err(GeometryError {
                field: "descriptor_capacity",
                found: descriptor_capacity,
                least: 2,
                most: 1 << 32,
            });
        }
        if !payload_buf_bytes.is_power_of_two()
            || payload_buf_bytes < MIN_PAYLOAD_BUF_BYTES
            || payload_buf_bytes > 1 << 40
        {
            return Err(GeometryError {
                field: "payload_buf_size",
                found: payload_buf_bytes,
                least: MIN_PAYLOAD_BUF_BYTES,
                most: 1 << 40,
            });
        }
        if context_area_bytes != 0
            && (!context_area_bytes.is_power_of_two() || context_area_bytes > 1 << MAX_CONTEXT_SHIFT)
        {
            return Err(GeometryError {
                field: "context_area_size",
                found: context_area_bytes,
                least: 0,
                most: 1 << MAX_CONTEXT_SHIFT,
            });
        }
        Ok(Self { descriptor_capacity, payload_buf_bytes, context_area_bytes })
    }

    /// Returns the number of descriptors, a power of two.
    #[inline]
    pub const fn descriptor_capacity(&self) -> u64 {
        self.descriptor_capacity
    }

    /// Returns the size of the payload buffer in bytes, a power of two.
    #[inline]
    pub const fn payload_buf_bytes(&self) -> u64 {
        self.payload_buf_bytes
    }

    /// Returns the size of the context area in bytes, 0 or a power of two.
    #[inline]
    pub const fn context_area_bytes(&self) -> u64 {
        self.context_area_bytes
    }

    /// Returns the size of the descriptor section in bytes.
    #[inline]
    pub const fn descriptor_section_bytes(&self) -> u64 {
        self.descriptor_capacity * DESCRIPTOR_BYTES
    }

    /// Returns the size of the whole file in bytes: header section, descriptors, payload buffer and context area.
    #[inline]
    pub const fn file_bytes(&self) -> u64 {
        HEADER_SECTION_BYTES + self.descriptor_section_bytes() + self.payload_buf_bytes + self.context_area_bytes
    }

    /// Returns the index of the slot of `seqno`, which must be at least 1.
    #[inline]
    pub const fn slot(&self, seqno: u64) -> u64 {
        seqno.wrapping_sub(1) & (self.descriptor_capacity - 1)
    }

    /// Returns the step in which the start of the buffer window moves, in bytes. The step is the published 2^24. If
    /// the buffer is smaller than the published minimum, the step is a 32nd of the buffer.
    #[inline]
    pub const fn window_incr_bytes(&self) -> u64 {
        if self.payload_buf_bytes < 1 << *PAYLOAD_SHIFTS.start() {
            self.payload_buf_bytes / SMALL_WINDOW_STEPS
        } else {
            WINDOW_INCR
        }
    }

    /// Returns the size of one payload chunk in bytes. It is 64 KiB in buffers of 1 GiB to 4 GiB, which have 16,384 to
    /// 65,536 chunks. In smaller buffers the chunks are smaller (but at least 256 bytes), in larger buffers they are
    /// larger.
    #[inline]
    pub const fn chunk_bytes(&self) -> u64 {
        let share = self.payload_buf_bytes / MIN_CHUNKS;
        let least = self.payload_buf_bytes / MAX_CHUNKS;
        if least > DEFAULT_CHUNK_BYTES {
            least
        } else if share > DEFAULT_CHUNK_BYTES {
            DEFAULT_CHUNK_BYTES
        } else if share < MIN_CHUNK_BYTES {
            MIN_CHUNK_BYTES
        } else {
            share
        }
    }

    /// Returns the upper bound, in bytes, of a run (neighbouring chunks that a thread takes together) for small
    /// payloads. It is 1 MiB or a 256th of the buffer, whichever is less, but at least one chunk.
    #[inline]
    pub const fn run_bytes_max(&self) -> u64 {
        let share = self.payload_buf_bytes / MIN_RUNS;
        let run = if share < MAX_RUN_BYTES { share } else { MAX_RUN_BYTES };
        let chunk = self.chunk_bytes();
        if run < chunk { chunk } else { run }
    }

    /// Returns the number of payload chunks.
    #[inline]
    pub const fn chunk_count(&self) -> u64 {
        self.payload_buf_bytes / self.chunk_bytes()
    }

    /// Returns the smallest payload size, in bytes, that cannot be recorded. To compare a payload's size with it,
    /// first round the size up to the alignment. Events with payloads of this size or more become RECORD_ERROR with
    /// [`super::record_error::ErrorType::OverflowExpire`].
    #[inline]
    pub const fn overflow_expire_bytes(&self) -> u64 {
        self.payload_buf_bytes - 2 * self.window_incr_bytes()
    }
}

/// A size in a header or a configuration that no ring can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError {
    field: &'static str,
    found: u64,
    least: u64,
    most: u64,
}

impl GeometryError {
    /// Returns the name of the header field that holds the size, as in `docs/FORMAT.md`.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the value that was found.
    pub const fn found(&self) -> u64 {
        self.found
    }
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, expected a power of two from {} to {}", self.field, self.found, self.least, self.most)
    }
}

impl std::error::Error for GeometryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_have_the_published_window() {
        let g = Geometry::new(1 << 16, 1 << 27, 0).unwrap();
        assert_eq!(g.window_incr_bytes(), 1 << 24);
        assert_eq!((g.chunk_bytes(), g.run_bytes_max()), (8 << 10, 512 << 10));
        assert_eq!(g.file_bytes(), 140_509_184);
        assert_eq!(g.slot(1), 0);
        assert_eq!(g.slot((1 << 16) + 1), 0);
    }

    #[test]
    fn sizes_that_are_not_powers_of_two_or_could_overflow_are_refused() {
        for (c, p, x) in
            [(0, 1 << 27, 0), (3, 1 << 27, 0), (1 << 33, 1 << 27, 0), (1 << 16, 0, 0), (1 << 16, u64::MAX, 0)]
        {
            assert!(Geometry::new(c, p, x).is_err(), "{c} {p} {x}");
        }
        assert_eq!(Geometry::new(1 << 16, 1 << 27, 5).unwrap_err().field(), "context_area_size");
    }
}
