//! Colours. `anstream` removes them if the output is not a terminal.

use anstyle::{AnsiColor, Effects, Style};
use eventring::schema::perf::CallSiteLevel;

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
pub(crate) const BOLD: Style = Style::new().effects(Effects::BOLD);
pub(crate) const PLAIN: Style = Style::new();

/// Colours that tell event types apart.
const TYPES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::Magenta,
    AnsiColor::BrightCyan,
    AnsiColor::BrightGreen,
];

/// Returns the colour of an event type, which is the same in every run. `name` is its name, if it is known.
pub(crate) fn event_type(code: u16, name: Option<&str>) -> Style {
    if name == Some("RECORD_ERROR") {
        return ERROR;
    }
    TYPES[usize::from(code) % TYPES.len()].on_default()
}

/// Returns the colour of a level of `tracing`.
pub(crate) fn level(level: CallSiteLevel) -> Style {
    match level {
        CallSiteLevel::Error => ERROR,
        CallSiteLevel::Warn => WARNING,
        CallSiteLevel::Info => GOOD,
        CallSiteLevel::Debug => AnsiColor::Blue.on_default(),
        CallSiteLevel::Trace | CallSiteLevel::None => DIM,
    }
}

/// Applies the choice of `--color` to everything that is printed through `anstream`.
pub(crate) fn choose(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}
