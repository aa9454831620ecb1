//! The filter that decides which spans and events are recorded: a list of directives.

use crate::tracing::filter::directive::Directive;
use crate::tracing::filter::directive::limits::TEXT_BYTES_MAX;
use crate::tracing::filter::directive::parse::parse_list;
use crate::tracing::filter::directive::problem::Problem;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tracing_core::subscriber::Interest;
use tracing_core::{LevelFilter, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// Filter that chooses spans and events by level, target, span and field. It is written as in `RUST_LOG`, in the
/// syntax of tracing-subscriber's `EnvFilter`: `info,my_crate=debug,my_crate::db[query{user=7}]=trace`.
///
/// A filter is a list of directives, separated by commas. A directive without brackets has one of three forms: a level
/// (`off`, `error`, `warn`, `info`, `debug`, `trace`, or 0 to 5 for these), a target (for all levels), or
/// `target=level`. A directive's target fits every target that begins with it. If several directives have a target that
/// fits, the longest of these targets decides. If no target fits, the directive that is only a level decides. If there
/// is no such directive either, the span or event is not recorded.
///
/// A single word that is nearly a level, such as `wran`, is an error, because it is probably a mistyped level. To
/// name a target that is nearly a level, write the target with a level: `warp=trace`.
///
/// # Span directives
/// A directive with brackets names spans: `target[span{field=value}]=level`. Each part may be left out, and there may
/// be several fields. It enables two things, in addition to what the other directives enable:
/// - spans with this name and these fields, whose target begins with `target`, at any level;
/// - every span and event at `level` or a more important level that happens while the thread is in such a span,
///   whatever its target.
///
/// A span must have all the fields. A field without a value may have any value. A field gets its value when the span is
/// created, or later by `Span::record`; a span that has met a condition once continues to meet it. A value is a number,
/// `true` or `false`, or a text, which may be in quotes; within quotes, a text may have commas and braces. So may the
/// name of a field: `[query{"user id"=7}]`. Numbers are
/// compared exactly, an integer with integers only. A text must be equal to the whole value, as a reader shows it.
/// (`EnvFilter` reads it as a regular expression.) Values that are not recorded whole meet no condition: redacted
/// fields, texts that were cut, and bytes. A directive that has only fields, without values, also decides about events
/// that have these fields.
///
/// A list has at most 16 KiB and 256 directives, and a directive has at most 16 fields.
///
/// The filter decides once for each call site, unless a span directive may enable the call site. So a span that the
/// filter rejects costs the same as without a subscriber. A `TargetFilter` can also be put on any layer:
/// `fmt::layer().with_filter(filter)`. There it does not follow spans, and its span directives enable nothing. To
/// follow spans on a layer that records, use [`RecorderLayer::filtered`](crate::tracing::RecorderLayer::filtered).
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
    /// The directives, the most specific first.
    directives: Arc<[Directive]>,
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
        Self::from_directives(vec![Directive::of_level(level.into())])
    }

    /// Parses a list of directives. An empty list makes a filter that accepts nothing.
    ///
    /// # Errors
    /// Returns an error if a directive is invalid, or if the list is too long. The error names the first invalid
    /// directive.
    pub fn parse(directives: &str) -> Result<Self, FilterError> {
        let parsed = parse_list(directives);
        let parsed = parsed.map_err(|(directive, problem)| FilterError { directive, problem })?;
        Ok(if parsed.is_empty() { Self::level(LevelFilter::OFF) } else { Self::from_directives(parsed) })
    }

    /// Parses a filter that a user has written. Does the same as [`Self::parse`], but an empty list of directives is
    /// an error.
    pub(in crate::tracing) fn parse_set(directives: &str) -> Result<Self, FilterError> {
        if directives.split(',').all(|directive| directive.trim().is_empty()) {
            let directive = directives.chars().take(TEXT_BYTES_MAX).collect();
            return Err(FilterError { directive, problem: Problem::Empty });
        }
        Self::parse(directives)
    }

    /// Makes a filter of directives. Of several directives about the same spans and events, the last one counts.
    pub(in crate::tracing) fn from_directives(all: Vec<Directive>) -> Self {
        let mut directives: Vec<Directive> = Vec::with_capacity(all.len());
        for directive in all {
            match directives.iter_mut().find(|other| other.is_about_the_same_as(&directive)) {
                Some(other) => other.level = directive.level,
                None => directives.push(directive),
            }
        }
        directives.sort_by(|a, b| a.order().cmp(&b.order()));
        Self { directives: directives.into() }
    }

    pub(in crate::tracing) fn directives(&self) -> &[Directive] {
        &self.directives
    }

    /// Returns true if the filter accepts a span or event with this target and level, wherever it happens. Directives
    /// with spans and fields do not count.
    #[must_use]
    pub fn accepts(&self, target: &str, level: &tracing_core::Level) -> bool {
        *level <= self.level_of_target(target)
    }

    /// Returns the level up to which the filter accepts spans and events with this target, without span directives.
    pub(in crate::tracing) fn level_of_target(&self, target: &str) -> LevelFilter {
        let mut of_targets = self.directives.iter().filter(|directive| !directive.is_of_spans());
        of_targets.find(|directive| directive.fits_target(target)).map_or(LevelFilter::OFF, |found| found.level)
    }

    /// Returns true if the filter accepts the spans or events of this call site, wherever they happen.
    pub(in crate::tracing) fn accepts_metadata(&self, metadata: &Metadata<'_>) -> bool {
        let mut of_call_sites = self.directives.iter().filter(|directive| directive.is_of_call_sites());
        let found = of_call_sites.find(|directive| directive.fits(metadata));
        found.is_some_and(|directive| *metadata.level() <= directive.level)
    }

    /// Returns the level that decides for all targets. Returns `None` if the filter names targets, spans or fields.
    pub(in crate::tracing) fn level_of_all(&self) -> Option<LevelFilter> {
        match &*self.directives {
            [directive] if directive.target.is_none() && !directive.is_of_spans() => Some(directive.level),
            _ => None,
        }
    }

    /// Returns the least important level that the filter accepts for some target or in some span. If the filter has
    /// span directives, this is TRACE, because the spans that they name may have any level.
    #[must_use]
    pub fn max_level(&self) -> LevelFilter {
        let level = |directive: &Directive| match directive.is_of_spans() && directive.level > LevelFilter::OFF {
            true => LevelFilter::TRACE,
            false => directive.level,
        };
        self.directives.iter().map(level).max().unwrap_or(LevelFilter::OFF)
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
        Some(self.max_level())
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
        for (index, directive) in self.directives.iter().enumerate() {
            write!(f, "{}{directive}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
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
        insta::assert_snapshot!(message("shop[span=debug"), @"use filter: the directive `shop[span=debug` has nothing, expected `]` after the name of a span, such as `[query]`; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("shop[span{user=}]"), @"use filter: the directive `shop[span{user=}]` has nothing, expected a value after `=`, or the field's name alone; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("shop[span{us er}]"), @"use filter: the directive `shop[span{us er}]` has `us er`, expected the name of a field, such as `user`, `user.id` or `\"user id\"`; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("shop[span{user=7}"), @"use filter: the directive `shop[span{user=7}` has nothing, expected `]` after the name of a span, such as `[query]`; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("info,[]=debug"), @"use filter: the directive `[]=debug` has `]`, expected the name of a span or of a field in the brackets; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("[span]debug"), @"use filter: the directive `[span]debug` has `debug`, expected `=` and a level after `]`; write directives such as `my_crate[query{user=7}]=debug`");
        insta::assert_snapshot!(message("[span{user=\"a,b}]=debug"), @r#"use filter: the directive `[span{user="a,b}]=debug` has nothing, expected `}` after the fields, such as `[query{user=7}]`; write directives such as `my_crate[query{user=7}]=debug`"#);
        insta::assert_snapshot!(message("[span]=loud"), @"use filter: the directive `[span]=loud` has the level `loud`, expected off, error, warn, info, debug or trace, or a number from 0 (off) to 5 (trace); write directives such as `info,my_crate=debug`");
    }
}
