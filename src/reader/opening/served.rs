//! Rings that the server of a program hands out. They may be in anonymous memory, so only the server has them.

use crate::control::{ControlError, ControlErrorKind, Process, ServedFile};
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::handle::Reader;
use crate::reader::source::Source;
use crate::reader::source::options::ReaderOptions;
use crate::reader::source::origin::{RingServer, ServedBy, ServedName, without_further_shards};
use std::path::Path;
use std::sync::Arc;

/// The largest number of rings that an error names.
const NAMED_MAX: usize = 20;

/// Opens a ring of a server. Returns `None` if the name is that of a file.
pub(in crate::reader) fn open(options: &ReaderOptions, name: &Path) -> Option<Result<Reader, ReaderError>> {
    let served = ServedName::parse(name)?;
    let process = Process::find(&served.process).map_err(refused).map(|mut found| found.swap_remove(0));
    Some(process.and_then(|process| open_named(options, process, &served)).map_err(|error| error.at(name)))
}

fn open_named(options: &ReaderOptions, process: Process, name: &ServedName) -> Result<Reader, ReaderError> {
    let files = process.files().map(without_further_shards).map_err(refused)?;
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

fn open_file(
    options: &ReaderOptions,
    server: Arc<RingServer>,
    file: ServedFile,
    opened_as: Option<(ServedName, ReaderOptions)>,
) -> Result<Reader, ReaderError> {
    let descriptor = server.process.import(&file).map_err(refused)?;
    let source = options.map_descriptor(descriptor.into())?;
    let named = opened_as.as_ref().map(|(name, options)| (name.as_written.clone(), options.clone()));
    let served_by = Some(ServedBy { server, file, opened_as });
    Ok(Reader::from_source(Source { served_by, opened_as: named, ..source }))
}

impl ServedBy {
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
        Ok(reader.source.served_by.as_ref().is_some_and(is_same).then_some(reader))
    }

    /// Opens a ring of the same name that this server has served only since it serves this ring.
    fn open_newer(&self, name: &ServedName, options: &ReaderOptions) -> Result<Option<Reader>, ReaderError> {
        let is_newer = |file: &ServedFile| name.is_meant(file) && file.id() > self.file.id();
        let newer = self.server.find(is_newer).map_err(refused)?;
        let open = |file| open_file(options, Arc::clone(&self.server), file, self.opened_as.clone());
        newer.map(open).transpose()
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
        open_file(&ReaderOptions::default(), Arc::clone(&self.server), file, None)
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
