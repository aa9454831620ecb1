//! The encoding of values by their types.

use super::text_args::TextArgs;
use super::{Encoder, NONE};
use crate::schema::perf::{Cut, FIELD_HEADER_BYTES, TRUNCATION_BYTES, ValueType};
use crate::tracing::record::fields::args::LogArgs;
use crate::tracing::record::fields::values::FieldEncoder;
use std::error::Error;
use std::fmt::{self, Write as _};

impl<const N: usize> FieldEncoder for Encoder<'_, N> {
    #[inline(always)]
    fn i64(&mut self, index: usize, value: i64) {
        self.fixed(index, ValueType::I64, value.to_le_bytes());
    }

    #[inline(always)]
    fn u64(&mut self, index: usize, value: u64) {
        self.fixed(index, ValueType::U64, value.to_le_bytes());
    }

    fn i128(&mut self, index: usize, value: i128) {
        self.fixed(index, ValueType::I128, value.to_le_bytes());
    }

    fn u128(&mut self, index: usize, value: u128) {
        self.fixed(index, ValueType::U128, value.to_le_bytes());
    }

    #[inline(always)]
    fn f64(&mut self, index: usize, value: f64) {
        self.fixed(index, ValueType::F64, value.to_le_bytes());
    }

    #[inline(always)]
    fn bool(&mut self, index: usize, value: bool) {
        self.fixed(index, ValueType::Bool, [value.into()]);
    }

    #[inline]
    fn str(&mut self, index: usize, value: &str) {
        self.sized(index, ValueType::Str, value.as_bytes(), |end| value.floor_char_boundary(end));
    }

    fn bytes(&mut self, index: usize, value: &[u8]) {
        self.sized(index, ValueType::Bytes, value, |end| end);
    }

    fn error(&mut self, index: usize, value: &(dyn Error + 'static)) {
        self.formatted(index, ValueType::Error, self.limits.text_bytes_max, None, |text| {
            write!(text, "{value}")?;
            let mut source = value.source();
            while let Some(error) = source {
                write!(text, ": {error}")?;
                source = error.source();
            }
            Ok(())
        });
    }

    fn debug(&mut self, index: usize, value: &dyn fmt::Debug) {
        self.debug_text(index, value, self.limits.debug_bytes_max, None);
    }

    #[inline(always)]
    fn text(&mut self, index: usize, args: &impl LogArgs, _: &dyn fmt::Debug) {
        let Ok(index) = u8::try_from(index) else { return self.miss() };
        if !self.has_room_for(FIELD_HEADER_BYTES + TRUNCATION_BYTES) {
            return self.no_room();
        }
        let start = self.bytes.len();
        self.append(&[index, ValueType::Text as u8, 0, 0]);
        // If an argument panics, what was encoded until then stays.
        self.formatting = start;
        let mut sink = TextArgs::new(self);
        args.put_all(&mut sink);
        let TextArgs { has_overflowed, has_failed, .. } = sink;
        self.formatting = NONE;
        if has_overflowed {
            // The text is formatted as a whole, and cut if it is too long for the larger buffers.
            self.bytes.truncate(start);
            self.end = 0;
            return;
        }
        self.end_formatted(start, has_failed.then_some(Cut::Failed));
    }
}
