//! The content extension of perf events.

use super::event::PerfEvent;

/// Flags of a perf event. They are bits 0 to 15 of extension word 3.
pub mod flags {
    /// At least one value was cut; the fields say which.
    pub const TRUNCATED: u16 = 1 << 0;
    /// At least one field did not fit and is missing; [`PerfExt::missing_fields`](super::PerfExt) says how many.
    pub const FIELDS_MISSING: u16 = 1 << 1;
    /// The program asked for a root explicitly (`parent: None`).
    pub const EXPLICIT_ROOT: u16 = 1 << 2;
    /// The program named the parent explicitly (`parent: &span`).
    pub const EXPLICIT_PARENT: u16 = 1 << 3;
    /// The span was created before it could be recorded. The event's time is later than the creation of the span, and
    /// fields may be missing.
    pub const ADOPTED: u16 = 1 << 4;
    /// SPAN_NEW: the span is a scope, a span of one thread. Readers give it to the SPAN_EXIT of a scope, too.
    pub const SCOPE: u16 = 1 << 5;
    /// SPAN_NEW: the thread also enters the span, with this event.
    pub const ENTERED: u16 = 1 << 6;
    /// SPAN_EXIT: the span also closes, with this event.
    pub const CLOSED: u16 = 1 << 7;
    /// SPAN_EXIT of a scope: its guard was not dropped in time, so the scope ended with the span around it, or with its
    /// thread.
    pub const ENDED_WITH_PARENT: u16 = 1 << 8;
    /// THREAD_TIME: the kernel does not say how long the thread could have run. What is left of the period is the sum of
    /// that and of its sleep.
    pub const NO_QUEUE: u16 = 1 << 9;
}

/// The content of the four extension words of a perf event.
///
/// | word | bits | |
/// |---|---|---|
/// | 0 | 0–63 | span id, 0 for none |
/// | 1 | 0–63 | depends on the event: id of the parent or followed span, a counter's value, instructions; else 0 |
/// | 2 | 0–31 | call site id (for a span: of the call site that created it), 0 for none |
/// | 2 | 32–63 | thread id |
/// | 3 | 0–15 | [`flags`] |
/// | 3 | 16–31 | number of fields in the payload |
/// | 3 | 32–47 | number of fields that are missing because they did not fit |
/// | 3 | 48–55 | [`ValueType`](super::ValueType) of a counter's value; else 0 |
///
/// A span id is never used twice in the writing process. Call site ids and thread ids are never used twice within a
/// recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerfExt {
    /// The span that the event is about, or lies in; 0 for none.
    pub span_id: u64,
    /// A number with a meaning that depends on the event. SPAN_NEW: the span id of the parent, or 0 for a root.
    /// SPAN_FOLLOWS_FROM: the id of the followed span. COUNTER: the bits of the counter's value. SPAN_ENTER, SPAN_EXIT
    /// and EVENT: the number of instructions that the program has executed on this thread before the event, without
    /// those of the recorder; 0 if they are not counted. Otherwise 0.
    pub related: u64,
    /// The id of the call site, or 0 if there is none or it is not known. For an event about a span, this is the call
    /// site that created the span.
    pub call_site_id: u32,
    /// The thread that recorded the event.
    pub thread_id: u32,
    /// See [`flags`].
    pub flags: u16,
    /// Fields in the payload.
    pub field_count: u16,
    /// Fields that are missing because they did not fit.
    pub missing_fields: u16,
    /// COUNTER: code of the value's type.
    pub value_type: u8,
}

impl PerfExt {
    /// Describes an event about a span, by the span's id and the id of its call site. All other parts are 0.
    #[inline(always)]
    #[must_use]
    pub const fn of_span(span_id: u64, call_site_id: u32) -> Self {
        Self {
            span_id,
            related: 0,
            call_site_id,
            thread_id: 0,
            flags: 0,
            field_count: 0,
            missing_fields: 0,
            value_type: 0,
        }
    }

    /// Returns true if an event of this type, with these words, closes its span.
    #[inline(always)]
    #[must_use]
    pub const fn closes_span(&self, event: PerfEvent) -> bool {
        match event {
            PerfEvent::SpanClose => true,
            PerfEvent::SpanExit => self.flags & flags::CLOSED != 0,
            _ => false,
        }
    }

    /// Returns the words.
    #[inline(always)]
    #[must_use]
    pub const fn to_words(self) -> [u64; 4] {
        [
            self.span_id,
            self.related,
            self.call_site_id as u64 | (self.thread_id as u64) << 32,
            self.flags as u64
                | (self.field_count as u64) << 16
                | (self.missing_fields as u64) << 32
                | (self.value_type as u64) << 48,
        ]
    }

    /// Decodes the words. Every bit pattern has a meaning. Bits 56 to 63 of word 3 are reserved and ignored.
    #[inline(always)]
    #[must_use]
    pub const fn from_words(words: [u64; 4]) -> Self {
        Self {
            span_id: words[0],
            related: words[1],
            call_site_id: words[2] as u32,
            thread_id: (words[2] >> 32) as u32,
            flags: words[3] as u16,
            field_count: (words[3] >> 16) as u16,
            missing_fields: (words[3] >> 32) as u16,
            value_type: (words[3] >> 48) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_as_documented_and_come_back() {
        let ext = PerfExt {
            span_id: 1,
            related: 2,
            call_site_id: 0x0304_0506,
            thread_id: 0x0708_090a,
            flags: 0x0b0c,
            field_count: 0x0d0e,
            missing_fields: 0x0f10,
            value_type: 0x11,
        };
        assert_eq!(ext.to_words(), [1, 2, 0x0708_090a_0304_0506, 0x0011_0f10_0d0e_0b0c]);
        assert_eq!(PerfExt::from_words(ext.to_words()), ext);
    }
}
