//! The output of the verbs: a file that gets its name only when it is complete, or a device, a pipe or stdout.

pub(crate) mod directory;
pub(crate) mod formats;

use super::exit::{Exit, Failure};
use eventring_capture::{CaptureError, CaptureErrorKind, OutputEntry, OutputKind, ReadFiles};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Returns true if `output` means this process's stdout: it is `-`, or a path that leads to file descriptor 1.
pub(crate) fn is_stdout(output: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| output == Path::new(name))
}

/// Writes a document of JSON on a line of stdout.
pub(crate) fn json_line(document: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, document)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Checks whether `output` can be written, and opens it if it is a pipe or a device. Another check comes later, when
/// the files that are read are known: the output must not be one of them.
pub(crate) fn look(output: &Path, force: bool) -> anyhow::Result<OutputKind> {
    let look = OutputEntry::open(output).and_then(|entry| entry.look(force, &ReadFiles::default()));
    look.map_err(failure)
}

/// Checks whether a rotated capture to `output` can be begun: `output` leads to no device or pipe, and the name of the
/// first numbered file can be written.
pub(crate) fn look_at_row(output: &Path, force: bool) -> anyhow::Result<OutputKind> {
    let look = OutputEntry::open(output).and_then(|entry| entry.look_at_row(force, &ReadFiles::default()));
    look.map(|()| OutputKind::File).map_err(failure)
}

/// Checks that bytes can be written to `target`, and leaves nothing there. If it is `None`, the output is stdout. So a
/// read-only or full file system is noticed before the work that leads to the output.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) fn try_to_write(output: &Path, target: Option<&OutputKind>) -> anyhow::Result<()> {
    const BYTES: usize = 4096;
    let cannot = |error: io::Error| Failure::writing(output, &error);
    match target {
        // A write of no bytes changes nothing, but fails if the device is full or read-only.
        None => {
            let stdout = File::from(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned().map_err(cannot)?);
            (&stdout).write(&[]).map_err(|error| Failure::io("cannot write to stdout", &error))?;
        }
        Some(OutputKind::Stream(stream)) => {
            let mut stream = stream;
            stream.write(&[]).map_err(cannot)?;
        }
        Some(OutputKind::File) => {
            let place = OutputEntry::open(output).map_err(failure)?;
            let unfinished = place.create_unfinished().map_err(failure)?;
            let mut file = unfinished.file();
            file.write_all(&[0; BYTES]).map_err(cannot)?;
        }
    }
    Ok(())
}

/// Returns an error if nobody reads stdout any more. Who waits for events would learn it only by the next write.
pub(crate) fn check_reader() -> std::io::Result<()> {
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdout = std::io::stdout();
        let mut looked = [PollFd::new(&stdout, PollFlags::empty())];
        // Ctrl-C may come meanwhile.
        rustix::io::retry_on_intr(|| poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
        if looked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(())
}

/// Calls `write` with an unfinished file, which is then renamed to `output`. So an incomplete file is never visible
/// under that name, and a failure leaves an existing file as it is. If `target` is a device or a pipe, `write` gets
/// that instead.
pub(crate) fn write_whole<T>(
    (output, target): (&Path, OutputKind),
    force: bool,
    read: &ReadFiles,
    write: impl FnOnce(&File) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let OutputKind::Stream(stream) = target {
        return write(&stream);
    }
    let place = OutputEntry::open(output).map_err(failure)?;
    place.look(force, read).map_err(failure)?;
    let unfinished = place.create_unfinished().map_err(failure)?;
    let written = write(unfinished.file())?;
    unfinished.publish(force, read).map_err(failure)?;
    Ok(written)
}

/// Returns the error that the command line reports if an output cannot be written.
pub(crate) fn failure(error: CaptureError) -> anyhow::Error {
    let path = error.path().unwrap_or("".as_ref());
    if let Some(io) = error.io_error() {
        return Failure::writing(path, io).into();
    }
    if error.kind() != CaptureErrorKind::Exists {
        return error.into();
    }
    Exit::Exists.failure(format!("cannot write {}: it exists; choose another name, or --force", path.display())).into()
}
