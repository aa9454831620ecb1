//! Comparisons of captures by their spans.
//!
//! [`Comparison::new`] compares two sides, each with the summaries ([`summarize`](eventring_export::summarize)) of one
//! or more captures. A [`ChangeLimit`] defines which changes are too large.
//!
//! | file | idea |
//! |---|---|
//! | `measure` | the measures of a span, and their values |
//! | `side` | one side: the figures of each span over the captures of the side |
//! | `rank_sum` | the test whether the durations of two sides differ |
//! | `significance` | the tests of all spans, with one rate of false alarms for all tests together |
//! | `comparison` | both sides, span by span |
//! | `limit` | expressions for the limits of changes |
//! | `exceeded` | the changes that exceed limits, and the limits that cannot be checked |
//! | `json` | the comparison as JSON |

mod comparison;
mod exceeded;
mod json;
mod limit;
mod measure;
mod rank_sum;
mod side;
mod significance;
#[cfg(test)]
mod tests;

pub use comparison::{ComparedSpan, Comparison};
pub use exceeded::{ExceededLimit, IncompleteLimit, LimitError, LimitResults};
pub use json::ComparisonAnswer;
pub use limit::{ChangeAmount, ChangeLimit};
pub use measure::{Measure, SpanFigures};
