//! Fields that are not to be recorded, by their names.

use super::fields::Redactable;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tracing_core::field::{Field, Visit};

/// Characters that are not ASCII and in no name of a field: punctuation of other scripts, and the character that stands
/// for bytes that were not UTF-8.
const NOT_IN_NAMES: [char; 12] =
    ['“', '”', '„', '‘', '’', '«', '»', '，', '；', '：', '、', char::REPLACEMENT_CHARACTER];

/// Returns true if a field of `tracing` may have this name: identifiers joined by dots, such as `user.password` or
/// `r#type`. `-` and `@` are allowed, too, because a name may also be written as a string: `"x-api-key"`.
pub(super) fn is_field_name(name: &str) -> bool {
    let is_allowed = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@'),
        false => !c.is_whitespace() && !c.is_control() && !NOT_IN_NAMES.contains(&c),
    };
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_allowed);
    name.split('.').all(|part| is_part(without_raw(part)))
}

/// Returns the identifier without `r#`. `tracing` names the field `r#type` just `type`, since its version 0.1.41.
fn without_raw(identifier: &str) -> &str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}

/// Names of fields whose values are not recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct RedactedFields(Arc<[Box<str>]>);

impl RedactedFields {
    /// Returns these names and `names`.
    pub(super) fn with(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut all = self.0.to_vec();
        for name in names {
            let name = name.as_ref().trim();
            if name.is_empty() {
                continue;
            }
            all.push(name.into());
            if name.contains("r#") {
                all.push(name.split('.').map(without_raw).collect::<Vec<_>>().join(".").into());
            }
        }
        Self(all.into())
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
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

/// A visitor between `tracing` and an encoder. It passes fields on to the encoder, but for a redacted field it passes
/// only the name and does not read the value.
pub(super) struct Redacting<'e> {
    pub(super) encoder: &'e mut dyn Redactable,
    pub(super) redacted: &'e RedactedFields,
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

    #[test]
    fn what_no_field_can_be_named_is_told_from_names() {
        for name in
            ["password", "user.password", "r#type", "a.r#type", "x-api-key", "@timestamp", "_id", "größe", "पासवर्ड"]
        {
            assert!(is_field_name(name), "{name}");
        }
        for character in
            r#"*"'=:/()[]{}$^?+\<>;|&!%~`#, "#.chars().chain(['\t', '“', '，', char::REPLACEMENT_CHARACTER])
        {
            assert!(!is_field_name(&format!("pass{character}word")), "{character}");
        }
        for name in ["", ".", ".password", "password.", "a..b", "password.*", "/pass.*/", "\"password\"", "r#", "a.r#"]
        {
            assert!(!is_field_name(name), "{name}");
        }
    }
}
