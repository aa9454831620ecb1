//! The files of a format that is a directory.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// A place for the files of an export in a format of several files ([`Format::is_directory`](crate::Format)).
pub trait ExportFiles {
    /// Makes a file with this name, and opens it for writing. A name has only ASCII letters, digits, `.`, `_` and `-`,
    /// and an export makes no two files with the same name.
    ///
    /// # Errors
    /// The file cannot be made.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + Send>>;
}

/// The files are made in the directory with this path, which must exist. A file that is there already is an error.
impl ExportFiles for PathBuf {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(File::create_new(self.join(name))?))
    }
}
