//! Rings whose files were removed while their programs run (for example by `systemd-logind`). A program keeps its ring
//! open, so its user and root can read the ring through `/proc/PID/fd`.

use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::handle::Reader;
use crate::reader::source::Source;
use crate::reader::source::options::ReaderOptions;
use crate::reader::source::origin::OpenedBy;
use crate::shm::OpenFile;
use std::path::Path;

impl OpenedBy {
    /// Opens another removed file of the program, if it holds one that had this path.
    pub(in crate::reader) fn open_other(&self, path: &Path) -> Option<Result<Reader, ReaderError>> {
        let files = OpenFile::list(Some(self.pid));
        let file = files.iter().find(|file| file.was_at == path)?;
        Some(open_file(&ReaderOptions::default(), file, None))
    }
}

/// Opens the removed ring that `pid:N/RING` names, or the only one of `pid:N`. Returns `None` if the name is another
/// one, or if the process has no such ring.
pub(in crate::reader) fn open(options: &ReaderOptions, name: &Path) -> Option<Result<Reader, ReaderError>> {
    let (pid, ring) = match name.to_str()?.strip_prefix("pid:")?.split_once('/') {
        Some((pid, ring)) => (pid, Some(ring)),
        None => (name.to_str()?.strip_prefix("pid:")?, None),
    };
    let mut files = OpenFile::list(Some(pid.parse().ok()?));
    files.retain(|file| ring.is_none_or(|ring| file.was_at.file_name() == Some(ring.as_ref())));
    // Other files are passed over, and so are shards, which a reader finds through shard 0.
    let is_first = |file: &OpenFile| {
        let reader = open_file(&ReaderOptions::default().header_only(), file, None).ok();
        reader.is_some_and(|reader| reader.info().extension.is_none_or(|extension| extension.shard_index == 0))
    };
    files.retain(is_first);
    let opened = match files.as_slice() {
        [] => return None,
        [file] => open_file(options, file, Some(name)),
        several => {
            let rings: Vec<_> = several.iter().map(|file| file.was_at.display().to_string()).collect();
            let message = format!(
                "process {pid} has several rings whose files were removed, expected one: {}; write pid:{pid}/NAME",
                rings.join(", ")
            );
            Err(ReaderError::new(ReaderErrorKind::BadName, message))
        }
    };
    Some(opened.map_err(|error| error.at(name)))
}

fn open_file(options: &ReaderOptions, file: &OpenFile, name: Option<&Path>) -> Result<Reader, ReaderError> {
    let descriptor = file.open().map_err(|error| ReaderError::io("open the removed file of a ring", error))?;
    let source = options.map_descriptor(descriptor.into())?;
    let held_by = Some(OpenedBy { pid: file.pid, was_at: file.was_at.clone() });
    let opened_as = name.map(|name| (name.to_path_buf(), options.clone()));
    Ok(Reader::from_source(Source { held_by, opened_as, ..source }))
}
