//! The capture of a run. The capture gets its name when the run has counted instructions.

use crate::exit::{Exit, Failure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A capture that gets its name when the run has counted something. A run that fails leaves an older capture as it is.
pub(super) struct UnfinishedCapture {
    output: PathBuf,
    temporary: TempPath,
}

impl UnfinishedCapture {
    /// Makes a file with another name in the directory of `output`.
    pub(super) fn beside(output: &Path) -> Result<Self, Failure> {
        let output = output.to_owned();
        let directory = output.parent().filter(|directory| !directory.as_os_str().is_empty());
        let mut name = OsString::from(".");
        name.push(output.file_name().unwrap_or_default());
        name.push(".");
        let made = tempfile::Builder::new().prefix(&name).tempfile_in(directory.unwrap_or(Path::new(".")));
        let temporary = made.map_err(|error| Failure::writing(&output, &error))?.into_temp_path();
        Ok(Self { output, temporary })
    }

    pub(super) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the capture its name.
    pub(super) fn publish(self, force: bool) -> Result<(), Failure> {
        let Self { output, temporary } = self;
        let published = if force { temporary.persist(&output) } else { temporary.persist_noclobber(&output) };
        published.map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => Exit::Exists
                .failure(format!("cannot write {}: it exists; choose another name, or --force", output.display())),
            _ => Failure::writing(&output, &error.error),
        })
    }
}
