//! The tables of a capture: call sites and threads of perf recorders, and blocks of rings of execution events.

use crate::format::filter_bits::FilterBits;
use crate::format::ring::CapturedRing;
use crate::format::wire::{Bytes, put_u32};
use eventring::exec::{BlockInfo, SavedBlocks, flow_tag};
use eventring::reader::{Descriptor, Reader};
use eventring::tracing::Catalog;
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) const CALL_SITE: u32 = 1;
pub(crate) const THREAD: u32 = 2;
pub(crate) const BLOCK: u32 = 3;

/// The call sites and threads of one recorder, and which of them the current file holds.
#[derive(Default)]
pub(crate) struct CaptureTables {
    catalog: Catalog,
    written_call_sites: HashSet<u32>,
    written_threads: HashSet<u32>,
}

impl CaptureTables {
    /// Starts again from the first entry, for a new file.
    pub(crate) fn restart(&mut self) {
        self.written_call_sites.clear();
        self.written_threads.clear();
    }

    /// Appends the entries that the current file does not hold yet to `out`, and returns their number. `recorder` is
    /// the index of the recorder's shard 0. With `needed`, takes only entries that these bits may name.
    pub(crate) fn put_new(
        &mut self,
        out: &mut Vec<u8>,
        recorder: u32,
        shard0: &Reader,
        needed: Option<&FilterBits>,
    ) -> u64 {
        self.catalog.update(shard0);
        let (call_sites, threads) = self.catalog.counts();
        if call_sites <= self.written_call_sites.len() && threads <= self.written_threads.len() {
            return 0;
        }
        let mut entries = 0;
        for call_site in self.catalog.call_sites() {
            let is_needed = needed.is_none_or(|bits| bits.may_have_call_site(call_site.id));
            if is_needed && self.written_call_sites.insert(call_site.id) {
                put_entry(out, recorder, CALL_SITE, call_site.id, &call_site.encode());
                entries += 1;
            }
        }
        for thread in self.catalog.threads() {
            if needed.is_none_or(|bits| bits.may_have_thread(thread.id)) && self.written_threads.insert(thread.id) {
                put_entry(out, recorder, THREAD, thread.id, &thread.encode());
                entries += 1;
            }
        }
        entries
    }
}

/// The blocks of one ring that the current file describes, by flow tag.
#[derive(Default)]
pub(crate) struct CapturedBlocks(HashSet<u64>);

impl CapturedBlocks {
    /// Starts again, for a new file.
    pub(crate) fn restart(&mut self) {
        self.0.clear();
    }

    /// Appends the blocks to which `events` belong to `out`, unless the current file describes them already, and
    /// returns their number. The blocks come from the block table of `reader`'s ring. Without a table, nothing is
    /// appended.
    pub(crate) fn put_new(&mut self, out: &mut Vec<u8>, ring: u32, reader: &Reader, events: &[Descriptor]) -> u64 {
        let Some(known) = reader.last_block() else { return 0 };
        let (mut entries, mut last_tag) = (0, 0);
        for event in events.iter() {
            let tag = flow_tag(event);
            if std::mem::replace(&mut last_tag, tag) == tag || self.0.contains(&tag) {
                continue;
            }
            let block = if tag == known.flow_tag() { Some(known.clone()) } else { reader.block_of(event) };
            if let Some(block) = block {
                self.0.insert(tag);
                put_entry(out, ring, BLOCK, 0, &block.to_bytes());
                entries += 1;
            }
        }
        entries
    }
}

pub(crate) fn put_entry(out: &mut Vec<u8>, recorder: u32, what: u32, id: u32, body: &[u8]) {
    for word in [recorder, what, id, body.len() as u32] {
        put_u32(out, word);
    }
    out.extend(body);
}

