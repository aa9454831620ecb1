//! Rings that the server of a program hands out. They may be in anonymous memory, so only the server has them.

use super::open::ReaderOptions;
use crate::control::{ControlError, ControlErrorKind, Process, ServedFile, ServerAddress};
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::handle::Reader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of rings that an error names.
const NAMED_MAX: usize = 20;

/// The server from which a ring came.
#[derive(Debug)]
pub(in crate::reader) struct ServedBy {
    server: Arc<RingServer>,
    file: ServedFile,
    /// The name and the options with which the ring was opened, or `None` for a shard that a reader has found.
    opened_as: Option<(ServedName, ReaderOptions)>,
}

/// A server, and what it serves.
#[derive(Debug)]
struct RingServer {
    process: Process,
    /// The served files at the last look, or `None` before the first look.
    files: Mutex<Option<Vec<ServedFile>>>,
}

impl RingServer {
    fn new(process: Process) -> Arc<Self> {
        Arc::new(Self { process, files: Mutex::new(None) })
    }

    /// Returns the recorders' rings that `is_meant` accepts. The server is asked only if its rings have changed since
    /// the last call, so this may be called often.
    fn find(&self, is_meant: impl Fn(&ServedFile) -> bool) -> Result<Option<ServedFile>, ControlError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = !self.process.changes().is_empty();
        let known = match files.take().filter(|_| !has_changed) {
            Some(known) => known,
            None => without_further_shards(self.process.follow()?),
        };
        Ok(files.insert(known).iter().find(|file| is_meant(file)).cloned())
    }
}

/// A name that leads to a ring of a server: `PROCESS` or `PROCESS/RING`. A process is `pid:N`, the path of a socket, or
/// `@name`. A ring is its name, or `#` and its number.
#[derive(Clone, Debug)]
struct ServedName {
    as_written: PathBuf,
    process: String,
    /// The address, if it was written. A program that is started again has the same address, and another process id.
    address: Option<ServerAddress>,
    ring: Option<String>,
}

impl ServedName {
    /// Returns `None` if the name is that of a file.
    fn parse(name: &Path) -> Option<Self> {
        let text = name.to_str()?;
        let of = |process: &str, ring: Option<&str>| {
            let (as_written, ring) = (name.to_path_buf(), ring.map(str::to_owned));
            let address = (!process.starts_with("pid:")).then(|| ServerAddress::new(process));
            Process::is_named_by(process).then(|| Self { as_written, process: process.to_owned(), address, ring })
        };
        let with_ring = text.rsplit_once('/').and_then(|(process, ring)| of(process, Some(ring)));
        with_ring.or_else(|| of(text, None))
    }

