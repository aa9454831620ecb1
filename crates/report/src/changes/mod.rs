//! The page about two captures: both side by side, the changes from A to B, and the difference of their flame graphs.
//!
//! The page uses parts of `page/`, the page about one capture, and the figures of `compare/`.
//!
//! | file | idea |
//! |---|---|
//! | `basis` | the divisor of the sums of a side, so that captures of different length can be compared |
//! | `table` | the table of the changes |
//! | `blocks` | the table of the figures of blocks |
//! | `page` | the whole page |

mod basis;
mod blocks;
mod page;
mod table;
#[cfg(test)]
mod tests;

pub use basis::{Basis, BasisError};

use crate::compare::Comparison;
use crate::page::CaptureFigures;
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::numbers::{counted, grouped};
use eventring_export::{ExportOptions, SharedNames, Summary};

/// One side of a report: a capture that was read.
pub struct ReportSide<'c> {
    name: String,
    figures: CaptureFigures<'c>,
}

/// A report about two captures.
pub struct ComparisonReport<'c> {
    sides: [ReportSide<'c>; 2],
    comparison: Comparison,
    basis: Basis,
    /// The number by which the sums of each side are divided.
    divisors: [f64; 2],
}

impl<'c> ReportSide<'c> {
    /// Reads a capture to its end, once. `name` is the name under which the page shows it.
    ///
    /// # Errors
    /// The capture has neither spans nor blocks, a perf ring has a schema of another version, or the capture would take
    /// too much memory.
    pub fn read(name: String, capture: &'c CaptureFile, options: ExportOptions) -> Result<Self, CaptureError> {
        let figures = CaptureFigures::read(capture, options)?;
        if figures.blocks.summary.blocks == 0 {
            capture.expect_spans()?;
        }
        Ok(Self { name, figures })
    }

    /// Says what the capture has lost: `7 of 88 events and 2 payloads`. Returns `None` if that is nothing.
    fn lost(&self) -> Option<String> {
        let lost = self.figures.summary.lost_since();
        let all = self.figures.events().saturating_add(lost);
        let events = (lost > 0).then(|| format!("{} of {}", grouped(lost), counted(all, "event", "events")));
        let payloads = self.summary().lost_payloads;
        let payloads = (payloads > 0).then(|| counted(payloads, "payload", "payloads"));
        let lost: Vec<String> = events.into_iter().chain(payloads).collect();
        (!lost.is_empty()).then(|| lost.join(" and "))
    }

    /// Returns the counts and durations of the spans.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.figures.summary
    }
}

impl<'c> ComparisonReport<'c> {
    /// Compares two sides. `alpha` is the rate of false alarms.
    ///
    /// # Errors
    /// The basis is a call of a span that a side does not have.
    pub fn new(mut sides: [ReportSide<'c>; 2], alpha: f64, basis: Basis) -> Result<Self, BasisError> {
        // Both sides have the same names, so that their frames are compared.
        let shared = SharedNames::from_names(sides.iter().flat_map(|side| side.figures.frame_names()));
        sides.iter_mut().for_each(|side| side.figures.name_frames(&shared));
        let divisors = [basis.divisor('A', &sides[0].figures)?, basis.divisor('B', &sides[1].figures)?];
        let [a, b] = sides.each_ref().map(|side| std::slice::from_ref(&side.figures.summary));
        let comparison = Comparison::new(a, b, alpha);
        Ok(Self { sides, comparison, basis, divisors })
    }
}
