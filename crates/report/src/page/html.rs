//! Text in HTML.

use jiff::Timestamp;
use std::borrow::Cow;

/// Escapes a text for an element or an attribute. Control characters and marks of the writing direction become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// The largest number of characters of a name that a page shows.
const NAME_CHARS: usize = 120;

/// Returns a name without what is too long to be shown.
pub(crate) fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME_CHARS) {
        None => name.into(),
        Some((end, _)) => format!("{}…", &name[..end]).into(),
    }
}

/// Fills a template: each `{{name}}` becomes what `value` returns for the name. Values are not looked at again, so a
/// text that looks like a place in the template stays what it is.
pub(crate) fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        out.push_str(&value(name));
        out.push_str(rest);
    }
    out
}

/// Returns a time of the wall clock: `2026-01-02 03:04:05 UTC`.
pub(super) fn utc(epoch_nanos: u64) -> String {
    let time = Timestamp::from_nanosecond(epoch_nanos.into()).unwrap_or_default();
    time.strftime("%F %T UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_cannot_be_a_part_of_the_template() {
        assert_eq!(escape("<a href=\"'&\"> \u{202e}\0"), "&lt;a href=&quot;&#39;&amp;&quot;&gt; \u{fffd}\u{fffd}");
        assert_eq!(fill("<{{a}}|{{b}}>", |name| format!("{name}{{{{b}}}}")), "<a{{b}}|b{{b}}>");
    }

    #[test]
    fn a_name_is_cut_after_its_first_120_characters() {
        let name = "ä".repeat(120);
        assert_eq!(shortened(&name), name);
        assert_eq!(shortened(&format!("{name}bc")), format!("{name}…"));
    }

    #[test]
    fn times_have_their_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_767_323_045_999_999_999), "2026-01-02 03:04:05 UTC");
        assert_eq!(utc(4_107_542_399_000_000_000), "2100-02-28 23:59:59 UTC");
    }
}
