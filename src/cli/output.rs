//! Where output goes: into a file that appears when it is whole, or straight into a device or a pipe.

use super::exit::{Exit, Failure};
use eventring::capture::{CaptureError, CaptureErrorKind, OutputPlace, OutputTarget, ReadFiles};
use std::fs::File;
use std::path::Path;

/// Looks what is at `output`; pipes and devices are opened. What is `read` is not known yet.
pub(super) fn look(output: &Path, force: bool) -> anyhow::Result<OutputTarget> {
    let look = OutputPlace::open(output).and_then(|place| place.look(force, &ReadFiles::default()));
    look.map_err(failure)
}

/// Writes beside `output` and renames: nobody sees half a file, and a failure costs nobody his file. Devices and pipes, which `target` then is, are
/// written to.
pub(super) fn write_whole<T>(
    (output, target): (&Path, OutputTarget),
    force: bool,
    read: &ReadFiles,
    write: impl FnOnce(&File) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let OutputTarget::Stream(stream) = target {
        return write(&stream);
    }
    let place = OutputPlace::open(output).map_err(failure)?;
    place.look(force, read).map_err(failure)?;
    let unfinished = place.create_unfinished().map_err(failure)?;
    let written = write(unfinished.file())?;
    unfinished.publish(force, read).map_err(failure)?;
    Ok(written)
}

/// What went wrong with an output, in the words of the command line.
pub(super) fn failure(error: CaptureError) -> anyhow::Error {
    let path = error.path().unwrap_or("".as_ref());
    if let Some(io) = error.io_error() {
        return Failure::writing(path, io).into();
    }
    if error.kind() != CaptureErrorKind::Exists {
        return error.into();
    }
    let message = format!("cannot write {}: it exists; choose another name, or --force", path.display());
    Failure::new(Exit::Exists, message).into()
}
