//! Names of fields.

/// Characters that are not ASCII and in no name of a field: punctuation of other scripts, and the character that stands
/// for bytes that were not UTF-8.
const NOT_IN_NAMES: [char; 12] =
    ['“', '”', '„', '‘', '’', '«', '»', '，', '；', '：', '、', char::REPLACEMENT_CHARACTER];

/// Returns true if a field of `tracing` may have this name: identifiers joined by dots, such as `user.password` or
/// `r#type`. `-` and `@` are allowed, too, because a name may also be written as a string: `"x-api-key"`.
pub(in crate::tracing) fn is_field_name(name: &str) -> bool {
    let is_allowed = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@'),
        false => !c.is_whitespace() && !c.is_control() && !NOT_IN_NAMES.contains(&c),
    };
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_allowed);
    name.split('.').all(|part| is_part(without_raw(part)))
}

/// Returns the identifier without `r#`. `tracing` names the field `r#type` just `type`, since its version 0.1.41.
pub(in crate::tracing) fn without_raw(identifier: &str) -> &str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

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
