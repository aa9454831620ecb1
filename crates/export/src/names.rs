//! The names under which spans are shown.

use eventring::tracing::{CallSite, SpanId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

// The command line takes the names and the help texts of these values.

/// The names of spans in traces and folded stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Names {
    /// The name; in stacks with its target if spans of other targets have the same name: `apply`, `shop::web::apply`.
    /// Traces have the target as a category
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
            Some(site) if self == Self::Target => full_name(&site.name, &site.target).into(),
            Some(site) => Cow::Borrowed(&site.name),
        }
    }
}

/// Returns the name of a span with its target before it, as the program shows and reads it: `shop::db::query`.
#[must_use]
pub fn full_name(name: &str, target: &str) -> String {
    if target.is_empty() { name.to_owned() } else { format!("{target}::{name}") }
}

/// The names that spans of several targets share. Such a name is shown with its target.
///
/// ```
/// use eventring_export::SharedNames;
///
/// let shared = SharedNames::from_names([("apply", "shop::cart"), ("apply", "shop::tax"), ("pay", "shop")]);
/// assert_eq!(shared.shown("apply", "shop::tax"), "shop::tax::apply");
/// assert_eq!(shared.shown("pay", "shop"), "pay");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SharedNames(HashSet<String>);

impl SharedNames {
    /// Finds the shared names among names with their targets.
    #[must_use]
    pub fn from_names<'n>(names: impl IntoIterator<Item = (&'n str, &'n str)>) -> Self {
        let mut targets: HashMap<&str, &str> = HashMap::new();
        let mut shared = HashSet::new();
        for (name, target) in names {
            if *targets.entry(name).or_insert(target) != target {
                shared.insert(name.to_owned());
            }
        }
        Self(shared)
    }

    /// Returns the name, with its target before it if others share it.
    #[must_use]
    pub fn shown<'n>(&self, name: &'n str, target: &str) -> Cow<'n, str> {
        if self.0.contains(name) { full_name(name, target).into() } else { name.into() }
    }
}
