//! The filter that is in force: the configured filter together with all filter overrides.

use crate::schema::perf::RawFields;
use crate::tracing::filter::directive::Directive;
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::span_matches::MetConditions;
use tracing_core::subscriber::Interest;
use tracing_core::{Level, LevelFilter, Metadata};

/// A filter that accepts what the configured filter accepts, and what any of the filter overrides accepts.
#[derive(Clone, Debug)]
pub(in crate::tracing) struct EffectiveFilter {
    pub(in crate::tracing) configured: TargetFilter,
    /// The filter overrides, each with its number.
    pub(in crate::tracing) overrides: Vec<(u64, TargetFilter)>,
    /// The span directives of all of them.
    pub(in crate::tracing) span_directives: Vec<SpanDirective>,
    /// The least important level that a span directive enables.
    max_span_level: LevelFilter,
}

/// A directive that names a span or a field.
#[derive(Clone, Debug)]
pub(in crate::tracing) struct SpanDirective {
    /// Number of the directive. It stays the same while the directive is in force.
    pub(in crate::tracing) key: u32,
    directive: Directive,
}

impl EffectiveFilter {
    /// Makes the filter that follows a filter with the span directives `old`. New span directives get keys from
    /// `next_key` on.
    pub(in crate::tracing) fn new(
        configured: TargetFilter,
        overrides: Vec<(u64, TargetFilter)>,
        old: &[SpanDirective],
        next_key: &mut u32,
    ) -> Self {
        let mut span_directives: Vec<SpanDirective> = Vec::new();
        let all = [&configured].into_iter().chain(overrides.iter().map(|(_, filter_override)| filter_override));
        let of_spans = all.flat_map(TargetFilter::directives).filter(|directive| directive.is_of_spans());
        for directive in of_spans.filter(|directive| directive.level > LevelFilter::OFF) {
            if span_directives.iter().any(|other| other.directive == *directive) {
                continue;
            }
            let known = old.iter().find(|other| other.directive == *directive).map(|other| other.key);
            let key = known.unwrap_or_else(|| {
                *next_key = next_key.wrapping_add(1);
                *next_key
            });
            span_directives.push(SpanDirective { key, directive: directive.clone() });
        }
        let max_span_level = span_directives.iter().map(|span| span.directive.level).max().unwrap_or(LevelFilter::OFF);
        Self { configured, overrides, span_directives, max_span_level }
    }

    fn all(&self) -> impl Iterator<Item = &TargetFilter> {
        [&self.configured].into_iter().chain(self.overrides.iter().map(|(_, filter_override)| filter_override))
    }

    /// Returns true if the filter accepts the spans or events of this call site, wherever they happen.
    pub(in crate::tracing) fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        self.all().any(|filter| filter.accepts_metadata(metadata))
            || self.span_directives.iter().any(|span| span.directive.fits_span(metadata))
    }

    /// Returns the interest in a call site. It is `sometimes` only if a span directive may enable the call site.
    pub(in crate::tracing) fn interest(&self, metadata: &Metadata<'_>) -> Interest {
        match self.accepts(metadata) {
            true => Interest::always(),
            false if *metadata.level() <= self.max_span_level => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    /// Returns true if a span directive may enable events of this level.
    pub(in crate::tracing) fn may_accept_in_spans(&self, level: Level) -> bool {
        level <= self.max_span_level
    }

    /// Returns true if a span directive enables events of this level while the thread is in a span of the call site
    /// `span`. `has_met` tells whether this span has met the conditions on the values of its fields.
    pub(in crate::tracing) fn accepts_in(
        &self,
        level: Level,
        span: &Metadata<'_>,
        has_met: impl Fn(MetConditions) -> bool,
    ) -> bool {
        self.span_directives.iter().any(|of_spans| {
            level <= of_spans.directive.level
                && of_spans.directive.fits_span(span)
                && (!of_spans.has_values() || has_met(of_spans.all_conditions()))
        })
    }

    /// Returns the least important level that the filter accepts somewhere.
    pub(in crate::tracing) fn max_level(&self) -> LevelFilter {
        self.all().map(TargetFilter::max_level).max().unwrap_or(LevelFilter::OFF)
    }

    /// Returns the level that decides for all call sites, if one level does.
    pub(in crate::tracing) fn level_of_all(&self) -> Option<LevelFilter> {
        self.all().map(TargetFilter::level_of_all).try_fold(LevelFilter::OFF, |max, level| Some(max.max(level?)))
    }

    /// Returns one filter that accepts the same, for people to read. A filter that has a lower level for events with
    /// certain fields than for others cannot be expressed exactly.
    pub(in crate::tracing) fn union(&self) -> TargetFilter {
        let mut directives = Vec::new();
        for directive in self.all().flat_map(TargetFilter::directives) {
            // For each target that a filter names, the filter with the highest level decides. No other target needs to
            // be named: every filter has one level for all targets between two named ones.
            let level = match (directive.is_of_spans(), directive.target.as_deref()) {
                (true, _) => directive.level,
                (false, target) => self.level_of_target(target.unwrap_or_default()),
            };
            directives.push(Directive { level, ..directive.clone() });
        }
        TargetFilter::from_directives(directives)
    }

    /// Returns true if a directive has a condition on the value of a field.
    pub(in crate::tracing) fn judges_values(&self) -> bool {
        self.span_directives.iter().any(SpanDirective::has_values)
    }

    fn level_of_target(&self, target: &str) -> LevelFilter {
        self.all().map(|filter| filter.level_of_target(target)).max().unwrap_or(LevelFilter::OFF)
    }
}

impl SpanDirective {
    pub(in crate::tracing) fn has_values(&self) -> bool {
        self.directive.has_values()
    }

    /// Returns true if spans of this call site may meet the directive.
    pub(in crate::tracing) fn fits_span(&self, span: &Metadata<'_>) -> bool {
        self.directive.fits_span(span)
    }

    /// Returns the conditions that a span must meet.
    fn all_conditions(&self) -> MetConditions {
        self.conditions(|_| true)
    }

    /// Returns the conditions that the recorded fields of a span meet. `payload` has the fields.
    pub(in crate::tracing) fn conditions_met(&self, span: &Metadata<'_>, payload: &[u8]) -> MetConditions {
        self.conditions(|index| {
            let condition = &self.directive.fields[index];
            let is_field = |index: u8| {
                let field = span.fields().iter().nth(index.into());
                field.is_some_and(|field| field.name() == condition.name())
            };
            RawFields::new(payload).flatten().any(|field| is_field(field.index) && condition.is_met_by(&field))
        })
    }

    /// Returns the conditions on values for which `is_met` is true.
    fn conditions(&self, is_met: impl Fn(usize) -> bool) -> MetConditions {
        let values = self.directive.fields.iter().enumerate().filter(|(_, condition)| condition.has_value());
        let met = values.filter(|(index, _)| is_met(*index)).fold(0, |met, (index, _)| met | 1 << index);
        MetConditions { key: self.key, met }
    }
}
