//! Writes all output for people. Control characters from a file, a ring or another process are replaced before they
//! reach the terminal.

use super::paint::{BREAK, escape};
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use eventring_capture::text::harms;
use std::fmt::{Arguments, Write as _};
use std::io::{self, Write};

/// The room for a line, in bytes: longer ones are rare.
const LINE_BYTES: usize = 256;

/// An output for people. What is written to it by `write!` or `writeln!` is a line, or a part of one. Control characters
/// in it, and marks of the writing direction, do not get through; a style of [`super::paint`] does, and [`BREAK`]. The
/// most that a text can do is to paint itself.
pub(crate) struct Out<W> {
    pub(crate) to: W,
    /// True if styles are left out: by `--color` and the variables that mean the same, or because nobody sees colours.
    pub(crate) is_plain: bool,
}

impl<W: RawStream> Out<W> {
    fn new(to: W) -> Self {
        let is_plain = AutoStream::choice(&to) == ColorChoice::Never;
        Self { to, is_plain }
    }
}

/// Returns stdout.
pub(crate) fn stdout() -> Out<io::Stdout> {
    Out::new(io::stdout())
}

/// Returns stderr.
pub(crate) fn stderr() -> Out<io::Stderr> {
    Out::new(io::stderr())
}

/// Prints a line for people on stderr.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // Nobody can be told of an error.
        let _ = writeln!($crate::text::out::stderr(), $($text)*);
    }};
}

/// Returns the place of the first character of a line that is not simply written.
fn find_special(line: &str) -> Option<usize> {
    line.bytes().position(|byte| !matches!(byte, b' '..=b'~'))
}

impl<W: Write> Write for Out<W> {
    fn write_fmt(&mut self, text: Arguments<'_>) -> io::Result<()> {
        let mut line = String::with_capacity(LINE_BYTES);
        line.write_fmt(text).map_err(io::Error::other)?;
        let mut rest = line.strip_suffix('\n').unwrap_or(&line);
        // Almost all lines are as they should be.
        let Some(first) = find_special(rest) else { return self.to.write_all(line.as_bytes()) };
        let mut safe = String::with_capacity(line.len() + LINE_BYTES);
        let mut next = Some(first);
        while let Some(at) = next {
            safe += &rest[..at];
            rest = &rest[at..];
            let Some(c) = rest.chars().next() else { break };
            match (c, escape(c)) {
                (BREAK, _) => safe.push('\n'),
                (_, Some(_)) if self.is_plain => {}
                (_, Some(style)) => safe.extend(["\u{1b}[", style, "m"]),
                (_, None) => safe.push(if harms(c) { char::REPLACEMENT_CHARACTER } else { c }),
            }
            rest = &rest[c.len_utf8()..];
            next = find_special(rest);
        }
        safe += rest;
        if line.ends_with('\n') {
            safe.push('\n');
        }
        self.to.write_all(safe.as_bytes())
    }

    /// Writes bytes of JSON, which has no escape character.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes.iter().position(|byte| *byte == 0x1b) {
            None => self.to.write(bytes),
            Some(0) => self.to.write_all(b"?").map(|()| 1),
            Some(at) => self.to.write(&bytes[..at]),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns what is shown without colours.
#[cfg(test)]
pub(crate) fn shown(write: impl FnOnce(&mut Out<Vec<u8>>) -> io::Result<()>) -> String {
    let mut out = Out { to: Vec::new(), is_plain: true };
    write(&mut out).unwrap();
    String::from_utf8(out.to).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::paint::{DIM, ERROR};

    fn written(write: impl FnOnce(&mut Out<Vec<u8>>) -> io::Result<()>) -> String {
        let mut out = Out { to: Vec::new(), is_plain: false };
        write(&mut out).unwrap();
        String::from_utf8(out.to).unwrap()
    }

    #[test]
    fn a_name_that_nobody_has_cleaned_gives_no_order_to_the_terminal() {
        let name = "\u{1b}[2J\u{9b}31m\rx\u{202e}\n\u{1b}]0;title\u{7}\nüñ\n";
        let shown = written(|out| writeln!(out, "{DIM}{name}{DIM:#} {name}"));
        let safe = "\u{fffd}[2J\u{fffd}31m\u{fffd}x\u{fffd}\u{fffd}\u{fffd}]0;title\u{fffd}\u{fffd}üñ\u{fffd}";
        assert_eq!(shown, format!("\u{1b}[2m{safe}\u{1b}[0m {safe}\n"));
        assert_eq!(written(|out| writeln!(&mut &mut *out, "{name}")), format!("{safe}\n"));
        assert_eq!(written(|out| out.write_all(b"\x1b[2J{}\n")), "?[2J{}\n");
    }

    #[test]
    fn styles_and_breaks_are_written_as_a_terminal_wants_them() {
        let shown = written(|out| writeln!(out, "{ERROR}a{ERROR:#}{BREAK}b"));
        assert_eq!(shown, "\u{1b}[1;31ma\u{1b}[0m\nb\n");
    }
}
