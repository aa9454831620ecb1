//! Selecting a part of a capture. A replay finds the spans and events that fulfil a condition.

use super::find::find;
use crate::condition::Condition;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::read::file::CaptureFile;
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
}
