//! What the spans of each name have allocated.

use eventring::schema::perf::{Allocated, FieldValue, PerfEvent};
use eventring::tracing::{Catalog, RawRecord, ThreadKey};
use eventring_capture::recording::ReplayState;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What the program's allocator has counted for all spans of one name and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AllocationSummary {
    /// The number of allocations. A reallocation counts as an allocation and a free.
    pub allocations: u64,
    /// Their bytes.
    #[serde(rename = "allocated_bytes")]
    pub bytes: u64,
    /// The number of frees, whoever had allocated.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// The bytes that spans of this name had allocated and that were not freed at the last sample; `None` if the program
    /// does not count live bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_bytes: Option<u64>,
    /// The largest number of these bytes. Of several programs, the sum of their largest numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
}

/// What the ALLOCATED events and the counters of live bytes say.
#[derive(Default)]
pub(super) struct AllocationCounts {
    has_any: bool,
    outside: Allocated,
    /// The last value of each counter, by process and call site.
    live: BTreeMap<(usize, u32), LiveCounter>,
}

struct LiveCounter {
    name: String,
    is_peak: bool,
    bytes: u64,
}

impl AllocationCounts {
    /// Takes a record of this process and recorder.
    pub(super) fn add(
        &mut self,
        (process, recorder): (usize, u32),
        record: &RawRecord<'_>,
        catalog: &Catalog,
        state: ReplayState<'_>,
    ) {
        match record.event {
            Some(PerfEvent::Allocated) => {
                self.has_any = true;
                let thread = ThreadKey { recorder, thread_id: record.ext.thread_id };
                let is_outside = state.replays.get(process).is_none_or(|replay| replay.stack(thread).is_empty());
                if let Some(allocated) = record.allocated().filter(|_| is_outside) {
                    self.outside = self.outside.plus(allocated);
                }
            }
            Some(PerfEvent::Counter) => {
                let id = record.ext.call_site_id;
                let Some(site) = catalog.known_call_site(id) else { return };
                let Some((name, is_peak)) = Allocated::live_counter(&site.target, &site.name) else { return };
                if let FieldValue::U64(bytes) = record.sample() {
                    let new = || LiveCounter { name: name.to_owned(), is_peak, bytes };
                    self.live.entry((process, id)).or_insert_with(new).bytes = bytes;
                }
            }
            _ => {}
        }
    }

    /// Returns what was allocated in no span, if allocations were counted.
    pub(super) fn outside(&self) -> Option<AllocationSummary> {
        self.of_name("(no span)", self.outside)
    }

    /// Returns what was allocated in the spans of a name, if allocations were counted.
    pub(super) fn of_name(&self, name: &str, allocated: Allocated) -> Option<AllocationSummary> {
        let sum = |is_peak| {
            let of_name = self.live.values().filter(|live| live.name == name && live.is_peak == is_peak);
            of_name.map(|live| live.bytes).reduce(u64::saturating_add)
        };
        let Allocated { allocations, bytes, frees, freed_bytes } = allocated;
        let (live_bytes, peak_bytes) = (sum(false), sum(true));
        self.has_any.then_some(AllocationSummary { allocations, bytes, frees, freed_bytes, live_bytes, peak_bytes })
    }
}
