//! The terminal, which is restored at the end.

use super::draw::draw;
use super::model::TopScreen;
use super::view::TopView;
use crate::exit::Failure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A terminal in which frames are drawn. It is restored when this value is dropped, and before the message of a panic.
pub(super) struct TopTerminal {
    /// The terminal. It is not dropped: if it cannot show the cursor then, it prints that, and panics if stderr is the
    /// closed terminal.
    terminal: ManuallyDrop<DefaultTerminal>,
    /// Keys and changes of the size. A thread of its own waits for them: when the terminal is closed, crossterm 0.29
    /// reads its end again and again, and does not return.
    events: Receiver<io::Result<Event>>,
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
        let (tell, events) = channel();
        std::thread::spawn(move || {
            let mut is_over = false;
            while !is_over {
                let event = event::read();
                is_over = event.is_err();
                is_over |= tell.send(event).is_err();
            }
        });
        Ok(Self { terminal: ManuallyDrop::new(terminal), events })
    }

    /// Waits at most this long for the next key or change of the size.
    pub(super) fn next_event(&self, wait: Duration) -> Result<Option<Event>, Failure> {
        let event = match self.events.recv_timeout(wait) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        event.map_err(|error| Failure::io("cannot read from the terminal", &error))
    }

    /// Returns true if the terminal was closed, or has failed.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) fn is_gone(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdout = io::stdout();
        // The system reports these two whether they are asked for or not.
        let mut found = [PollFd::new(&stdout, PollFlags::empty())];
        let is_known = poll(&mut found, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
        is_known && found[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Returns false: other systems end the program.
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    pub(super) fn is_gone(&self) -> bool {
        false
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
        let _ = self.terminal.show_cursor();
    }
}
