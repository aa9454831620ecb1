//! The counts of a replay.

use crate::read::payloads::{self, PayloadLosses};
use schemars::JsonSchema;
use serde::Serialize;

/// The counts of a replay, or of an export.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct ReplayCounts {
    /// Spans that any record names.
    pub spans: u64,
    /// Spans of `spans` that were open at the end.
    pub open_spans: u64,
    /// The number of spans among `spans` whose end was not seen and may have been lost.
    pub lost_ends: u64,
    /// Span slices.
    pub slices: u64,
    /// Log records.
    pub events: u64,
    /// Typed events: events of other rings than perf rings.
    pub typed_events: u64,
    /// Samples of counters.
    pub counters: u64,
    /// Markers.
    pub markers: u64,
    /// Events that are missing, whatever the cause.
    pub lost: u64,
    /// The number of events among `lost` that had been overwritten before the capture began.
    pub overwritten_before: u64,
    /// Events that the filter of the capture has left out.
    #[serde(skip)]
    pub filtered: u64,
    /// The events that have lost their payload, counted for each ring that has such events. The fields of spans and
    /// log records are in the payload, so they are lost, too.
    #[serde(skip)]
    pub payload_losses: Vec<PayloadLosses>,
    /// The problems of the capture, a line each. Everything that has no problem was exported.
    #[serde(skip)]
    pub problems: Vec<String>,
    /// The time of the first event, in nanoseconds since the epoch.
    #[serde(skip)]
    pub first_nanos: u64,
    /// The time of the last event, in nanoseconds since the epoch; 0 if there is none.
    #[serde(skip)]
    pub last_nanos: u64,
}

impl ReplayCounts {
    /// Returns the number of events that were lost since the capture began.
    #[must_use]
    pub fn lost_since(&self) -> u64 {
        self.lost.saturating_sub(self.overwritten_before)
    }

    /// Returns the number of events that have lost their payload, in all rings together.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        payloads::count(&self.payload_losses)
    }
}
