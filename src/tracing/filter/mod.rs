//! Filters: which spans and log records are wanted. This module does not depend on how they are recorded.
//!
//! | file | idea |
//! |---|---|
//! | `directive/`, `field_name` | one directive: `target[span{field=value}]=level` |
//! | `filter` | a filter: a list of directives |
//! | `quoted` | names and texts in quotes, in directives and conditions |
//! | `effective` | the filter that is in force: the configured filter together with all filter overrides |
//! | `filter_handle` | changing a filter while other threads use it |
//! | `span_matches` | the open spans that have met conditions of span directives |
//! | `make`, `live_filters` | making a filter, and the filters of the process that can be changed |
//! | `filter_override`, `steered` | filter overrides, also those of a server's clients |
//! | `switch` | the lock for changes of filters and recorders |

pub(super) mod directive;
pub(super) mod effective;
pub(super) mod field_name;
#[allow(clippy::module_inception, reason = "the filter is the idea of this part")]
pub(super) mod filter;
pub(super) mod filter_handle;
pub(super) mod filter_override;
pub(super) mod live_filters;
mod make;
pub(crate) mod quoted;
pub(super) mod span_matches;
#[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
pub(super) mod steered;
pub(super) mod switch;
