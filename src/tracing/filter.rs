//! The filter that decides which spans and events a `RecorderSubscriber` records.

use super::directive::{self, Problem};
use std::fmt;
use std::str::FromStr;
use tracing_core::subscriber::Interest;
use tracing_core::{LevelFilter, Metadata};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

/// Filter that chooses spans and events by level and target. It is written as in `RUST_LOG`:
/// `info,my_crate=debug,my_crate::db=off`.
///
/// A filter is a list of directives. A directive has one of three forms: a level (`off`, `error`, `warn`, `info`,
/// `debug`, `trace`, or 0 to 5 for these), a target (for all levels), or `target=level`. A directive's target fits
/// every target that begins with it. If several directives have a target that fits, the longest of these targets
/// decides. If no target fits, the directive that is only a level decides. If there is no such directive either, the
/// span or event is not recorded.
///
/// A single word that is nearly a level, such as `wran`, is an error, because it is probably a mistyped level. To
/// name a target that is nearly a level, write the target with a level: `warp=trace`.
///
/// The filter decides once for each call site. So a span that the filter rejects costs the same as without a
/// subscriber. A filter can also be put on a layer: `RecorderLayer::global().with_filter(filter)`. To filter by span
/// or field, use tracing-subscriber's `EnvFilter` with a [`RecorderLayer`](super::RecorderLayer).
///
/// ```
/// use eventring::tracing::TargetFilter;
///
/// let filter: TargetFilter = "info,my_crate=debug".parse()?;
/// assert!(filter.accepts("my_crate::db", &tracing::Level::DEBUG));
/// assert!(!filter.accepts("other", &tracing::Level::DEBUG));
/// assert!("info,=".parse::<TargetFilter>().is_err());
/// # Ok::<(), eventring::tracing::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TargetFilter {
    targets: Targets,
    max_level: LevelFilter,
}

impl TargetFilter {
    /// Makes a filter that accepts everything.
    #[must_use]
    pub fn all() -> Self {
        Self::level(LevelFilter::TRACE)
    }

    /// Makes a filter that accepts spans and events whose level is `level` or more important.
    #[must_use]
    pub fn level(level: impl Into<LevelFilter>) -> Self {
        let level = level.into();
        Self { targets: Targets::new().with_default(level), max_level: level }
    }

    /// Parses a list of directives. An empty list makes a filter that accepts nothing.
    ///
    /// # Errors
    /// Returns an error if a directive is invalid. The error names the first invalid directive.
    pub fn parse(directives: &str) -> Result<Self, FilterError> {
        let error = |directive: &str, problem| FilterError { directive: directive.to_owned(), problem };
        let directives: Vec<&str> = directives.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        for directive in &directives {
            directive::check(directive).map_err(|problem| error(directive, problem))?;
        }
        if directives.is_empty() {
            return Ok(Self::level(LevelFilter::OFF));
        }
        let joined = directives.join(",");
        let targets: Targets =
            joined.parse().map_err(|reason| error(&joined, Problem::NotUnderstood(format!("{reason}"))))?;
        let levels = targets.iter().map(|(_, level)| level).chain(targets.default_level());
        let max_level = levels.max().unwrap_or(LevelFilter::OFF);
        Ok(Self { targets, max_level })
    }

    /// Parses a filter that a user has written. Does the same as [`Self::parse`], but an empty list of directives is
    /// an error.
    pub(super) fn parse_set(directives: &str) -> Result<Self, FilterError> {
        if directives.split(',').all(|directive| directive.trim().is_empty()) {
            return Err(FilterError { directive: directives.to_owned(), problem: Problem::Empty });
        }
        Self::parse(directives)
    }

    /// Returns true if the filter accepts a span or event with this target and level.
    #[must_use]
    pub fn accepts(&self, target: &str, level: &tracing_core::Level) -> bool {
        self.targets.would_enable(target, level)
    }

    pub(super) fn accepts_metadata(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.max_level && self.accepts(metadata.target(), metadata.level())
    }

    /// Returns the level that decides for all targets. Returns `None` if the filter names targets.
    pub(super) fn level_of_all(&self) -> Option<LevelFilter> {
        self.targets.iter().next().is_none().then_some(self.max_level)
    }

    /// Returns the least important level that the filter accepts for some target.
    #[must_use]
    pub fn max_level(&self) -> LevelFilter {
        self.max_level
    }
}

impl<S> Filter<S> for TargetFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.accepts_metadata(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.accepts_metadata(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.max_level)
    }
}

impl FromStr for TargetFilter {
    type Err = FilterError;

    fn from_str(directives: &str) -> Result<Self, FilterError> {
        Self::parse(directives)
    }
}

impl fmt::Display for TargetFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.targets.fmt(f)
    }
}

/// Error for an invalid filter directive.
#[derive(Clone, PartialEq, Eq)]
pub struct FilterError {
    directive: String,
    problem: Problem,
}

impl FilterError {
    /// Returns the invalid directive.
    #[must_use]
    pub fn directive(&self) -> &str {
        &self.directive
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "use filter: the directive `{}` {}", self.directive, self.problem)
    }
}

debug_as_displayed!(FilterError);

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_core::Level;

    #[test]
    fn the_most_specific_target_decides_and_the_highest_level_is_known() {
        let filter = TargetFilter::parse(" info , shop=debug,shop::db=off,noisy").unwrap();
        for (target, level, accepted) in [
            ("other", Level::INFO, true),
            ("other", Level::DEBUG, false),
            ("shop", Level::DEBUG, true),
            ("shop", Level::TRACE, false),
            ("shop::db::pool", Level::ERROR, false),
            ("noisy", Level::TRACE, true),
        ] {
            assert_eq!(filter.accepts(target, &level), accepted, "{target} {level}");
        }
        assert_eq!(filter.max_level(), LevelFilter::TRACE);
        assert_eq!(TargetFilter::parse("warn").unwrap().max_level(), LevelFilter::WARN);
        assert_eq!(TargetFilter::parse("").unwrap().max_level(), LevelFilter::OFF);
    }

    #[test]
    fn a_wrong_directive_is_named_with_what_is_expected() {
        let message = |directives| TargetFilter::parse(directives).unwrap_err().to_string();
        insta::assert_snapshot!(message("info,shop=loud"), @"use filter: the directive `shop=loud` has the level `loud`, expected off, error, warn, info, debug or trace, or a number from 0 (off) to 5 (trace); write directives such as `info,my_crate=debug`");
        insta::assert_snapshot!(message("info,shop="), @"use filter: the directive `shop=` has the level ``, expected off, error, warn, info, debug or trace, or a number from 0 (off) to 5 (trace); write directives such as `info,my_crate=debug`");
        insta::assert_snapshot!(message("inof"), @"use filter: the directive `inof` is neither a level nor a likely target; write the level `info`, or the target with a level");
        insta::assert_snapshot!(message("info;x=debug"), @"use filter: the directive `info;x=debug` has the character `;` in its target, expected a path such as `my_crate::module`; separate directives by commas, such as `info,my_crate=debug`");
        insta::assert_snapshot!(message("=debug"), @"use filter: the directive `=debug` has no target before `=`; write directives such as `info,my_crate=debug`");
        insta::assert_snapshot!(message("shop[span]=debug"), @"use filter: the directive `shop[span]=debug` filters by span or field, which needs tracing-subscriber's EnvFilter and a RecorderLayer; write directives such as `info,my_crate=debug`");
    }
}
