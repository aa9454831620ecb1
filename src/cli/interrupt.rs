//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use super::exit::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{Receiver, channel};

/// The exit status of a shell's child that was ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Whether the user wants an end.
pub(super) struct Interrupt {
    asked: Receiver<()>,
}

impl Interrupt {
    /// From now on, signals are noted and do not kill.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::io("cannot listen to signals", &error))?;
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for (count, _) in signals.forever().enumerate() {
                if count > 0 || tell.send(()).is_err() {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
        Ok(Self { asked })
    }

    /// Whether a signal came since the last question.
    pub(super) fn came(&self) -> bool {
        self.asked.try_recv().is_ok()
    }
}
