//! The thread that writes the lines of a watch to stderr. If nobody reads stderr, only this thread waits.

use crate::input::reading::spinner;
use crate::text::format::counted;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The largest number of lines that wait to be shown. Further ones are left out, and counted.
const WAITING_MAX: usize = 1000;
/// The longest time for which the end of a watch waits until all lines are shown, and again until its report is.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// Ends the process with this code if stderr does not take the rest in time. A thread that waits for a reader holds
/// the lock of stderr, so nothing else can be said, and a usual exit might wait for it, too.
pub(super) fn end_even_if_nobody_reads(code: i32) {
    std::thread::spawn(move || {
        std::thread::sleep(END_TIME_MAX);
        signal_hook::low_level::exit(code);
    });
}

/// A bar, and lines above it.
pub(super) struct ShownLines {
    shown: Option<SyncSender<Shown>>,
    has_ended: Receiver<()>,
    left_out: Cell<u64>,
}

/// A line, or the present text of the bar.
enum Shown {
    Line(String),
    Progress(String),
}

impl ShownLines {
    pub(super) fn new() -> Self {
        let (shown, show) = sync_channel(WAITING_MAX);
        let (end, has_ended) = sync_channel(0);
        std::thread::spawn(move || {
            show_all(&show);
            drop(end);
        });
        Self { shown: Some(shown), has_ended, left_out: Cell::new(0) }
    }

    /// Shows a line.
    pub(super) fn say(&self, line: String) {
        let is_taken = self.shown.as_ref().is_some_and(|shown| shown.try_send(Shown::Line(line)).is_ok());
        if !is_taken {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// Shows how far the watch is. If many lines wait, the text is left out.
    pub(super) fn progress(&self, text: String) {
        let _ = self.shown.as_ref().map(|shown| shown.try_send(Shown::Progress(text)));
    }

    /// Removes the bar, once all lines are shown or nobody reads them. Returns what is to be said of lines that were
    /// left out.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.shown = None;
        let is_stuck = self.has_ended.recv_timeout(END_TIME_MAX) == Err(RecvTimeoutError::Timeout);
        match self.left_out.get() {
            0 if is_stuck => Some("lines were not shown, because stderr is not read".to_owned()),
            0 => None,
            lines => Some(format!(
                "{} not shown, because stderr was not read in time",
                counted(lines, "line was", "lines were")
            )),
        }
    }
}

fn show_all(show: &Receiver<Shown>) {
    let bar = spinner();
    for shown in show {
        match shown {
            Shown::Line(line) => bar.suspend(|| say!("{line}")),
            Shown::Progress(text) => {
                bar.set_message(text);
                bar.tick();
            }
        }
    }
    bar.finish_and_clear();
}
