//! The time window of a selection. A window before or after the capture is an error, so that a mistyped time does not
//! look like an empty capture. A window inside the capture may have no events.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::columns::PayloadsWanted;
use crate::read::events::{CaptureEvents, ContentRef};
use crate::read::file::CaptureFile;
use crate::read::file_block::FileBlock;
use crate::select::block_filter::Choice;
use std::sync::Arc;

impl CaptureFile {
    /// Checks the time window from `from_nanos` to `to_nanos`.
    ///
    /// # Errors
    /// The window ends before it begins, or it lies before all events of the capture or after its end.
    pub(crate) fn check_window(&self, from_nanos: u64, to_nanos: u64) -> Result<(), CaptureError> {
        let shown = |nanos| since(self.bounds_nanos().0, nanos);
        let refused = |message| Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        if from_nanos > to_nanos {
            return refused(format!(
                "the time window ends at {}, before it begins at {}; swap the two",
                shown(to_nanos),
                shown(from_nanos)
            ));
        }
        let Some(last_nanos) = self.last_nanos() else {
            return Ok(());
        };
        // A program that hangs records nothing, and the capture goes on.
        let last_nanos = last_nanos.max(self.bounds_nanos().1);
        // A ring whose first events were lost begins with a block of the time 0.
        let begin = |block: FileBlock| Some(block.block.header.first_nanos).filter(|nanos| *nanos > 0);
        let is_later = from_nanos > last_nanos;
        let may_be_earlier = || self.event_blocks().filter_map(begin).min().is_none_or(|first| to_nanos < first);
        if !is_later && !may_be_earlier() {
            return Ok(());
        }
        let Some(first_nanos) = self.first_nanos() else { return Ok(()) };
        if !is_later && to_nanos >= first_nanos {
            return Ok(());
        }
        refused(format!(
            "the time window has no event: the capture holds {} to {}; choose a window that overlaps with this",
            shown(first_nanos),
            shown(last_nanos)
        ))
    }

    /// Returns the time of the first event. Reads the first blocks of each ring.
    #[doc(hidden)]
    #[must_use]
    pub fn first_nanos(&self) -> Option<u64> {
        self.first_nanos_of(None)
    }

    /// Returns true if what is selected has an event. Reads the blocks until one comes.
    #[doc(hidden)]
    #[must_use]
    pub fn has_event(&self) -> bool {
        self.first_nanos_of(self.choice.clone()).is_some()
    }

    fn first_nanos_of(&self, choice: Option<Arc<Choice>>) -> Option<u64> {
        let plan = self.plan(PayloadsWanted::OfTypes(&[]), choice);
        let mut events = CaptureEvents::new(self.event_blocks(), plan);
        while let Some(record) = events.next_ref() {
            if let ContentRef::Event { descriptor, .. } = record.content {
                return Some(descriptor.record_epoch_nanos);
            }
        }
        None
    }
}

/// Returns a time as the options of a selection take it: the seconds since the capture began, as in `+1.5s`.
fn since(started_nanos: u64, nanos: u64) -> String {
    let sign = if nanos >= started_nanos { '+' } else { '-' };
    let apart = nanos.abs_diff(started_nanos);
    let text = format!("{sign}{}.{:09}", apart / 1_000_000_000, apart % 1_000_000_000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_they_are_typed() {
        let shown = [0, 1_000_000_000, 3_000_000_000, 2_230_000_000].map(|nanos| since(2_000_000_000, nanos));
        assert_eq!(shown, ["-2s", "-1s", "+1s", "+0.23s"]);
        assert_eq!(since(7, 7), "+0s");
    }
}
