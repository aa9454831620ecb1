//! Progress display of the demo, and its report at the end.

use super::child::{ChildLine, Role};
use super::{DemoOutcome, INTERVAL};
use crate::format::{bytes, duration, grouped, one_line, rate};
use crate::paint::{BOLD, DIM, ERROR, GOOD, WARNING};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of rates in a curve.
const CURVE: usize = 30;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Time between two lines of progress if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// The progress on stderr. On a terminal, the same lines are drawn again and again. Otherwise, one line is printed
/// each second.
pub(super) struct Screen {
    view: ScreenView,
    start: Instant,
    next_line: Instant,
    recorded: Meter,
    read: Meter,
    payload: Meter,
    lost: u64,
    torn: u64,
    behind: u64,
}

enum ScreenView {
    Live { lines: Vec<ProgressBar>, _all: MultiProgress, is_plain: bool },
    Lines,
    Nothing,
}

/// A count and its recent rates of growth.
#[derive(Default)]
struct Meter {
    count: u64,
    at: f64,
    rates: VecDeque<f64>,
}

impl Meter {
    /// Stores `count`, which was measured `at` seconds after the start, and computes the rate since the last update.
    fn update(&mut self, count: u64, at: f64) {
        if at > self.at {
            self.rates.push_back(count.saturating_sub(self.count) as f64 / (at - self.at));
            if self.rates.len() > CURVE {
                self.rates.pop_front();
            }
        }
        (self.count, self.at) = (count, at);
    }

    /// Returns the mean rate of the last half second.
    fn rate(&self) -> f64 {
        let last = self.rates.len().min(5);
        self.rates.iter().rev().take(last).sum::<f64>() / last.max(1) as f64
    }

    fn curve(&self) -> String {
        let most = self.rates.iter().copied().fold(1.0, f64::max);
        let level = |rate: &f64| BARS[((rate / most * 7.0).round() as usize).min(7)];
        self.rates.iter().map(level).collect()
    }
}

impl Screen {
    pub(super) fn new(shows: bool, threads: u16, ring: &str, (writer, reader): (u32, u32)) -> Self {
        let start = Instant::now();
        let view = match (shows, io::stderr().is_terminal()) {
            (false, _) => ScreenView::Nothing,
            (true, false) => ScreenView::Lines,
            (true, true) => {
                let name = Path::new(ring).file_name().unwrap_or_default().to_string_lossy();
                anstream::eprintln!(
                    "{BOLD}{threads} threads{BOLD:#} of process {writer} {DIM}━▶{DIM:#} {BOLD}{}{BOLD:#} {DIM}━▶{DIM:#} \
                     process {reader}\n\
                     {DIM}watch the ring from another terminal: eventring watch {}{DIM:#}\n",
                    one_line(ring),
                    one_line(&name)
                );
                ScreenView::live()
            }
        };
        Self {
            view,
            start,
            next_line: start + LINE_INTERVAL,
            recorded: Meter::default(),
            read: Meter::default(),
            payload: Meter::default(),
            lost: 0,
            torn: 0,
            behind: 0,
        }
    }

    /// Shows a child's report.
    pub(super) fn progress(&mut self, role: Role, line: &ChildLine) {
        let at = line.decimal("at");
        match role {
            Role::Writer => self.recorded.update(line.number("recorded"), at),
            Role::Reader => {
                self.read.update(line.number("read"), at);
                self.payload.update(line.number("payload_bytes"), at);
                self.lost = line.number("gaps") + line.number("expired");
                self.torn = line.number("torn");
                self.behind = line.number("behind");
            }
        }
        match &self.view {
            ScreenView::Nothing => {}
            ScreenView::Live { lines, is_plain, .. } => {
                // `indicatif` writes to the terminal itself and not through `anstream`, so unwanted colours are
                // removed here.
                let styled = |row: String| if *is_plain { anstream::adapter::strip_str(&row).to_string() } else { row };
                lines.iter().zip(self.rows()).for_each(|(line, row)| line.set_message(styled(row)));
            }
            ScreenView::Lines => {
                let now = Instant::now();
                if now + INTERVAL / 2 >= self.next_line {
                    self.next_line = now + LINE_INTERVAL;
                    anstream::eprintln!(
                        "{:>6}  recorded {}, read {}, lost {}, torn {}",
                        duration(self.start.elapsed()),
                        grouped(self.recorded()),
                        grouped(self.read.count),
                        grouped(self.lost),
                        grouped(self.torn)
                    );
                }
            }
        }
    }

