//! A program in a pseudo-terminal: the test presses keys, and sees the screen as a user does.

use crate::fixtures::*;
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::io::ErrorKind;
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::ExitStatus;

/// The time after which a screen that has not come never will.
const LIMIT: Duration = Duration::from_secs(60);
/// A line that is in the terminal before the program starts.
pub const BEFORE: &str = "$ a line from before";

pub const ENTER: &str = "\r";
pub const ESC: &str = "\u{1b}";
pub const UP: &str = "\u{1b}[A";
pub const DOWN: &str = "\u{1b}[B";
pub const CTRL_C: &str = "\u{3}";

/// A terminal in which a program runs.
pub struct Terminal {
    pub child: Child,
    /// The side of the user.
    user: File,
    /// The side of the program. It is kept open, so that its modes can be asked for after the program's end.
    tty: OwnedFd,
    parser: vt100::Parser,
    /// All that the program has written.
    pub written: Vec<u8>,
    modes_before: String,
}

impl Terminal {
    /// Starts a program in a new terminal with this width and height.
    pub fn start(mut command: Command, (columns, rows): (u16, u16)) -> Self {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let (mut user, mut tty) = (-1, -1);
        // SAFETY: the first two pointers are to integers, and the last one to a struct, which live through the call. No
        // name and no modes are asked for.
        let made = unsafe { libc::openpty(&mut user, &mut tty, std::ptr::null_mut(), std::ptr::null(), &size) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the call has made this descriptor, and nobody else has it.
        let user = unsafe { OwnedFd::from_raw_fd(user) };
        // SAFETY: as above.
        let tty = unsafe { OwnedFd::from_raw_fd(tty) };
        for end in [&user, &tty] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).unwrap();
        }
        let flags = rustix::fs::fcntl_getfl(&user).unwrap();
        rustix::fs::fcntl_setfl(&user, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        writeln!(File::from(tty.try_clone().unwrap()), "{BEFORE}").unwrap();
        let modes_before = modes(&tcgetattr(&tty).unwrap());

        command.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("LINES");
        let number = tty.as_raw_fd();
        let take_terminal = move || {
            // SAFETY: the descriptor is open until `spawn` returns.
            match unsafe { libc::login_tty(number) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec, the child calls only `login_tty`, which makes system calls and does not
        // allocate.
        unsafe { command.pre_exec(take_terminal) };
        let child = command.spawn().unwrap();
        let parser = vt100::Parser::new(some(rows), some(columns), 0);
        Self { child, user: File::from(user), tty, parser, written: Vec::new(), modes_before }
    }

    /// Shows what the program has written since the last call. Returns false if that is nothing.
    fn take(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.user.read(&mut bytes) {
            Ok(count) => {
                self.parser.process(&bytes[..count]);
                self.written.extend(&bytes[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the screen as text, with a line for each row.
    pub fn shown(&mut self) -> String {
        while self.take() {}
        let (_, columns) = self.parser.screen().size();
        let rows = self.parser.screen().rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    /// Waits until `is_it` returns true for the text of the screen, and returns the text.
    pub fn wait_for(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let (rows, _) = self.parser.screen().size();
        for empty in [String::new(), "\n".repeat(usize::from(rows.get()))] {
            assert!(!is_it(&empty), "an empty screen must not pass for {what}");
        }
        let until = Instant::now() + LIMIT;
        loop {
            let shown = self.shown();
            if is_it(&shown) {
                return shown;
            }
            assert!(Instant::now() < until, "no {what}:\n{shown}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen contains all of these texts.
    pub fn wait(&mut self, texts: &[&str]) -> String {
        self.wait_for(&format!("{texts:?}"), |shown| texts.iter().all(|text| shown.contains(text)))
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the terminal. The system tells the program with SIGWINCH.
    pub fn resize(&mut self, (columns, rows): (u16, u16)) {
        while self.take() {}
        self.parser.screen_mut().set_size(some(rows), some(columns));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.user, size).unwrap();
    }

    /// Shows for this time what the program writes.
    pub fn watch(&mut self, time: Duration) -> String {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.take();
            thread::sleep(Duration::from_millis(5));
        }
        self.shown()
    }

    /// Presses keys every second until the program ends, as a user does. (If a key and a change of the size come at the
    /// same moment, crossterm 0.29 reads the key only when another one comes.)
    pub fn press_until_end(&mut self, keys: &str) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            self.press(keys);
            self.watch(Duration::from_secs(1));
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
        }
        panic!("the program goes on:\n{}", self.shown());
    }

    /// Waits for the end of the program.
    pub fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        loop {
            let shown = self.shown();
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the program goes on:\n{shown}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the terminal, and returns how the program ends, if it ends.
    pub fn close(&mut self) -> Option<ExitStatus> {
        self.user = File::open("/dev/null").unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let status = self.child.try_wait().unwrap();
            if status.is_some() || Instant::now() > until {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns what is not as it was before the program.
    pub fn changes(&mut self) -> Vec<String> {
        let shown = self.shown();
        let modes = modes(&tcgetattr(&self.tty).unwrap());
        let screen = self.parser.screen();
        let mut changes = Vec::new();
        if modes != self.modes_before {
            changes.push(format!("modes {modes}, before {}", self.modes_before));
        }
        if screen.alternate_screen() {
            changes.push("the alternate screen".to_owned());
        }
        if screen.hide_cursor() {
            changes.push("no cursor".to_owned());
        }
        if shown.trim_end() != BEFORE {
            changes.push(format!("another screen:\n{shown}"));
        }
        changes
    }

    /// Returns the colours that the program has asked for: the numbers in its sequences for colours.
    pub fn colours(&mut self) -> Vec<String> {
        while self.take() {}
        let written = String::from_utf8_lossy(&self.written);
        let sequences = written.split("\u{1b}[").skip(1);
        let styles = sequences.filter_map(|it| {
            let end = it.find(|letter: char| letter.is_ascii_alphabetic())?;
            it[end..].starts_with('m').then(|| &it[..end])
        });
        let is_colour = |number: &&str| {
            // 39 and 49 are no colours but the terminal's own ones.
            matches!(number.parse::<u32>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107))
        };
        styles.flat_map(|it| it.split([';', ':'])).filter(is_colour).map(str::to_owned).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn some(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap()
}

fn modes(termios: &Termios) -> String {
    format!("{:?}", (termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes))
}
