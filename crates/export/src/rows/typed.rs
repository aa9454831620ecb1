//! A typed event.

use super::{TypedPayload, TypedWords, row};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::tracing::SpanId;
use eventring_capture::recording::CaptureRecording;
use std::borrow::Cow;

row! {
    /// A typed event.
    pub struct TypedRow<'a> {
        /// The number of its process in the recording.
        process: u32 => U32,
        /// The name of its ring.
        ring: Option<&'a str> => Word,
        /// Its number in the ring.
        seqno: u64 => U64,
        /// When it was recorded, in nanoseconds since the epoch.
        time_ns: u64 => Amount,
        /// The name of its type.
        name: Option<Cow<'a, str>> => EventName,
        /// The number of its type.
        code: u32 => U32,
        /// The span in which it was recorded.
        span: Option<u64> => U64,
        /// The extension words that the schema names.
        words: Option<TypedWords<'a>> => Words,
        /// The number of its block. Only execution events have blocks.
        block_number: Option<Option<u64>> => Block [IfAny],
        /// The payload.
        payload: Option<TypedPayload<'a>> => Payload,
    }
}

impl<'a> TypedRow<'a> {
    /// Makes the row of an event of this ring.
    #[must_use]
    pub fn new(
        recording: &'a CaptureRecording<'_>,
        (process, ring): (u32, u32),
        descriptor: &Descriptor,
        read: PayloadRead<'a>,
        block_number: Option<u64>,
    ) -> Self {
        let (rings, code) = (recording.rings(), descriptor.event_type);
        Self {
            process,
            ring: Some(&recording.ring(ring).name),
            seqno: descriptor.seqno,
            time_ns: descriptor.record_epoch_nanos,
            name: Some(rings.event_name(ring, code)),
            code: code.into(),
            span: rings.span(ring, descriptor).map(SpanId::get),
            words: Some(TypedWords { names: rings.words(ring), words: descriptor.content_ext }),
            block_number: recording.ring(ring).is_exec().then_some(block_number),
            payload: Some(TypedPayload { model: rings.model(ring), code, read }),
        }
    }
}
