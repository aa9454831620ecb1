//! Texts and names in quotation marks, which users write in conditions, filters, and lists of fields.

use std::borrow::Cow;
use std::fmt;

/// Takes the text in quotation marks at the beginning of `text`. Returns it, and what follows it. A backslash stands
/// before a quotation mark or a backslash; `\n`, `\r`, `\t` and `\0` are control characters. Returns `None` if the
/// quoted text does not begin, or does not end.
#[must_use]
pub fn take_quoted(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix('"')?;
    let (mut taken, mut is_escaped) = (String::new(), false);
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => {
                taken.push(match c {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0' => '\0',
                    other => other,
                });
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return Some((taken, &rest[at + 1..])),
            c => taken.push(c),
        }
    }
    None
}

/// Takes the name at the beginning of `text`: characters for which `is_plain` holds, and parts in quotation marks, as in
/// `header."content-type"`. Returns it, and what follows it. The name is empty if there is none. It is borrowed if
/// nothing of it was quoted. Returns `None` if a quoted part does not end.
#[must_use]
pub fn take_name(text: &str, is_plain: impl Fn(char) -> bool) -> Option<(Cow<'_, str>, &str)> {
    let (mut name, mut rest) = (Cow::Borrowed(""), text);
    loop {
        let plain = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        match &mut name {
            Cow::Borrowed(name) => *name = &rest[..plain],
            Cow::Owned(name) => name.push_str(&rest[..plain]),
        }
        rest = &rest[plain..];
        if !rest.starts_with('"') {
            return Some((name, rest));
        }
        let (quoted, after) = take_quoted(rest)?;
        name.to_mut().push_str(&quoted);
        rest = after;
    }
}

/// Writes a name so that [`take_name`] takes it as a whole: in quotation marks if a character needs them.
///
/// # Errors
/// The formatter fails.
pub fn write_name(f: &mut dyn fmt::Write, name: &str, is_plain: impl Fn(char) -> bool) -> fmt::Result {
    if !name.is_empty() && name.chars().all(is_plain) { f.write_str(name) } else { write_quoted(f, name) }
}

/// Writes a text in quotation marks, as [`take_quoted`] takes it.
///
/// # Errors
/// The formatter fails.
pub fn write_quoted(f: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\0' => f.write_str("\\0")?,
            '"' | '\\' => write!(f, "\\{c}")?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_plain(c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '.' | '_')
    }

    #[test]
    fn names_have_plain_and_quoted_parts() {
        let name = |text| take_name(text, is_plain).map(|(name, rest)| (name.into_owned(), rest.to_owned()));
        let found = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(name("user.id=7"), found("user.id", "=7"));
        assert_eq!(name(r#""content-type">7"#), found("content-type", ">7"));
        assert_eq!(name(r#"header."a \"b\".c".x=1"#), found(r#"header.a "b".c.x"#, "=1"));
        assert_eq!((name("=7"), name(r#""""#)), (found("", "=7"), found("", "")));
        assert_eq!((name(r#""a"#), name(r#"a."b\""#), take_quoted("a")), (None, None, None));
    }

    proptest! {
        #[test]
        fn what_is_written_is_taken_as_a_whole(name in any::<String>()) {
            let mut written = String::new();
            write_name(&mut written, &name, is_plain).unwrap();
            written.push_str("=7");
            let (taken, rest) = take_name(&written, is_plain).unwrap();
            prop_assert_eq!((&*taken, rest), (&*name, "=7"));
        }
    }
}
