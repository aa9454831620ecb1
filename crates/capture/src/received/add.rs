//! Adding a batch to the file of a receiver.

use super::claims::{SeqnoClaims, can_lack_room};
use super::{Added, ReceivedCapture, ReceivedRing, without_shared_text};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::block;
use crate::format::columns::{BlockRecords, EncodedBlock, PayloadsWanted, PlacedGap};
use crate::format::end::CaptureEnd;
use crate::format::header::{BlockHeader, BlockKind, BlockRef, RINGS_MAX};
use crate::format::identity::RingIdentity;
use crate::format::ring::{CapturedRing, RingRole};
use crate::format::stats::RingStats;
use crate::format::tables;
use crate::read::file::CaptureFile;
use crate::sinks::batches::{NAME_BYTES_MAX, is_name};
use eventring::now::Present;
use eventring::reader::{Gap, GapCause};
use std::collections::HashSet;

impl ReceivedCapture {
    /// Adds what a batch has and the file has not. `place` is its place in the stream, and the time at which the broker
    /// has stored it. If seqnos before the batch are missing, they become a gap with `states_gaps`; without, the batch
    /// is not added. Nothing is added of a batch that is refused.
    ///
    /// # Errors
    /// The file cannot be written, or the batch cannot be read. What a batch says is never an error.
    pub fn add(&mut self, batch: &CaptureFile, place: (u64, u64), states_gaps: bool) -> Result<Added, CaptureError> {
        let end = match self.check(batch) {
            // Memory or the file fails, and not the batch.
            Err(error) if error.io_error().is_some() => return Err(error),
            Err(error) => return Ok(Added::Refused(error.to_string())),
            Ok(end) => end,
        };
        if !states_gaps && batch.rings.iter().any(|ring| ring.first_seqno > self.next_seqno_of(ring)) {
            return Ok(Added::Lacks);
        }
        self.begin_next_if_full(usize::try_from(batch.file_bytes).unwrap_or(usize::MAX))?;
        let bytes_before = self.writer.bytes();
        let indices = self.describe(&batch.rings)?;
        self.add_tables(batch, &indices)?;
        for (ring, index) in batch.rings.iter().zip(&indices) {
            self.state_gap(*index, ring.first_seqno)?;
        }
        let mut added: Vec<Option<RingStats>> = vec![None; indices.len()];
        for (of_batch, index) in indices.iter().enumerate() {
            let (first, next) = (batch.rings[of_batch].first_seqno, self.rings[*index as usize].next_seqno());
            let stats = &end.stats.rings[of_batch];
            // What is there already was counted already.
            added[of_batch] = (first == next).then(|| stats.clone());
            self.rings[*index as usize].has_ended = end.reason.is_final();
        }
        for block in batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Events) {
            let Some(index) = indices.get(block.header.ring as usize) else { continue };
            match &added[block.header.ring as usize] {
                Some(_) => self.copy(batch, block, *index)?,
                None => self.add_rest(batch, block, *index)?,
            }
        }
        // A look of a batch that is new is one of the file.
        let looks = batch.blocks.iter().filter(|_| added.iter().any(Option::is_some));
        for block in looks.filter(|block| block.header.kind == BlockKind::Present) {
            let Some(ring) = indices.get(block.header.ring as usize).copied() else { continue };
            self.writer.copied(BlockHeader { ring, ..block.header }, &block::stored(&batch.file, block)?)?;
        }
        for ((index, stats), of_batch) in indices.iter().zip(added).zip(&end.stats.rings) {
            let ring = &mut self.rings[*index as usize];
            ring.stats = match stats {
                Some(stats) => RingStats { removed: ring.stats.removed, ..stats.after(&ring.stats) },
                None if of_batch.last_seqno < ring.stats.last_seqno => continue,
                None => ring.stats.clone().with_state_of(of_batch),
            };
        }
        if self.writer.bytes() == bytes_before {
            if place.0 > self.place {
                (self.place, self.stored_epoch_nanos) = place;
            }
            return Ok(Added::Nothing);
        }
        (self.place, self.stored_epoch_nanos) = place;
        self.write_place()?;
        Ok(Added::All)
    }

    /// Returns the next seqno that the file expects of a ring.
    fn next_seqno_of(&self, ring: &CapturedRing) -> u64 {
        let known = self.by_identity.get(&RingIdentity::new(ring)).and_then(|index| self.rings.get(*index as usize));
        known.map_or(1, ReceivedRing::next_seqno)
    }

    /// Checks all of a batch, before anything of it is written: a batch is in the file wholly or not at all. Blocks are
    /// decoded one by one, so that a hostile batch does not fill the memory. Returns its account.
    fn check<'b>(&self, batch: &'b CaptureFile) -> Result<&'b CaptureEnd, CaptureError> {
        let damaged = |what: &str| CaptureError::new(CaptureErrorKind::Damaged, what);
        let end = batch.end().filter(|_| !batch.is_truncated());
        let end = end.ok_or_else(|| damaged("the batch has no account, expected a whole capture file"))?;
        batch.rings.iter().try_for_each(|ring| self.check_ring(ring))?;
        let identities: HashSet<RingIdentity> = batch.rings.iter().map(RingIdentity::new).collect();
        if identities.len() < batch.rings.len() {
            return Err(damaged("the batch describes a ring twice, expected each ring once"));
        }
        let new = identities.iter().filter(|identity| !self.by_identity.contains_key(identity)).count();
        if self.rings.len() + new > RINGS_MAX {
            let message = format!(
                "the file has {} rings, and a capture has at most {RINGS_MAX}; receive into a new file, or divide the \
                 hosts among several receivers (--share)",
                self.rings.len()
            );
            return Err(CaptureError::new(CaptureErrorKind::NoSpace, message));
        }
        let plain_bytes = |kind| {
            let blocks = batch.blocks.iter().filter(move |block| block.header.kind == kind);
            blocks.fold(0_u64, |sum, block| sum.saturating_add(block.header.plain_bytes))
        };
        let descriptions = [if new > 0 { plain_bytes(BlockKind::Ring) } else { 0 }, plain_bytes(BlockKind::Tables)];
        if !self.writer.has_room_for(descriptions.iter().sum(), self.rings.len() + new) {
            return Err(damaged("the batch has more descriptions than a file of this size can have"));
        }
        // Opening the batch has decoded its tables, as every reader of the file will.
        if !batch.problems.is_empty() {
            return Err(damaged("an entry of its tables of call sites, threads or blocks is damaged"));
        }
        let mut looks = batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Present);
        if let Some(look) = looks.next() {
            let is_whole = Present::of_image(&block::content(&batch.file, look)?).is_some();
            // It has one recorder, whose shard 0 comes first.
            if !is_whole || look.header.ring != 0 || looks.next().is_some() {
                return Err(damaged("what it says of open spans and tasks is damaged, or is there twice"));
            }
        }
        let mut held: Vec<SeqnoClaims> = batch.rings.iter().map(SeqnoClaims::of_ring).collect();
        for block in batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Events) {
            let records = block::records(&batch.file, block, PayloadsWanted::All)?;
            let held = held.get_mut(block.header.ring as usize);
            held.and_then(|held| held.take(&block.header, &records)).ok_or_else(|| {
                damaged("the seqnos of the batch do not follow each other, expected each once, or in a gap")
            })?;
        }
        if !held.iter().zip(&end.stats.rings).all(|(held, stated)| held.agrees(stated)) {
            return Err(damaged("the account of the batch does not agree with what it holds"));
        }
        match end.stats.rings.iter().all(can_lack_room) {
            true => Ok(end),
            false => Err(damaged("its account counts more call sites or shards without room than a program can have")),
        }
    }

    /// Checks what a batch says about a ring.
    fn check_ring(&self, ring: &CapturedRing) -> Result<(), CaptureError> {
        if let Some(name) = [&ring.host, &ring.name].into_iter().find(|name| !is_name(name)) {
            let message = format!("a name has {} bytes, expected 1 to {NAME_BYTES_MAX}", name.len());
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        }
        if ring.has_other_perf_schema() {
            return Err(CaptureError::new(CaptureErrorKind::WrongSchema, ring.other_perf_schema()));
        }
        let known = self.by_identity.get(&RingIdentity::new(ring)).and_then(|index| self.rings.get(*index as usize));
        let kind = |ring: &CapturedRing| (ring.content_type, ring.schema_hash);
        match known.is_none_or(|known| kind(&known.described) == kind(ring)) {
            true => Ok(()),
            false => Err(CaptureError::new(CaptureErrorKind::Damaged, "its ring has other events than before")),
        }
    }

    /// Returns the indices of the rings of a batch, and describes those that are new.
    fn describe(&mut self, rings: &[CapturedRing]) -> Result<Vec<u32>, CaptureError> {
        let known = self.rings.len() as u32;
        let mut indices: Vec<u32> = Vec::new();
        let mut new = Vec::new();
        for ring in rings {
            let next = known + new.len() as u32;
            let index = *self.by_identity.entry(RingIdentity::new(ring)).or_insert(next);
            if index == next {
                new.push(ring);
            }
            indices.push(index);
        }
        for ring in new {
            let processes = self.processes.len() as u32;
            let process = *self.processes.entry((ring.host.clone(), ring.process_key)).or_insert(processes);
            let role = match ring.role {
                RingRole::Single => RingRole::Single,
                RingRole::Shard { recorder, shard } => {
                    let recorder = indices.get(recorder as usize).copied().unwrap_or(0);
                    RingRole::Shard { recorder, shard }
                }
            };
            let ring = CapturedRing { process, role, first_seqno: 1, ..ring.clone() };
            let described = without_shared_text(&ring, &self.rings);
            self.writer.ring(&described)?;
            self.rings.push(ReceivedRing::new(&ring, described));
        }
        Ok(indices)
    }

    /// Adds the entries of tables that the file has not.
    fn add_tables(&mut self, batch: &CaptureFile, indices: &[u32]) -> Result<(), CaptureError> {
        let (mut out, mut count) = (Vec::new(), 0);
        for block in batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Tables) {
            for entry in tables::entries(&block::content(&batch.file, block)?) {
                let Some(entry) = tables::entry_of_ring(entry, indices) else { continue };
                if self.entries.insert(entry.clone()) {
                    out.extend(entry);
                    count += 1;
                }
            }
        }
        if count > 0 { self.writer.tables(&out, count) } else { Ok(()) }
    }

    /// Writes the gap of the seqnos before `first_seqno` that the stream has not. Before the first batch that was
    /// received they are the past, and later a loss.
    fn state_gap(&mut self, index: u32, first_seqno: u64) -> Result<(), CaptureError> {
        let next = self.rings[index as usize].next_seqno();
        if first_seqno <= next {
            return Ok(());
        }
        let cause = if next == 1 { GapCause::OverwrittenBefore } else { GapCause::Overwritten };
        let gap = Gap { first_seqno: next, count: first_seqno - next, cause };
        let gaps = vec![PlacedGap { events_before: 0, gap }];
        self.write(&BlockRecords { ring: index, gaps, ..BlockRecords::default() })
    }

    /// Copies a block as it is.
    fn copy(&mut self, batch: &CaptureFile, block: &BlockRef, index: u32) -> Result<(), CaptureError> {
        let stored = block::stored(&batch.file, block)?;
        let key = &mut self.rings[index as usize].key;
        let first_nanos = key.event(block.header.first_nanos);
        let last_nanos = key.event(block.header.last_nanos);
        let header = BlockHeader { ring: index, first_nanos, last_nanos, ..block.header };
        self.writer.copied(header, &stored)
    }

    /// Writes the records of a block that the file has not.
    fn add_rest(&mut self, batch: &CaptureFile, block: &BlockRef, index: u32) -> Result<(), CaptureError> {
        let next = self.rings[index as usize].next_seqno();
        if block.header.last_seqno < next {
            return Ok(());
        }
        let mut records = block::records(&batch.file, block, PayloadsWanted::All)?;
        records.ring = index;
        records.cut_before(next);
        self.write(&records)
    }

    fn write(&mut self, records: &BlockRecords) -> Result<(), CaptureError> {
        let ring = &mut self.rings[records.ring as usize];
        let first = records.first_after_cut(ring.stats.last_seqno);
        let part = records.part(first..records.events.len());
        if part.len() == 0 {
            return Ok(());
        }
        let mut block = EncodedBlock::default();
        self.finder.encode(records, &part, &ring.layout, &mut block)?;
        self.writer.events(records, &part, &block, &mut ring.key)?;
        ring.stats.count(records, &part);
        Ok(())
    }
}

impl BlockRecords {
    /// Takes the seqnos before `next` out of the gaps. The events before it stay.
    fn cut_before(&mut self, next: u64) {
        self.gaps.retain_mut(|PlacedGap { gap, .. }| {
            let old = next.saturating_sub(gap.first_seqno).min(gap.count);
            gap.first_seqno += old;
            gap.count -= old;
            gap.count > 0
        });
    }

    /// Returns the place of the first event after this seqno.
    fn first_after_cut(&self, last_seqno: u64) -> usize {
        self.events.descriptors().partition_point(|event| event.seqno <= last_seqno)
    }
}
