//! Making text from files and other processes safe to show.

/// Returns true if a terminal does something else with the character than to show it.
#[must_use]
pub fn harms(c: char) -> bool {
    // U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 change the direction of writing. U+2028 and U+2029
    // separate lines and paragraphs.
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text on one line, without characters that harm.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if harms(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