    /// Returns the number of recorded events that the children's reports show. The reader's report can arrive before
    /// the writer's report of the same events. An event that was read or lost must have been recorded, so the larger
    /// number is right.
    fn recorded(&self) -> u64 {
        self.recorded.count.max(self.read.count.saturating_add(self.lost))
    }

    fn rows(&self) -> [String; 5] {
        let meter = |label: &str, count: u64, meter: &Meter| {
            format!(
                "{label:<10}{BOLD}{:>15}{BOLD:#}  {:>8}/s  {DIM}{}{DIM:#}",
                grouped(count),
                rate(meter.rate()),
                meter.curve()
            )
        };
        let count = |label: &str, number: u64, bad: anstyle::Style, remark: &str| {
            let style = if number == 0 { GOOD } else { bad };
            format!("{label:<10}{style}{:>15}{style:#}  {DIM}{remark}{DIM:#}", grouped(number))
        };
        let payload = format!("payload {}, {}/s", bytes(self.payload.count), bytes(self.payload.rate() as u64));
        [
            meter("recorded", self.recorded(), &self.recorded),
            meter("read", self.read.count, &self.read),
            format!("{:<10}{:>15}  {DIM}{payload}{DIM:#}", "behind", grouped(self.behind)),
            count("lost", self.lost, WARNING, "overwritten before they were read"),
            count("torn", self.torn, ERROR, "of those read, by checksum"),
        ]
    }

    /// Removes the progress lines.
    pub(super) fn end(&mut self) {
        if let ScreenView::Live { lines, .. } = &self.view {
            lines.iter().for_each(ProgressBar::finish_and_clear);
        }
        self.view = ScreenView::Nothing;
    }
}

impl ScreenView {
    fn live() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(15));
        let style = ProgressStyle::with_template("  {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let line = |_| all.add(ProgressBar::new_spinner().with_style(style.clone()));
        let is_plain = anstream::AutoStream::choice(&io::stderr()) == anstream::ColorChoice::Never;
        Self::Live { lines: (0..5).map(line).collect(), _all: all, is_plain }
    }
}

/// Writes the result for people.
pub(super) fn report(out: &mut impl Write, outcome: &DemoOutcome, ring: &str, kept: bool) -> io::Result<()> {
    let per_second = |count: f64| if outcome.seconds > 0.0 { count / outcome.seconds } else { 0.0 };
    let row = |out: &mut dyn Write, label: &str, number: u64, style: anstyle::Style, remark: String| {
        let remark = if remark.is_empty() { remark } else { format!("  {DIM}{remark}{DIM:#}") };
        writeln!(out, "  {label:<10}{style}{:>15}{style:#}{remark}", grouped(number))
    };
    let or = |number: u64, bad: anstyle::Style| if number == 0 { GOOD } else { bad };
    let recorded = format!(
        "events in {}: {}/s, {}/s of payload",
        duration(Duration::from_secs_f64(outcome.seconds)),
        rate(per_second(outcome.recorded as f64)),
        bytes(per_second(outcome.payload_bytes as f64) as u64)
    );
    row(out, "recorded", outcome.recorded, BOLD, recorded)?;
    row(out, "read", outcome.read, BOLD, "by another process, at the same time".into())?;
    let lost = match outcome.lost {
        0 => "",
        _ => "overwritten before they were read; each one counted",
    };
    row(out, "lost", outcome.lost, or(outcome.lost, WARNING), lost.into())?;
    row(
        out,
        "torn",
        outcome.torn,
        or(outcome.torn, ERROR),
        "by a checksum over type, extension words and payload".into(),
    )?;
    if outcome.record_errors > 0 {
        row(out, "errors", outcome.record_errors, WARNING, "events that became RECORD_ERROR".into())?;
    }
    if outcome.is_accounted() {
        writeln!(out, "  {GOOD}recorded = read + lost{GOOD:#}")?;
    } else {
        writeln!(out, "  {ERROR}recorded ≠ read + lost{ERROR:#}")?;
    }
    if kept {
        writeln!(out, "  the ring is still there: {}", one_line(ring))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_shown_as_read_than_as_recorded() {
        let mut screen = Screen::new(false, 1, "ring", (1, 2));
        // The writer's report (10 events) is older than the reader's report (12 read and 3 lost).
        screen.recorded.update(10, 0.1);
        screen.read.update(12, 0.15);
        screen.lost = 3;
        assert_eq!(screen.recorded(), 15);
        assert!(screen.rows()[0].contains("15") && screen.rows()[1].contains("12"));
        screen.recorded.update(20, 0.2);
        assert_eq!(screen.recorded(), 20);
    }
}
