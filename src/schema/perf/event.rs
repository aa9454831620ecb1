//! The events of the PERF schema.

use super::allocated::Allocated;
use super::call_site::CallSiteHeader;
use super::thread::ThreadHeader;
use super::thread_time::ThreadTime;
use crate::schema::fields::utf8::Utf8;
use crate::schema::payload::EventType;

/// The events of content type PERF.
///
/// The documentation of each event lists what the extension words of its descriptor hold, besides the thread.
/// [`PerfExt`](super::PerfExt) decodes these words.
// Another event changes the schema's hash, so an eventring of another version leaves out rings that are recorded with it.
// `docs/ARCHITECTURE.md` says what else belongs to an event.
#[derive(EventType, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[event(content_type = 3, own_schema, name = "PERF", no_span, no_views)]
#[repr(u16)]
pub enum PerfEvent {
    /// An event that could not be recorded.
    ///
    /// The descriptor has the `content_ext` of the event that could not be recorded.
    RecordError = 1,
    /// A thread records for the first time.
    #[event(payload = ThreadHeader, trailing(name: Utf8 * name_bytes))]
    ThreadStarted = 2,
    /// A thread that has recorded ends.
    ///
    /// Events that destructors of thread-locals record may follow.
    ThreadEnded = 3,
    /// A call site is met for the first time.
    ///
    /// Descriptor: call site.
    #[event(
        payload = CallSiteHeader,
        trailing(
            name: Utf8 * name_bytes,
            target: Utf8 * target_bytes,
            module: Utf8 * module_bytes,
            file: Utf8 * file_bytes,
            field_names: Utf8 * field_names_bytes
        )
    )]
    CallSite = 4,
    /// A span is created.
    ///
    /// Descriptor: span, parent, call site, counts of recorded and missing fields, flags.
    #[event(trailing(fields: u8))]
    SpanNew = 5,
    /// Further fields of a span.
    ///
    /// Descriptor: span, call site, counts of recorded and missing fields, flags.
    #[event(trailing(fields: u8))]
    SpanRecord = 6,
    /// The thread enters a span.
    ///
    /// Descriptor: span, call site.
    SpanEnter = 7,
    /// The thread exits a span.
    ///
    /// Descriptor: span, call site.
    SpanExit = 8,
    /// The last handle of a span is gone.
    ///
    /// Descriptor: span, call site.
    SpanClose = 9,
    /// A span follows from another.
    ///
    /// Descriptor: span, the span it follows, call site.
    SpanFollowsFrom = 10,
    /// A log record.
    ///
    /// Descriptor: the span in which it was recorded (0 for none), call site, counts of recorded and missing fields,
    /// flags.
    #[event(trailing(fields: u8))]
    Event = 11,
    /// A sample of a counter.
    ///
    /// Descriptor: current span, the bits of the value, call site, the type of the value.
    Counter = 12,
    /// A mark in time, with a text that may be empty.
    ///
    /// Descriptor: current span, call site.
    #[event(trailing(text: Utf8))]
    Marker = 13,
    /// The thread has left its processor since its last event. The next THREAD_TIME of the thread says for how long.
    ///
    /// Descriptor: the span that the thread is in.
    ThreadSwitched = 14,
    /// What the thread did since its last THREAD_TIME: how long it ran, and how long it could have run.
    ///
    /// Descriptor: the span that the thread is in, flags.
    #[event(payload = ThreadTime)]
    ThreadTime = 15,
    /// What the thread has allocated and freed since its last ALLOCATED, or since it first recorded.
    ///
    /// Descriptor: the span that the thread is in.
    #[event(payload = Allocated)]
    Allocated = 16,
}

impl PerfEvent {
    /// Returns true if the event says something by itself, and not of a span: a log record or a mark.
    #[inline]
    #[must_use]
    pub const fn is_happening(self) -> bool {
        matches!(self, Self::Event | Self::Marker)
    }

    /// Returns true if the payload has values: fields, a text, or the value of a counter.
    #[inline]
    #[must_use]
    pub const fn has_values(self) -> bool {
        match self {
            Self::SpanNew | Self::SpanRecord | Self::Event | Self::Counter | Self::Marker => true,
            Self::RecordError
            | Self::ThreadStarted
            | Self::ThreadEnded
            | Self::CallSite
            | Self::SpanEnter
            | Self::SpanExit
            | Self::SpanClose
            | Self::SpanFollowsFrom
            | Self::ThreadSwitched
            | Self::ThreadTime
            | Self::Allocated => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::description::describe::StructInfo;
    use crate::schema::fields::field::PayloadField;
    use crate::schema::payload::EventPayload;

    #[test]
    fn codes_and_layouts_are_those_of_the_format_document() {
        let lines: Vec<&str> = PerfEvent::schema().text().lines().filter(|line| line.starts_with("event ")).collect();
        assert_eq!(
            lines,
            [
                "event 1 RECORD_ERROR RecordError",
                "event 2 THREAD_STARTED Thread",
                "event 3 THREAD_ENDED",
                "event 4 CALL_SITE CallSite",
                "event 5 SPAN_NEW",
                "event 6 SPAN_RECORD",
                "event 7 SPAN_ENTER",
                "event 8 SPAN_EXIT",
                "event 9 SPAN_CLOSE",
                "event 10 SPAN_FOLLOWS_FROM",
                "event 11 EVENT",
                "event 12 COUNTER",
                "event 13 MARKER",
                "event 14 THREAD_SWITCHED",
                "event 15 THREAD_TIME ThreadTime",
                "event 16 ALLOCATED Allocated",
            ]
        );
        let offsets = |info: &StructInfo| info.fields.iter().map(|field| field.offset).collect::<Vec<_>>();
        assert_eq!((offsets(ThreadHeader::STRUCT), ThreadHeader::WIRE_BYTES), (vec![0, 8, 12, 14], 16));
        assert_eq!(
            (offsets(CallSiteHeader::STRUCT), CallSiteHeader::WIRE_BYTES),
            (vec![0, 1, 2, 4, 8, 10, 12, 14, 16], 20)
        );
        assert_eq!((offsets(ThreadTime::STRUCT), ThreadTime::WIRE_BYTES), (vec![0, 8, 16, 24, 28, 32, 36, 40, 44], 48));
        assert_eq!((offsets(Allocated::STRUCT), Allocated::WIRE_BYTES), (vec![0, 8, 16, 24], 32));
    }
}
