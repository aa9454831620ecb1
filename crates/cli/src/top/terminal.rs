//! The terminal, which is as before at the end.

use super::draw::draw;
use super::model::TopScreen;
use super::view::TopView;
use crate::exit::Failure;
use ratatui::DefaultTerminal;

/// A terminal in which frames are drawn. It is restored when this value is dropped, and before the message of a panic.
pub(super) struct TopTerminal {
    terminal: DefaultTerminal,
}

impl TopTerminal {
    /// Takes the terminal.
    pub(super) fn start() -> Result<Self, Failure> {
        let started = ratatui::try_init();
        let terminal = started.map_err(|error| {
            // The first step may have been made. If it was not, there is nothing to undo.
            let _ = ratatui::try_restore();
            Failure::io("cannot draw on the terminal", &error)
        })?;
        Ok(Self { terminal })
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, screen: &TopScreen, view: &TopView) -> Result<(), Failure> {
        let drawn = self.terminal.draw(|frame| draw(screen, view, frame.area(), frame.buffer_mut()));
        drawn.map(drop).map_err(|error| Failure::io("cannot draw on the terminal", &error))
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        // In a panic, the hook has restored the terminal already. Once more would move the cursor over its message.
        if !std::thread::panicking() {
            // If the terminal is gone, there is nobody to tell.
            let _ = ratatui::try_restore();
        }
    }
}