    fn has_number(&self) -> bool {
        self.ring.as_deref().is_some_and(|ring| ring.starts_with('#'))
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
pub(in crate::reader) fn open(options: &ReaderOptions, name: &Path) -> Option<Result<Reader, ReaderError>> {
    let served = ServedName::parse(name)?;
    let process = Process::find(&served.process).map_err(refused).map(|mut found| found.swap_remove(0));
    Some(process.and_then(|process| open_named(options, process, &served)).map_err(|error| error.at(name)))
}

fn open_named(options: &ReaderOptions, process: Process, name: &ServedName) -> Result<Reader, ReaderError> {
    let files = recorders(&process).map_err(refused)?;
    let mut meant = files.iter().filter(|file| name.is_meant(file));
    match (meant.next(), meant.next()) {
        (Some(file), None) => {
            open_file(options, RingServer::new(process), file.clone(), Some((name.clone(), options.clone())))
        }
        (found, _) => {
            let (kind, what) = match found {
                None => (ReaderErrorKind::NotFound, "no such ring"),
                Some(_) => (ReaderErrorKind::BadName, "several such rings"),
            };
            let named = files.iter().take(NAMED_MAX).map(|file| format!("{} (#{})", file.name(), file.id()));
            let rings: Vec<String> = named.chain((files.len() > NAMED_MAX).then(|| "…".to_owned())).collect();
            let message = format!(
                "{} has {what}, expected one of: {}; write {}/NAME or {}/#NUMBER",
                process.in_words(),
                if rings.is_empty() { "none".to_owned() } else { rings.join(", ") },
                name.process,
                name.process
            );
            Err(ReaderError::new(kind, message))
        }
    }
}

/// Returns the rings of a process, without the shards that a reader finds through shard 0.
pub(in crate::reader) fn recorders(process: &Process) -> Result<Vec<ServedFile>, ControlError> {
    process.files().map(without_further_shards)
}

fn without_further_shards(mut files: Vec<ServedFile>) -> Vec<ServedFile> {
    files.retain(|file| !file.is_further_shard());
    files
}

fn open_file(
    options: &ReaderOptions,
    server: Arc<RingServer>,
    file: ServedFile,
    opened_as: Option<(ServedName, ReaderOptions)>,
) -> Result<Reader, ReaderError> {
    let descriptor = server.process.import(&file).map_err(refused)?;
    let named = opened_as.as_ref().map(|(name, options)| (name.as_written.clone(), options.clone()));
    options.open_served(descriptor, ServedBy { server, file, opened_as }, named)
}

impl ServedBy {
    /// Returns true if the program or its server is known to have ended.
    pub(in crate::reader) fn is_gone(&self) -> bool {
        self.server.process.is_gone()
    }

    /// Opens the next ring of the name with which this one was opened: another ring of the same program, or one of the
    /// program that now has the same address. Returns `None` while there is no such ring.
    pub(in crate::reader) fn reopen(&self) -> Result<Option<Reader>, ReaderError> {
        let Some((name, options)) = &self.opened_as else { return Ok(None) };
        let reopened = match self.is_gone() {
            true => self.open_restarted(name, options),
            false => self.open_newer(name, options),
        };
        match reopened {
            Err(error) if error.kind() == ReaderErrorKind::NotFound => Ok(None),
            reopened => reopened.map_err(|error| error.at(&name.as_written)),
        }
    }

    /// Opens the ring of a program that was started again at the same address.
    fn open_restarted(&self, name: &ServedName, options: &ReaderOptions) -> Result<Option<Reader>, ReaderError> {
        let Some(address) = &name.address else { return Ok(None) };
        let process = Process::connect(address).map_err(refused)?;
        let reader = open_named(options, process, name)?;
        // Another program may give a number to another ring.
        let is_same = |next: &Self| !name.has_number() || next.file.name() == self.file.name();
        Ok(reader.served_by().is_some_and(is_same).then_some(reader))
    }

    /// Opens a ring of the same name that this server has served only since it serves this ring.
    fn open_newer(&self, name: &ServedName, options: &ReaderOptions) -> Result<Option<Reader>, ReaderError> {
        let is_newer = |file: &ServedFile| name.is_meant(file) && file.id() > self.file.id();
        let newer = self.server.find(is_newer).map_err(refused)?;
        let open = |file| open_file(options, Arc::clone(&self.server), file, self.opened_as.clone());
        newer.map(open).transpose()
    }

    /// Returns the process that serves, in words, if it is a stranger.
    pub(in crate::reader) fn stranger(&self) -> Option<String> {
        let process = &self.server.process;
        process.is_stranger().then(|| process.in_words())
    }

    /// Returns the name of the ring, for messages.
    pub(in crate::reader) fn label(&self) -> String {
        format!("{}/{}", self.server.process.short_name(), self.file.name())
    }

    /// Returns true if the ring is a shard, so that the server may have the others.
    pub(in crate::reader) fn is_shard(&self) -> bool {
        self.file.shard().is_some()
    }

    /// Opens another shard of the recorder of this ring.
    pub(in crate::reader) fn open_shard(&self, index: u32) -> Result<Reader, ReaderError> {
        let group = self.file.shard().map(|(group, _)| group);
        let files = self.server.process.files().map_err(refused)?;
        let found = files.into_iter().find(|file| group.is_some_and(|group| file.shard() == Some((group, index))));
        let file = found.ok_or_else(|| {
            let message =
                format!("the server of {} has no shard {index}: it has ended", self.server.process.in_words());
            ReaderError::new(ReaderErrorKind::NotFound, message)
        })?;
        open_file(&Reader::options(), Arc::clone(&self.server), file, None)
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
