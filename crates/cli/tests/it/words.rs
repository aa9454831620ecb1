//! Command lines of the program, of words, paths and lists of words.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One word of a command line, or several.
pub trait Words {
    fn add_to(&self, command: &mut Command);
}

macro_rules! are_words {
    ($($kind:ty),*) => {
        $(impl Words for $kind {
            fn add_to(&self, command: &mut Command) {
                command.arg(self);
            }
        })*
    };
}

are_words!(str, String, Path, PathBuf);

impl<T: Words + ?Sized> Words for &T {
    fn add_to(&self, command: &mut Command) {
        (*self).add_to(command);
    }
}

impl<T: Words> Words for [T] {
    fn add_to(&self, command: &mut Command) {
        self.iter().for_each(|word| word.add_to(command));
    }
}

impl<T: Words, const N: usize> Words for [T; N] {
    fn add_to(&self, command: &mut Command) {
        self[..].add_to(command);
    }
}

impl<T: Words> Words for Vec<T> {
    fn add_to(&self, command: &mut Command) {
        self[..].add_to(command);
    }
}

/// Makes the command that runs the program with these words.
macro_rules! program {
    ($($word:expr),* $(,)?) => {{
        let mut command = $crate::program::program(&[]);
        $($crate::words::Words::add_to(&$word, &mut command);)*
        command
    }};
}

/// Runs the program with these words to its end.
macro_rules! run {
    ($($word:expr),* $(,)?) => {
        $crate::program::finish(program!($($word),*))
    };
}

/// Starts the program with these words.
macro_rules! live {
    ($($word:expr),* $(,)?) => {
        $crate::program::Live::from_command(program!($($word),*))
    };
}
