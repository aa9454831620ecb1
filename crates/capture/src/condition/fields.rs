//! The fields of a span or log record, found by name and decoded on demand.

use crate::format::values::operand::Operand;
use eventring::schema::perf::{FieldValue, RawField, RawFields, ValueType};
use eventring::schema::{SchemaModel, Shape};
use eventring::tracing::CallSite;
use eventring::tracing::Span;
use std::borrow::Cow;

/// The fields of a span or of a log record as they lie in the ring. Nothing is decoded before somebody asks, and
/// nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub struct LiveFields<'a> {
    bytes: &'a [u8],
    call_site: Option<&'a CallSite>,
}

/// The largest number of fields that a call site has: their index is a byte.
const FIELDS_MAX: usize = 256;

/// Returns true if a condition that asks for the field `wanted` asks for this one, too: it has this name, or the program
/// has given several fields this name, and this is one of them (`size#2`).
pub fn is_field_of(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| match rest.strip_prefix('#') {
        Some(number) => {
            !number.starts_with(['0', '+']) && number.parse().is_ok_and(|it: usize| (2..=FIELDS_MAX).contains(&it))
        }
        None => rest.is_empty(),
    })
}

/// Returns the names that further fields of this name can have ([`is_field_of`]).
pub(super) fn further_names(name: &str) -> impl Iterator<Item = String> + use<'_> {
    (2..=FIELDS_MAX).map(move |number| format!("{name}#{number}"))
}

/// Returns true if spans or log records of this call site may have a field of this name.
pub fn may_have_field(call_site: Option<&CallSite>, name: &str) -> bool {
    call_site.is_none_or(|site| site.field_names.iter().any(|known| is_field_of(known, name)))
}

/// Returns true if typed events of this code have a field with this path, as far as their schema is known.
pub fn has_typed_field(model: Option<&SchemaModel>, code: u16, path: &str) -> bool {
    let Some(model) = model.filter(|model| model.event(code).is_some()) else { return false };
    let part = |shape, name: &str| match shape {
        Shape::Struct(fields) => fields.into_iter().find(|(known, _)| *known == name).map(|(_, shape)| shape),
        _ => None,
    };
    // A payload with very many parts has no shape.
    model.payload_shape(code).is_none_or(|shape| path.split('.').try_fold(shape, part).is_some())
}

/// Returns true if the span may have a field of this name that was lost with a payload.
#[doc(hidden)]
#[must_use]
pub fn span_may_have_lost(span: &Span, name: &str) -> bool {
    span.fields.problem.is_some() && may_have_field(span.call_site.as_deref(), name)
}

impl<'a> LiveFields<'a> {
    /// Makes the fields of a payload of this call site.
    pub fn new(bytes: &'a [u8], call_site: Option<&'a CallSite>) -> Self {
        Self { bytes, call_site }
    }

    /// Makes the fields of a span that the engine follows.
    pub fn of_span(span: &'a Span) -> Self {
        Self::new(span.raw_fields(), span.call_site.as_deref())
    }

    /// Returns the last value of the field with this name. [`Self::decode`] decodes it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<RawField<'a>> {
        let call_site = self.call_site?;
        let is_of_name = |field: &RawField<'_>| call_site.field_name(field.index).is_some_and(|known| **known == *name);
        self.raw().filter(is_of_name).last()
    }

    /// Decodes the last value of the field with this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<FieldValue> {
        self.get(name).map(|field| self.decode(&field))
    }

    /// Calls `take` with the last value of each field for which a condition asks by this name, as it compares them
    /// ([`is_field_of`]). Returns false if there is none.
    #[doc(hidden)]
    pub fn operands(&self, name: &str, take: &mut dyn FnMut(Operand<'_>)) -> bool {
        let mut has_field = false;
        let names = self.call_site.map_or(&[][..], |site| &site.field_names);
        for (index, _) in names.iter().enumerate().filter(|(_, known)| is_field_of(known, name)) {
            if let Some(field) = self.raw().filter(|field| usize::from(field.index) == index).last() {
                has_field = true;
                Operand::with_field(&self.decode(&field), take);
            }
        }
        has_field
    }

    /// Decodes a field that [`Self::iter`] has returned.
    #[must_use]
    pub fn decode(&self, field: &RawField<'_>) -> FieldValue {
        self.call_site.map_or_else(|| field.to_value(), |call_site| call_site.value_of(field))
    }

    /// Returns the text of the field with this name, if it has a text: a string, an error, or what `Debug` or `Display`
    /// wrote. The text of a log record is its field `message`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let field = self.get(name)?;
        match ValueType::from_code(field.type_code)? {
            ValueType::Debug | ValueType::Error | ValueType::Str => {
                std::str::from_utf8(field.value).ok().map(Cow::Borrowed)
            }
            ValueType::Text => match self.decode(&field) {
                FieldValue::Debug(text) => Some(Cow::Owned(text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the names and values, each field once, with its last value. The order is that of the last values. A
    /// field without a known name has an empty name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, RawField<'a>)> {
        let call_site = self.call_site;
        let mut last_places = [0; 1 << u8::BITS];
        self.raw().enumerate().for_each(|(at, field)| last_places[usize::from(field.index)] = at);
        self.raw().enumerate().filter_map(move |(at, field)| {
            let is_replaced = last_places[usize::from(field.index)] != at;
            let name = call_site.and_then(|site| site.field_name(field.index));
            (!is_replaced).then(|| (name.map_or("", |name| &**name), field))
        })
    }

    fn raw(&self) -> impl Iterator<Item = RawField<'a>> + use<'a> {
        RawFields::new(self.bytes).map_while(Result::ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_fields_of_a_name_are_those_that_a_call_site_can_have() {
        assert!(["x", "x#2", "x#10", "x#256"].iter().all(|name| is_field_of(name, "x")));
        for other in ["x#0", "x#1", "x#257", "x#02", "x#+2", "x#", "x#a", "xy", "y", "#2"] {
            assert!(!is_field_of(other, "x"), "{other}");
        }
        assert!(further_names("x").all(|name| is_field_of(&name, "x")) && further_names("x").count() == 255);
    }
}
