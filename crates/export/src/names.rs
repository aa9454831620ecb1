//! The names under which spans are shown.

use eventring::tracing::{CallSite, SpanId};
use std::borrow::Cow;

// The command line takes the names and the help texts of these values.

/// The names of spans in traces and folded stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Names {
    /// The name alone: `apply`
    #[default]
    Name,
    /// The target and the name: `shop::web::apply`
    Target,
}

impl Names {
    /// Returns the name of a span with this call site; `span N` if the call site was lost.
    pub(super) fn of_span(self, id: SpanId, call_site: Option<&CallSite>) -> Cow<'_, str> {
        match call_site {
            None => format!("span {id}").into(),
            Some(site) if self == Self::Target && !site.target.is_empty() => {
                format!("{}::{}", site.target, site.name).into()
            }
            Some(site) => Cow::Borrowed(&site.name),
        }
    }
}
