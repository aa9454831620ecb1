//! Where output goes: into a file that appears when it is whole, or straight into a device or a pipe.

use super::exit::{Exit, Failure};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What the path after `--output` is.
pub(super) enum Target {
    /// A file, to be made or replaced.
    File,
    /// A device or a pipe: it is written to, never replaced.
    Open(File),
}

impl Target {
    /// Looks what is there. Only regular files are replaced, and only with `force`; symbolic links to files never are.
    pub(super) fn of(output: &Path, force: bool) -> Result<Self, Failure> {
        let refuse = |exit, what: &str| Failure::new(exit, format!("cannot write {}: {what}", output.display()));
        let failed = |error: io::Error| Failure::writing(output, &error);
        let itself = match fs::symlink_metadata(output) {
            Ok(itself) => itself,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::File),
            Err(error) => return Err(failed(error)),
        };
        // Through links: /dev/stdout is one.
        let behind = fs::metadata(output).map(|behind| behind.file_type());
        match behind {
            Ok(behind) if behind.is_dir() => Err(refuse(Exit::Exists, "it is a directory; name a file in it")),
            Ok(behind) if behind.is_socket() => Err(refuse(
                Exit::Exists,
                "it is a socket; write to stdout (`-`) and pipe that into a program that connects",
            )),
            Ok(behind) if !behind.is_file() => {
                OpenOptions::new().write(true).open(output).map(Self::Open).map_err(failed)
            }
            _ if itself.is_symlink() => Err(refuse(
                Exit::Exists,
                "it is a symbolic link, which is not replaced; name the file that it leads to",
            )),
            _ if !force => Err(refuse(Exit::Exists, "it exists; choose another name, or --force")),
            _ => Ok(Self::File),
        }
    }
}

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
