//! Names of fields.

use crate::tracing::filter::quoted::{take_name, write_name};
use std::borrow::Cow;
use std::fmt;

/// Characters that are not ASCII and in no name of a field: punctuation of other scripts, and the character that stands
/// for bytes that were not UTF-8.
const NOT_IN_NAMES: [char; 12] =
    ['“', '”', '„', '‘', '’', '«', '»', '，', '；', '：', '、', char::REPLACEMENT_CHARACTER];

/// Returns true if a field of `tracing` may have this name: identifiers joined by dots, such as `user.password` or
/// `r#type`. `-` and `@` are allowed, too, because a name may also be written as a string: `"x-api-key"`.
pub(in crate::tracing) fn is_field_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_allowed);
    name.split('.').all(|part| is_part(without_raw(part)))
}

fn is_allowed(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@'),
        false => !c.is_whitespace() && !c.is_control() && !NOT_IN_NAMES.contains(&c),
    }
}

/// Returns true if the character needs no quotation marks in a name that a user types. `r#` is a part of names.
fn is_plain(c: char) -> bool {
    is_allowed(c) || matches!(c, '.' | '#')
}

/// Takes the name of a field at the beginning of a text. A name that [`is_field_name`] does not allow has quotation
/// marks: `"user id"`. Returns the name and what follows it, without spaces between, or `None` if there is no name.
pub(in crate::tracing) fn take_field_name(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (name, rest) = take_name(text, is_plain)?;
    let is_name = match &name {
        Cow::Borrowed(name) => is_field_name(name),
        Cow::Owned(name) => !name.is_empty() && !name.chars().any(char::is_control),
    };
    is_name.then(|| (name, rest.trim_start()))
}

/// Writes the name of a field as [`take_field_name`] takes it.
pub(in crate::tracing) fn write_field_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    write_name(f, name, |c| is_plain(c) && is_field_name(name))
}

/// Returns the names of a list, which are separated by commas. Empty ones are left out. A name in quotation marks has no
/// separators and no signs of patterns: what keeps the marks around a whole list, as the environment files of Docker do,
/// does not make a name of it that no field has.
///
/// # Errors
/// Returns the part of the list that is no name.
pub(in crate::tracing) fn field_names(list: &str) -> Result<Vec<Cow<'_, str>>, &str> {
    let (mut names, mut rest) = (Vec::new(), list.trim_start());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
            continue;
        }
        let until_comma = rest.split(',').next().unwrap_or(rest).trim_end();
        let (name, after) = take_field_name(rest).ok_or(until_comma)?;
        if name.contains([',', ';', '|', '*', '?']) {
            return Err(rest[..rest.len() - after.len()].trim_end());
        }
        if !after.is_empty() && !after.starts_with(',') {
            return Err(until_comma);
        }
        names.push(name);
        rest = after;
    }
    Ok(names)
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

    #[test]
    fn a_list_has_names_and_quoted_names() {
        let names = field_names(r#" password, "user id" ,, header."a: \"b\"",r#type,"#);
        assert_eq!(names.unwrap(), ["password", "user id", r#"header.a: "b""#, "r#type"]);
        assert_eq!(field_names(" , "), Ok(Vec::new()));
        for (list, wrong) in [
            ("a;b,c", "a;b"),
            ("a,b c,d", "b c"),
            (r#"a,"b"#, r#""b"#),
            (r#"a,"","#, r#""""#),
            (r#""a,b" ,c"#, r#""a,b""#),
            (r#""a.*""#, r#""a.*""#),
        ] {
            assert_eq!(field_names(list), Err(wrong), "{list}");
        }
    }
}
