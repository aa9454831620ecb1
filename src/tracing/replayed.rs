//! Rings of spans whose events were recorded by another program, and are recorded once more.

use super::read::Catalog;
use super::tables::{TableKind, Tables};
use crate::recorder::{Recorder, RecorderBuilder, RecorderError};
use crate::schema::perf::tables::{ENTRY_HEADER_BYTES, TABLES_START};

/// The limits of the shift of the context area.
const CONTEXT_SHIFTS: std::ops::RangeInclusive<u32> = 13..=32;

/// Makes a ring whose tables have the call sites and threads of `catalog`, so that readers know the names of spans and
/// threads from the first event on.
///
/// # Errors
/// The errors of [`RecorderBuilder::build`].
#[doc(hidden)]
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
