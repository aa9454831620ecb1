//! Rings for recording again the span events of another program.

use crate::recorder::{Recorder, RecorderBuilder, RecorderError};
use crate::schema::perf::tables::{ENTRY_HEADER_BYTES, TABLES_START};
use crate::tracing::read::Catalog;
use crate::tracing::record::rings::tables::{TableKind, Tables};
use std::collections::HashSet;

/// The limits of the shift of the context area.
const CONTEXT_SHIFTS: std::ops::RangeInclusive<u32> = 13..=32;

/// Makes a ring whose tables have the call sites and threads of `catalog`, so that readers know the names of spans and
/// threads from the first event on.
///
/// # Errors
/// The errors of [`RecorderBuilder::build`].
pub fn ring_with_tables(builder: RecorderBuilder, catalog: &Catalog) -> Result<Recorder, RecorderError> {
    let call_sites = catalog.call_sites().map(|call_site| (TableKind::CallSites, call_site.id, call_site.encode()));
    let threads = catalog.threads().map(|thread| (TableKind::Threads, thread.id, thread.encode()));
    let entries: Vec<_> = call_sites.chain(threads).collect();
    // An entry takes its header, its body, and at most 8 bytes more. The smaller table gets a quarter of the area.
    let entry_bytes = entries.iter().map(|(_, _, body)| body.len() + ENTRY_HEADER_BYTES + 8).sum::<usize>() as u64;
    let area_bytes = 4 * (entry_bytes + TABLES_START);
    let shift = area_bytes.next_power_of_two().trailing_zeros();
    let ring = builder.context_shift(shift.clamp(*CONTEXT_SHIFTS.start(), *CONTEXT_SHIFTS.end())).build()?;
    let tables = Tables::new(&ring);
    for (kind, id, body) in &entries {
        tables.add(&ring, *kind, *id, body);
    }
    Ok(ring)
}

/// A recorder for events of another ring, which come as the other host records them. It keeps their times.
pub struct ReplayedRecorder {
    recorder: Recorder,
    /// The tables of a perf ring, and the entries that they have.
    tables: Option<Tables>,
    call_sites: HashSet<u32>,
    threads: HashSet<u32>,
}

impl ReplayedRecorder {
    /// The shift of the context area of a perf ring.
    pub const CONTEXT_SHIFT: u32 = 22;

    /// Makes the ring. A perf ring gets room for the tables of a large program.
    ///
    /// # Errors
    /// The errors of [`RecorderBuilder::build`].
    pub fn new(builder: RecorderBuilder, is_perf: bool) -> Result<Self, RecorderError> {
        let recorder = if is_perf { builder.context_shift(Self::CONTEXT_SHIFT).build()? } else { builder.build()? };
        let tables = is_perf.then(|| Tables::new(&recorder));
        Ok(Self { recorder, tables, call_sites: HashSet::new(), threads: HashSet::new() })
    }

    /// Adds the call sites and threads of `catalog` that the tables do not have yet.
    pub fn learn(&mut self, catalog: &Catalog) {
        let Some(tables) = &self.tables else { return };
        for call_site in catalog.call_sites().filter(|it| self.call_sites.insert(it.id)) {
            tables.add(&self.recorder, TableKind::CallSites, call_site.id, &call_site.encode());
        }
        for thread in catalog.threads().filter(|it| self.threads.insert(it.id)) {
            tables.add(&self.recorder, TableKind::Threads, thread.id, &thread.encode());
        }
    }

    /// Records an event with this time, in nanoseconds since the epoch.
    pub fn record(&self, epoch_nanos: u64, event_type: u16, content_ext: [u64; 4], payload: &[u8]) {
        let Some(mut event) = self.recorder.reserve(event_type, content_ext, payload.len() as u64) else { return };
        event.append(payload);
        event.set_epoch_nanos(epoch_nanos);
        event.commit();
    }
}
