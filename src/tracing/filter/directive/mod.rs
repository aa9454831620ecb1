//! Filter directives, in the syntax of tracing-subscriber's `EnvFilter`: `target[span{field=value,field}]=level`. Each
//! part may be left out.
//!
//! A directive that names a span or a field is a *span directive*. It enables the spans and events that a thread makes
//! while it is in a matching span. The other directives select spans and events by level and target alone.
//!
//! Directives come from users and from other processes, so their number and length are limited: see [`parse`].

mod condition;
pub(in crate::tracing) mod limits;
pub(in crate::tracing) mod parse;
pub(in crate::tracing) mod problem;
#[cfg(test)]
mod tests;

pub(in crate::tracing) use condition::FieldCondition;

use std::cmp::Reverse;
use std::fmt;
use tracing_core::{LevelFilter, Metadata};

/// One directive of a filter.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::tracing) struct Directive {
    /// The beginning of the targets that the directive fits; `None` for all targets.
    pub(in crate::tracing) target: Option<Box<str>>,
    /// The name of the spans that the directive fits; `None` for all names.
    pub(in crate::tracing) span: Option<Box<str>>,
    /// The conditions that the fields of a span must meet.
    pub(in crate::tracing) fields: Vec<FieldCondition>,
    pub(in crate::tracing) level: LevelFilter,
}

impl Directive {
    /// Makes a directive that is only a level.
    pub(in crate::tracing) fn of_level(level: LevelFilter) -> Self {
        Self { target: None, span: None, fields: Vec::new(), level }
    }

    /// Returns true if the directive names a span or a field.
    pub(in crate::tracing) fn is_of_spans(&self) -> bool {
        self.span.is_some() || !self.fields.is_empty()
    }

    /// Returns true if the directive can decide about a span or event by its call site alone: it names no span, and no
    /// value of a field.
    pub(in crate::tracing) fn is_of_call_sites(&self) -> bool {
        self.span.is_none() && !self.has_values()
    }

    /// Returns true if the directive has a condition on the value of a field.
    pub(in crate::tracing) fn has_values(&self) -> bool {
        self.fields.iter().any(FieldCondition::has_value)
    }

    /// Returns true if the directive's target fits.
    pub(in crate::tracing) fn fits_target(&self, target: &str) -> bool {
        self.target.as_deref().is_none_or(|beginning| target.starts_with(beginning))
    }

    /// Returns true if the call site has the target, the name and the fields that the directive names.
    pub(in crate::tracing) fn fits(&self, metadata: &Metadata<'_>) -> bool {
        self.span.as_deref().is_none_or(|name| name == metadata.name())
            && self.fits_target(metadata.target())
            && self.fields.iter().all(|condition| metadata.fields().field(condition.name()).is_some())
    }

    /// Returns true if spans of this call site may meet the directive, depending on the values of their fields.
    pub(in crate::tracing) fn fits_span(&self, metadata: &Metadata<'_>) -> bool {
        self.is_of_spans() && metadata.is_span() && self.level > LevelFilter::OFF && self.fits(metadata)
    }

    /// Returns true if both directives are about the same spans and events. Then the later one of a list counts.
    pub(in crate::tracing) fn is_about_the_same_as(&self, other: &Self) -> bool {
        (&self.target, &self.span, &self.fields) == (&other.target, &other.span, &other.fields)
    }

    /// Returns a key by which the most specific directives are sorted first.
    pub(in crate::tracing) fn order(&self) -> impl Ord + '_ {
        let target = self.target.as_deref();
        let fields: Vec<_> = self.fields.iter().map(ToString::to_string).collect();
        let names = (target, self.span.as_deref(), fields);
        Reverse((target.map(str::len), self.span.is_some(), self.fields.len(), names))
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.target.as_deref().unwrap_or_default())?;
        if self.is_of_spans() {
            write!(f, "[{}", self.span.as_deref().unwrap_or_default())?;
            for (index, condition) in self.fields.iter().enumerate() {
                write!(f, "{}{condition}", if index == 0 { '{' } else { ',' })?;
            }
            f.write_str(if self.fields.is_empty() { "]" } else { "}]" })?;
        }
        if self.target.is_some() || self.is_of_spans() {
            f.write_str("=")?;
        }
        self.level.fmt(f)
    }
}
