//! Rings that the server of a program hands out. They may be in anonymous memory, so only the server has them.

use super::error::{ReaderError, ReaderErrorKind};
use super::handle::Reader;
use super::open::ReaderOptions;
use crate::control::{ControlError, ControlErrorKind, Process, ServedFile, explicit_address};
use std::path::Path;
use std::sync::Arc;

/// The server from which a ring came.
#[derive(Debug)]
pub(super) struct ServedBy {
    process: Arc<Process>,
    file: ServedFile,
}

/// A name that leads to a ring of a server: `PROCESS` or `PROCESS/RING`. A process is `pid:N`, the path of a socket, or
/// `@name`. A ring is its name, or `#` and its number.
struct ServedName {
    process: String,
    ring: Option<String>,
}

impl ServedName {
    /// Returns `None` if the name is that of a file.
    fn of(name: &Path) -> Option<Self> {
        let text = name.to_str()?;
        let is_process = |text: &str| text.starts_with("pid:") || explicit_address(text).is_some();
        if let Some((process, ring)) = text.rsplit_once('/').filter(|(process, _)| is_process(process)) {
            return Some(Self { process: process.to_owned(), ring: Some(ring.to_owned()) });
        }
        is_process(text).then(|| Self { process: text.to_owned(), ring: None })
    }

    fn is_meant(&self, file: &ServedFile) -> bool {
        match self.ring.as_deref() {
            None => true,
            Some(ring) => match ring.strip_prefix('#') {
                Some(number) => number.parse() == Ok(file.id()),
                None => file.name() == ring,
            },
        }
    }
}

/// Opens a ring of a server. Returns `None` if the name is that of a file.
pub(super) fn open(options: &ReaderOptions, name: &Path) -> Option<Result<Reader, ReaderError>> {
    let served = ServedName::of(name)?;
    Some(open_named(options, &served, name).map_err(|error| error.at(name)))
}

fn open_named(options: &ReaderOptions, name: &ServedName, as_written: &Path) -> Result<Reader, ReaderError> {
    let process = Process::find(&name.process).map_err(refused)?.swap_remove(0);
    let files = recorders(&process).map_err(refused)?;
    let mut meant = files.iter().filter(|file| name.is_meant(file));
    match (meant.next(), meant.next()) {
        (Some(file), None) => {
            open_file(options, Arc::new(process), file.clone(), Some((as_written.to_path_buf(), options.clone())))
        }
        (found, _) => {
            let rings: Vec<String> = files.iter().map(|file| format!("{} (#{})", file.name(), file.id())).collect();
            let what = if found.is_none() { "no such ring" } else { "several such rings" };
            let message = format!(
                "process {} has {what}, expected one of: {}; write {}/NAME or {}/#NUMBER",
                process.pid(),
                if rings.is_empty() { "none".to_owned() } else { rings.join(", ") },
                name.process,
                name.process
            );
            Err(ReaderError::new(ReaderErrorKind::NotFound, message))
        }
    }
}

/// Returns the rings of a process, without the shards that a reader finds through shard 0.
pub(super) fn recorders(process: &Process) -> Result<Vec<ServedFile>, ControlError> {
    let mut files = process.files()?;
    files.retain(|file| file.shard().is_none_or(|(_, index)| index == 0));
    Ok(files)
}

fn open_file(
    options: &ReaderOptions,
    process: Arc<Process>,
    file: ServedFile,
    opened_as: Option<(std::path::PathBuf, ReaderOptions)>,
) -> Result<Reader, ReaderError> {
    let descriptor = process.import(&file).map_err(refused)?;
    options.open_served(descriptor, ServedBy { process, file }, opened_as)
}

impl ServedBy {
    /// Returns true if the program or its server is known to have ended.
    pub(super) fn is_gone(&self) -> bool {
        self.process.is_gone()
    }

    /// Returns the name of the ring, for messages.
    pub(super) fn label(&self) -> String {
        format!("pid:{}/{}", self.process.pid(), self.file.name())
    }

    /// Returns true if the ring is a shard, so that the server may have the others.
    pub(super) fn is_shard(&self) -> bool {
        self.file.shard().is_some()
    }

    /// Opens another shard of the recorder of this ring.
    pub(super) fn open_shard(&self, index: u32) -> Result<Reader, ReaderError> {
        let group = self.file.shard().map(|(group, _)| group);
        let files = self.process.files().map_err(refused)?;
        let found = files.into_iter().find(|file| group.is_some_and(|group| file.shard() == Some((group, index))));
        let file = found.ok_or_else(|| {
            let message = format!("the server of process {} has no shard {index}: it has ended", self.process.pid());
            ReaderError::new(ReaderErrorKind::NotFound, message)
        })?;
        open_file(&Reader::options(), Arc::clone(&self.process), file, None)
    }
}

fn refused(error: ControlError) -> ReaderError {
    let kind = match error.kind() {
        ControlErrorKind::NoServer | ControlErrorKind::NotFound | ControlErrorKind::Gone => ReaderErrorKind::NotFound,
        ControlErrorKind::PermissionDenied => ReaderErrorKind::PermissionDenied,
        _ => ReaderErrorKind::Io,
    };
    ReaderError::new(kind, error.to_string())
}
