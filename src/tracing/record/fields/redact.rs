//! The names of fields that must not be recorded.

use crate::tracing::filter::field_name::without_raw;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tracing_core::field::{Field, Visit};

/// Names of fields whose values are not recorded.
#[derive(Clone, Debug, Default)]
pub(in crate::tracing::record) struct RedactedFields(Arc<[Box<str>]>);

impl RedactedFields {
    /// Returns these names and `names`.
    pub(in crate::tracing::record) fn with(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut all = self.0.to_vec();
        for name in names {
            let (exact, name) = (name.as_ref(), name.as_ref().trim());
            if name.is_empty() {
                continue;
            }
            all.push(name.into());
            // A name may have spaces around it, if unlikely.
            if exact != name {
                all.push(exact.into());
            }
            if name.contains("r#") {
                all.push(name.split('.').map(without_raw).collect::<Vec<_>>().join(".").into());
            }
        }
        Self(all.into())
    }

    #[inline(always)]
    pub(in crate::tracing::record) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the field has one of these names, or a dotted name that ends with one of them.
    fn contains(&self, field: &str) -> bool {
        self.0.iter().any(|name| {
            let Some(start) = field.len().checked_sub(name.len()) else { return false };
            let (before, end) = field.as_bytes().split_at(start);
            end.eq_ignore_ascii_case(name.as_bytes()) && matches!(before.last(), None | Some(b'.'))
        })
    }
}

/// A visitor that can leave a value out.
pub(in crate::tracing::record) trait Redactable: Visit {
    /// Records a field without its value.
    fn redacted(&mut self, field: &Field);
}

/// A visitor between `tracing` and an encoder. It passes fields on to the encoder, but for a redacted field it passes
/// only the name and does not read the value.
pub(in crate::tracing::record) struct Redacting<'e> {
    pub(in crate::tracing::record) encoder: &'e mut dyn Redactable,
    pub(in crate::tracing::record) redacted: &'e RedactedFields,
}

macro_rules! unless_redacted {
    ($($method:ident: $ty:ty),*) => {
        $(fn $method(&mut self, field: &Field, value: $ty) {
            if self.redacted.contains(field.name()) {
                self.encoder.redacted(field);
            } else {
                self.encoder.$method(field, value);
            }
        })*
    };
}

impl Visit for Redacting<'_> {
    unless_redacted! {
        record_i64: i64, record_u64: u64, record_i128: i128, record_u128: u128, record_f64: f64, record_bool: bool, record_str: &str,
        record_bytes: &[u8], record_error: &(dyn Error + 'static), record_debug: &dyn fmt::Debug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_itself_and_for_the_end_of_dotted_names_in_upper_and_lower_case() {
        let redacted = RedactedFields::default().with(["password", " token ", ""]).with(["http.cookie"]);
        for field in ["password", "Password", "user.password", "token", "http.cookie", "request.http.cookie"] {
            assert!(redacted.contains(field), "{field}");
        }
        for field in ["passwords", "old_password", "password.length", "cookie", "", "é"] {
            assert!(!redacted.contains(field), "{field}");
        }
        assert!(RedactedFields::default().with([" "]).is_empty());
        let raw = RedactedFields::default().with(["r#type", "a.r#match"]);
        for field in ["type", "r#type", "user.type", "a.match"] {
            assert!(raw.contains(field), "{field}");
        }
    }
}
