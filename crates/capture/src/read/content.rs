//! The events of a capture: all of them, or those of a selection.

use crate::condition::Condition;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::columns::PayloadsWanted;
use crate::format::header::BlockKind;
use crate::format::ring::CapturedRing;
use crate::read::events::{CaptureEvents, ReadPlan};
use crate::read::file::CaptureFile;
use crate::read::file_block::{self, BlockExtent, FileBlock};
use crate::select::block_filter::{BlockFilter, Choice};
use crate::select::find::find;
use crate::select::matches::Matches;
use crate::select::selection::Selection;
use std::sync::Arc;

/// The number of spans that a selection may remember in any capture, even the smallest. It may remember one more for
/// each byte of the capture's files. The events of a span take many times as much.
const SPANS_FREE: u64 = 1 << 20;

/// The largest number of characters of a condition that a message has.
const CONDITION_CHARS: usize = 100;

impl CaptureFile {
    /// Selects a part of the capture. From now on, [`Self::events`] returns this part, and so exports and summaries
    /// show it. The part replaces the one that was selected before.
    ///
    /// - **Times.** The part has the events from the first to the last time of the window. A span is in it if one of
    ///   its events is; if it began before the window, its beginning counts as unknown, and if it ends after the
    ///   window, it counts as open. What counts is the time by which [`Self::events`] orders events.
    /// - **Spans.** The part has the chosen spans and everything that happened in them: the spans inside of them, log
    ///   records, typed events. The duration of a span is the time from its creation to its close, inside of the
    ///   window. A span that is open at the end of the window lasts until then. If the beginning or the end of a span
    ///   may be among lost events, only the time from its first to its last event counts.
    /// - **Conditions.** The part has the spans that fulfil the condition and everything that happened in them, and the
    ///   log records, marks and typed events that fulfil it.
    /// - **Threads.** The part has the events that these threads recorded. Events of rings that are no perf rings do
    ///   not name their thread, so they are left out.
    /// - **Losses** are in the part if they lie in its rings and in its window.
    ///
    /// Blocks that cannot have an event of the part are not read, and their problems are not found. A choice of spans
    /// reads the capture once, before this function returns.
    ///
    /// # Errors
    /// The capture has no ring, thread or span of that name, nothing of it fulfils the condition, the window ends before it begins or lies before or after
    /// all events, or the capture is damaged.
    pub fn select(&mut self, selection: &Selection) -> Result<(), CaptureError> {
        self.choice = None;
        if selection.is_whole() {
            return Ok(());
        }
        let mut choice = selection.choose(&self.rings, &self.catalogs)?;
        self.check_window(choice.from_nanos, choice.to_nanos)?;
        let around = selection.events.around();
        if !around.is_empty() {
            let spans_max = SPANS_FREE.saturating_add(self.file_bytes());
            choice.spans_max = usize::try_from(spans_max).unwrap_or(usize::MAX);
            choice.found = self.find(selection, &around)?;
            let blocks = choice.found.iter().flat_map(|found| &found.blocks);
            for (ring, block) in blocks {
                if let Some(known) = self.blocks_of_rings.get_mut(*ring as usize) {
                    Arc::make_mut(known).insert(block.flow_tag(), block.clone());
                }
            }
        }
        self.choice = Some(Arc::new(choice));
        Ok(())
    }

    /// Finds what fulfils each of the conditions in the window of the selection.
    fn find(&mut self, selection: &Selection, around: &[Condition]) -> Result<Vec<Matches>, CaptureError> {
        let window = selection.window();
        self.choice = match window.is_whole() {
            true => None,
            false => Some(Arc::new(window.choose(&self.rings, &self.catalogs)?)),
        };
        let found = find(self, around, window.window_nanos());
        self.choice = None;
        let found = found?;
        let parts_max = SPANS_FREE.saturating_add(self.file_bytes()).saturating_mul(8);
        let condition = selection.events.condition.as_ref().zip(found.last());
        if let Some((condition, found)) = condition.filter(|(_, found)| found.is_empty()) {
            let untested = match found.untested() {
                0 => String::new(),
                count => format!("; {count} spans and events could not be tested, because their payload is lost"),
            };
            let condition = condition.to_string();
            let is_long = condition.chars().count() > CONDITION_CHARS;
            let shown: String = condition.chars().take(CONDITION_CHARS).chain(is_long.then_some('…')).collect();
            let message = format!("{shown}: nothing of the capture is so{untested}");
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        found.into_iter().map(|found| found.finish(parts_max)).collect()
    }

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
