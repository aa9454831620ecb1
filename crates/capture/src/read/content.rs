//! The events of a capture: all of them, or those of a selection.

use crate::error::CaptureError;
use crate::format::columns::PayloadsWanted;
use crate::format::header::BlockKind;
use crate::format::ring::CapturedRing;
use crate::read::events::{CaptureEvents, ReadPlan};
use crate::read::file::CaptureFile;
use crate::read::file_block::{self, BlockExtent, FileBlock};
use crate::select::block_filter::{BlockFilter, Choice};
use crate::select::selection::Selection;
use std::sync::Arc;

impl CaptureFile {
    /// Leaves out, of what is selected now, what was recorded before this time. Spans are chosen and measured as
    /// before.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn leave_out_before(&mut self, epoch_nanos: u64) -> Result<(), CaptureError> {
        let mut choice = self.take_choice()?;
        choice.shown_from_nanos = choice.shown_from_nanos.max(epoch_nanos);
        self.choice = Some(Arc::new(choice));
        Ok(())
    }

    /// Returns the present choice, or that of the whole capture.
    fn take_choice(&mut self) -> Result<Choice, CaptureError> {
        match self.choice.take() {
            Some(choice) => Ok(Arc::unwrap_or_clone(choice)),
            None => Selection::new().choose(&self.rings, &self.catalogs),
        }
    }

    /// Returns an iterator over the events and gaps of all rings, in the order of time: all of them, or those that
    /// [`Self::select`] has selected.
    #[must_use]
    pub fn events(&self) -> CaptureEvents {
        CaptureEvents::new(self.event_blocks(), self.plan(PayloadsWanted::All, self.choice.clone()))
    }

    /// Returns the same of one ring, its index in [`Self::rings`]. Other rings are read only if they have spans that
    /// the selection is about.
    #[must_use]
    pub fn events_of_ring(&self, ring: u32) -> CaptureEvents {
        let choice = self.choice.as_deref().cloned().map(|mut choice| {
            (0..).zip(&mut choice.rings).for_each(|(index, of_ring)| of_ring.is_wanted &= index == ring);
            Arc::new(choice)
        });
        let has_choice = choice.is_some();
        let blocks = self.event_blocks().filter(|block| block.ring == ring || has_choice);
        CaptureEvents::new(blocks, self.plan(PayloadsWanted::All, choice))
    }

    /// Returns the same without the rings that [`Self::left_out`] names, and of the blocks only those that are needed.
    pub(crate) fn events_of_known_schemas(
        &self,
        wanted: PayloadsWanted,
        needs: impl Fn(&FileBlock) -> bool,
    ) -> CaptureEvents {
        let is_other: Vec<bool> = self.rings.iter().map(CapturedRing::has_other_perf_schema).collect();
        let is_needed = |block: &FileBlock| is_other.get(block.ring as usize) != Some(&true) && needs(block);
        CaptureEvents::new(self.event_blocks().filter(is_needed), self.plan(wanted, self.choice.clone()))
    }

    pub(crate) fn plan(&self, wanted: PayloadsWanted, choice: Option<Arc<Choice>>) -> ReadPlan {
        ReadPlan {
            rings: self.rings.len(),
            wanted,
            sieve: choice.map(|choice| BlockFilter::new(choice, &self.catalogs)),
            progress: self.progress.clone(),
            is_wanted: self.is_wanted.clone(),
        }
    }

    /// Returns the blocks of events of all files that are read.
    pub(crate) fn event_blocks(&self) -> impl Iterator<Item = FileBlock> + use<> {
        let of_files = self.all_files().flat_map(|file| {
            let blocks = file.blocks.iter().filter(|block| block.header.kind == BlockKind::Events);
            blocks.map(|block| {
                let is_there = block.header.ring < file.place.rings;
                let ring = if is_there { file.place.first + block.header.ring } else { u32::MAX };
                let extent = BlockExtent::of_header(&block.header);
                let is_kept = file.kept.as_ref().is_none_or(|kept| kept.contains(&block.offset));
                FileBlock { file: file.file.clone(), label: file.label.clone(), block: *block, ring, extent, is_kept }
            })
        });
        let mut blocks: Vec<FileBlock> = of_files.collect();
        file_block::correct_extents(&mut blocks);
        blocks.retain(|block| block.is_kept);
        blocks.into_iter()
    }

    /// Makes each reading of the capture report how many bytes of how many it has read. An export reads a capture
    /// twice, and so it counts twice.
    #[must_use]
    pub fn with_progress(self, report: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(report)), ..self }
    }

    /// Makes each reading of the capture end early, as if no more events followed, once `is_wanted` returns false. It
    /// is asked before each block. The caller knows by it that the result is not whole.
    #[doc(hidden)]
    #[must_use]
    pub fn while_wanted(self, is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_wanted: Some(Arc::new(is_wanted)), ..self }
    }
}
