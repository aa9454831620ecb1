//! Output files that appear when they are whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that is removed again unless it is published.
pub(super) struct Unfinished {
    pub(super) file: File,
    path: PathBuf,
}

impl Unfinished {
    pub(super) fn create(output: &Path) -> io::Result<Self> {
        let mut name = OsString::from(".");
        name.push(output.file_name().ok_or(io::ErrorKind::IsADirectory)?);
        name.push(format!(".{}", std::process::id()));
        let path = output.with_file_name(name);
        // As private as a ring.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&path)?;
        Ok(Self { file, path })
    }

    pub(super) fn publish(self, output: &Path, force: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if !force {
            // Unlike a rename, a link does not replace what has come meanwhile. The first name goes when `self` does.
            match fs::hard_link(&self.path, output) {
                // There are file systems without links.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !output.exists() => {}
                done => return done,
            }
        }
        fs::rename(&self.path, output)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}
