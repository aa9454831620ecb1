//! The signals that end a run.

use crate::input::programs::program::Program;
use crate::interrupt::Interrupt;
use crate::text::out::stderr;
use rustix::process::Signal;
use signal_hook::consts::SIGINT;
use std::cell::Cell;
use std::io::Write as _;

/// The signals to `eventring` while the program runs. The first asks the program to end, the second kills it.
pub(super) struct RunSignals {
    interrupt: Interrupt,
    came: Cell<usize>,
}

impl RunSignals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        // A further signal ends this process wherever it is, so that it never hangs.
        Ok(Self { interrupt: Interrupt::listen_to(3)?, came: Cell::new(0) })
    }

    /// Hands the signals that have come on to the program. Returns true if one has come until now.
    pub(super) fn hand_on(&self, program: &mut Program) -> bool {
        while let Some(signal) = self.interrupt.next() {
            let before = self.came.replace(self.came.get() + 1);
            let done = match (before, signal) {
                // A terminal has sent it to the program, too.
                (0, SIGINT) => "waiting for the program to end",
                (0, _) => {
                    program.send(Signal::TERM);
                    "SIGTERM was sent to the program"
                }
                _ => {
                    program.send(Signal::KILL);
                    continue;
                }
            };
            // The terminal may be closed.
            let _ = writeln!(stderr(), "interrupted: {done}; a second signal kills it");
        }
        self.came()
    }

    /// Returns true if a signal has come.
    pub(super) fn came(&self) -> bool {
        self.came.get() > 0
    }
}
