//! Output for people: numbers, sizes, times, text that comes from files, and the terminal's width.

use eventring::files::content_type_name;
use eventring::reader::RingInfo;
/// For what does not go through [`super::out`]: names of files, sentences of JSON, the frames of `top`.
pub(crate) use eventring_capture::text::one_line;
pub(crate) use eventring_export::numbers::{counted, grouped};
use jiff::Timestamp;
use jiff::tz::TimeZone;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use std::io::IsTerminal as AsTerminal;
use std::io::IsTerminal;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use std::os::fd::AsFd as AsTerminal;
use std::time::Duration;

/// Shows a size: `96 B`, `1.5 KiB`, `128 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value >= 100.0 || value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Shows a number per second: `950`, `9,500`, `12.3 k`, `1.25 M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e9 => format!("{:.2} G", r / 1e9),
        r if r >= 1e6 => format!("{:.2} M", r / 1e6),
        r if r >= 1e4 => format!("{:.1} k", r / 1e3),
        r => grouped(r.round() as u64),
    }
}

/// Returns a number of events in words: `no events`, `1 event`, `1,234 events`.
pub(crate) fn events(count: u64) -> String {
    if count == 0 { "no events".into() } else { counted(count, "event", "events") }
}

/// Returns the verb for a number of things of which something is said that happened to them.
pub(crate) fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Returns the name of a ring's content type: the name in the ring's header, or else the name that this program knows.
pub(crate) fn content_name(info: &RingInfo) -> &str {
    info.content_name.as_deref().unwrap_or(content_type_name(info.content_type))
}

/// Returns a duration as a short text: `850 µs`, `3.2 s`, `2 min 5 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 0.001 => format!("{} µs", duration.as_micros()),
        s if s < 1.0 => format!("{} ms", duration.as_millis()),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {} s", (s / 60.0) as u64, (s % 60.0) as u64),
        s => format!("{} h {} min", (s / 3600.0) as u64, (s % 3600.0 / 60.0) as u64),
    }
}

/// Format of times: the time zone in which they are shown.
pub(crate) struct TimeFormat {
    zone: TimeZone,
    utc: bool,
}

impl TimeFormat {
    /// Shows times in UTC or in local time.
    pub(crate) fn new(utc: bool) -> Self {
        Self { zone: if utc { TimeZone::UTC } else { TimeZone::system() }, utc }
    }

    fn zoned(&self, epoch_nanos: u64) -> Option<jiff::Zoned> {
        Some(Timestamp::from_nanosecond(epoch_nanos.into()).ok()?.to_zoned(self.zone.clone()))
    }

    /// Shows the date with the zone: `2026-01-02 +01:00`.
    pub(crate) fn date(&self, epoch_nanos: u64) -> String {
        let zone = if self.utc { "UTC" } else { "%:z" };
        self.shown(epoch_nanos, &format!("%Y-%m-%d {zone}"))
    }

    /// Shows the time of day: `03:04:05.123456789`.
    pub(crate) fn time(&self, epoch_nanos: u64) -> String {
        self.shown(epoch_nanos, "%H:%M:%S.%9f")
    }

    /// Returns the date and the time with the zone: `2026-01-02 03:04:05.123456 +01:00`.
    pub(crate) fn date_and_time(&self, epoch_nanos: u64) -> String {
        let zone = if self.utc { "UTC" } else { "%:z" };
        self.shown(epoch_nanos, &format!("%Y-%m-%d %H:%M:%S.%6f {zone}"))
    }

    /// Returns the time of day, `03:04:05`, with the date before it if it is not today: `2026-01-02 03:04:05`.
    pub(crate) fn moment(&self, epoch_nanos: u64) -> String {
        let is_today = self.zoned(epoch_nanos).is_some_and(|then| {
            let now = Timestamp::now().to_zoned(self.zone.clone());
            then.date() == now.date()
        });
        self.shown(epoch_nanos, if is_today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" })
    }

    /// Returns the date and the time as a part of a file's name: `2026-01-02T03.04.05`.
    pub(crate) fn file_name(&self, epoch_nanos: u64) -> String {
        self.shown(epoch_nanos, "%Y-%m-%dT%H.%M.%S")
    }

    fn shown(&self, epoch_nanos: u64, format: &str) -> String {
        match self.zoned(epoch_nanos) {
            Some(zoned) => zoned.strftime(format).to_string(),
            // The time is after the year 9999 and has no date, so the file is damaged. The number itself is shown.
            None => format!("{epoch_nanos} ns"),
        }
    }
}

/// Returns a name. The empty name is shown as `""`: an empty cell would say that there is none.
pub(crate) fn shown_name(name: &str) -> String {
    if name.is_empty() { "\"\"" } else { name }.to_owned()
}

/// Returns the width in columns if `out` is a terminal.
pub(crate) fn columns(out: &(impl IsTerminal + AsTerminal)) -> Option<usize> {
    if !out.is_terminal() {
        return None;
    }
    terminal_size(out).map(|(columns, _)| columns).filter(|columns| *columns > 0)
}

/// Returns the columns and the rows of the terminal `out`.
pub(crate) fn terminal_size(out: &impl AsTerminal) -> Option<(usize, usize)> {
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    let (columns, rows) = rustix::termios::tcgetwinsize(out).map(|size| (size.ws_col, size.ws_row)).ok()?;
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    let (columns, rows) = out.is_terminal().then(ratatui::crossterm::terminal::size)?.ok()?;
    Some((columns.into(), rows.into()))
}
