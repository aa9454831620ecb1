//! Instants of spans (log records, typed events and others) that are not drawn yet. Events of different rings can be a
//! few nanoseconds out of order, so each instant is held until the stream is a few milliseconds further.

use super::Args;
use eventring::tracing::{CallSite, GRACE_NANOS, SpanId, Thread, ThreadKey};
use std::collections::VecDeque;
use std::sync::Arc;

/// The time in nanoseconds for which an instant is held. A span that was closed is kept longer than that.
const HOLD_NANOS: u64 = GRACE_NANOS - 1_000_000;

/// A log record, marker, failed record or typed event.
pub(super) struct Instant {
    pub(super) process_index: usize,
    pub(super) origin: Origin,
    pub(super) span: Option<SpanId>,
    pub(super) nanos: u64,
    /// The name, unless it is that of the call site.
    pub(super) name: Option<String>,
    /// The call site, if the instant comes from one.
    pub(super) call_site: Option<Arc<CallSite>>,
    pub(super) args: Args,
}

/// The thread or the ring that recorded an instant. If the instant lies in no slice, it is drawn on the track of this
/// thread or ring.
pub(super) enum Origin {
    Thread(ThreadKey, Arc<Thread>),
    Ring(u32),
}

/// The instants that are not drawn yet, in the order of the stream.
#[derive(Default)]
pub(super) struct PendingInstants {
    held: VecDeque<PendingInstant>,
    bytes: u64,
}

struct PendingInstant {
    instant: Instant,
    /// The time of the stream when the instant came.
    since_nanos: u64,
    bytes: u64,
}

impl PendingInstants {
    /// Holds an instant. `payload_bytes` is the size of its payload.
    pub(super) fn push(&mut self, instant: Instant, since_nanos: u64, payload_bytes: usize) {
        let bytes = (size_of::<PendingInstant>() as u64).saturating_add(16 * payload_bytes as u64);
        self.bytes = self.bytes.saturating_add(bytes);
        self.held.push_back(PendingInstant { instant, since_nanos, bytes });
    }

    /// Takes the next instant that was held for long enough.
    pub(super) fn take(&mut self, now_nanos: u64) -> Option<Instant> {
        let first = self.held.front()?;
        if first.since_nanos.saturating_add(HOLD_NANOS) > now_nanos { None } else { self.take_any() }
    }

    /// Takes the next instant.
    pub(super) fn take_any(&mut self) -> Option<Instant> {
        let PendingInstant { instant, bytes, .. } = self.held.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(instant)
    }

    /// Returns an estimate of the bytes that the held instants take.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.bytes
    }
}
