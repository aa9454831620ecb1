//! Colours. [`super::out`] leaves them out if the output is not a terminal.

use eventring::schema::perf::CallSiteLevel;
use std::fmt;

/// A style of text, between `{STYLE}` and `{STYLE:#}`. It is written as a mark, of which [`super::out`] makes an escape
/// sequence: the escape sequences of a text that is shown do not get through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style(Option<u8>);

/// The first of the marks. They are noncharacters of Unicode, which are for use inside of a program.
const FIRST_MARK: char = '\u{fdd0}';
/// The mark for the end of a style.
const END: char = '\u{fdee}';
/// The mark for a line break inside of what is written at once.
pub(crate) const BREAK: char = '\u{fdef}';

/// The parameters of the escape sequences.
const STYLES: [&str; 10] = ["1;31", "33", "2", "1", "36", "32", "34", "35", "96", "92"];

pub(crate) const ERROR: Style = Style(Some(0));
pub(crate) const WARNING: Style = Style(Some(1));
pub(crate) const DIM: Style = Style(Some(2));
pub(crate) const BOLD: Style = Style(Some(3));
pub(crate) const GOOD: Style = Style(Some(5));
const BLUE: Style = Style(Some(6));
pub(crate) const PLAIN: Style = Style(None);
/// The colours that tell event types apart.
const TYPES: std::ops::Range<u8> = 4..10;

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.0.and_then(|index| char::from_u32(u32::from(FIRST_MARK) + u32::from(index)));
        mark.map_or(Ok(()), |mark| fmt::Write::write_char(f, if f.alternate() { END } else { mark }))
    }
}

/// Returns the parameters of the escape sequence that a mark stands for.
pub(crate) fn escape(mark: char) -> Option<&'static str> {
    if mark == END { Some("0") } else { STYLES.get(u32::from(mark).checked_sub(FIRST_MARK.into())? as usize).copied() }
}

/// Returns the number of characters that are seen of a text with styles.
pub(crate) fn seen_chars(text: &str) -> usize {
    text.chars().filter(|c| !(FIRST_MARK..=BREAK).contains(c)).count()
}

/// Returns the colour of an event type, which is the same in every run. `name` is its name, if it is known.
pub(crate) fn event_type(code: u16, name: Option<&str>) -> Style {
    if name == Some("RECORD_ERROR") {
        return ERROR;
    }
    Style(TYPES.clone().nth(usize::from(code) % TYPES.len()))
}

/// Returns the colour of a level of `tracing`.
pub(crate) fn level(level: CallSiteLevel) -> Style {
    match level {
        CallSiteLevel::Error => ERROR,
        CallSiteLevel::Warn => WARNING,
        CallSiteLevel::Info => GOOD,
        CallSiteLevel::Debug => BLUE,
        CallSiteLevel::Trace | CallSiteLevel::None => DIM,
    }
}

/// Applies the choice of `--color` to everything that is printed.
pub(crate) fn choose(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}