/// Decodes a block of tables, and adds its entries to `catalogs` and `blocks`, which have one element for each ring of
/// the capture. Call sites and threads of another schema are left out: only its own version can decode them. Returns
/// false if the block is damaged.
pub(crate) fn learn(
    bytes: &[u8],
    rings: &[CapturedRing],
    catalogs: &mut [Catalog],
    blocks: &mut [Arc<SavedBlocks>],
) -> bool {
    let mut bytes = Bytes::new(bytes);
    while !bytes.is_empty() {
        if learn_entry(&mut bytes, rings, catalogs, blocks).is_none() {
            return false;
        }
    }
    true
}

/// Returns the entries of a block of tables, up to the first damaged one.
pub(crate) fn entries(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const HEAD_BYTES: usize = 16;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let mut head = Bytes::new(rest.get(..HEAD_BYTES)?);
        let [_, _, _, body_bytes] = [head.u32()?, head.u32()?, head.u32()?, head.u32()?];
        let (entry, after) = rest.split_at_checked(HEAD_BYTES + body_bytes as usize)?;
        rest = after;
        Some(entry)
    })
}

/// Returns an entry with the index that its ring has in another file. Returns `None` if there is no such ring.
pub(crate) fn entry_of_ring(entry: &[u8], indices: &[u32]) -> Option<Vec<u8>> {
    let ring = Bytes::new(entry).u32()?;
    let index = indices.get(ring as usize)?;
    Some([&index.to_le_bytes(), entry.get(4..)?].concat())
}

fn learn_entry(
    bytes: &mut Bytes<'_>,
    rings: &[CapturedRing],
    catalogs: &mut [Catalog],
    blocks: &mut [Arc<SavedBlocks>],
) -> Option<()> {
    let (recorder, what, id, body_bytes) = (bytes.u32()?, bytes.u32()?, bytes.u32()?, bytes.u32()?);
    let body = bytes.take(body_bytes as usize)?;
    let catalog = catalogs.get_mut(recorder as usize)?;
    if rings.get(recorder as usize).is_some_and(CapturedRing::has_other_perf_schema) {
        return Some(());
    }
    if what == BLOCK {
        let block = BlockInfo::from_bytes(body)?;
        Arc::make_mut(blocks.get_mut(recorder as usize)?).insert(block.flow_tag(), Arc::new(block));
        return Some(());
    }
    let is_whole = match what {
        CALL_SITE => catalog.learn_call_site(id, body),
        THREAD => catalog.learn_thread(id, body),
        _ => false,
    };
    is_whole.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::schema::perf::{CallSiteKind, CallSiteView, ThreadView};

    #[test]
    fn call_sites_and_threads_come_back_and_entries_for_no_ring_are_refused() {
        let view = CallSiteView {
            kind: CallSiteKind::Event,
            level: eventring::schema::perf::CallSiteLevel::Warn,
            name: "full".into(),
            target: "shop".into(),
            module: "".into(),
            file: "a.rs".into(),
            line: 3,
            field_names: vec!["left".into()],
        };
        let mut known = Catalog::new();
        assert!(known.learn_call_site(5, &view.encode()));
        assert!(known.learn_thread(6, &ThreadView::encode(1, 2, "worker")));
        let mut out = Vec::new();
        put_entry(&mut out, 1, CALL_SITE, 5, &known.call_site(5).encode());
        put_entry(&mut out, 1, THREAD, 6, &known.thread(6).encode());
        let mut catalogs = vec![Catalog::new(), Catalog::new()];
        let mut blocks = vec![Arc::default(), Arc::default()];
        assert!(learn(&out, &[], &mut catalogs, &mut blocks));
        assert_eq!((catalogs[1].call_site(5), catalogs[1].thread(6)), (known.call_site(5), known.thread(6)));
        assert!(!catalogs[0].knows_call_site(5));
        assert!(!learn(&out, &[], &mut catalogs[..1], &mut blocks));
        assert!(!learn(&out[..out.len() - 1], &[], &mut catalogs, &mut blocks));
    }
}
