//! The output of an export that is a directory. The directory gets its name only when all of its files are complete.

use crate::exit::{Exit, Failure};
use crate::interrupt::RemovedBySignal;
use crate::output;
use crate::output::formats::Format;
use eventring::internal::shm;
use eventring_capture::{OutputEntry, ReadFiles};
use eventring_export::ExportFiles;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use crate::other_systems::directory::{exchange, open_plain, remove};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use linux::{exchange, open_plain, remove};

/// The beginning of the name of an export that is not complete.
const UNFINISHED: &str = ".eventring.";
/// The permissions of a new directory: the owner may do everything, the group may read.
const MODE: u32 = 0o750;
/// The permissions of its files. All outputs have them.
const FILE_MODE: u32 = 0o640;

/// A directory for the files of an export.
pub(crate) struct OutputDirectory<'d>(&'d Path);

impl ExportFiles for OutputDirectory<'_> {
    #[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "it makes a new file in a directory of its own"))]
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + Send>> {
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
        Ok(Box::new(options.write(true).create_new(true).open(self.0.join(name))?))
    }
}

/// Checks whether a directory with the files of `format` can get the name `output`. Nothing may have this name. With
/// `force`, an earlier export may have it: a directory that has no other files than those of such an export, and the
/// file that says who wrote them.
pub(crate) fn look(output: &Path, format: Format, force: bool, read: &ReadFiles) -> anyhow::Result<()> {
    let kind = match fs::symlink_metadata(output) {
        Ok(metadata) => metadata.file_type(),
        // The rules for the name of a new file hold for that of a new directory, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let look = OutputEntry::open(output).and_then(|entry| entry.look(false, read));
            return look.map(|_| ()).map_err(output::failure);
        }
        Err(error) => return Err(Failure::writing(output, &error).into()),
    };
    if kind.is_symlink() {
        return Err(refused(output, "it is a symbolic link, which is not replaced; name what it leads to"));
    }
    if !kind.is_dir() {
        return Err(refused(output, "it exists and is no directory, which this format needs; choose another name"));
    }
    if !force {
        return Err(refused(output, "it exists; choose another name, or --force"));
    }
    let paths = entries(output).map_err(|error| Failure::writing(output, &error))?;
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        if !is_file || !format.may_have_file(&name) {
            let problem = format!(
                "it is a directory with other things than an export in this format ({name}); choose another name"
            );
            return Err(refused(output, &problem));
        }
        if let Ok(file) = shm::open_file(path) {
            read.check_stream(file, &path.to_string_lossy())?;
        }
    }
    if let Some((name, text)) = format.mark().filter(|_| !paths.is_empty())
        && !has_text(&output.join(name), text)
    {
        let problem = format!(
            "it is a directory that is no export in this format of eventring: its file {name} is missing, or another program wrote it; choose another name"
        );
        return Err(refused(output, &problem));
    }
    Ok(())
}

/// Calls `write` with an unfinished directory, which is then renamed to `output`. So an incomplete export is never
/// visible under that name, and a failure leaves an earlier export as it is. A signal removes the unfinished directory
/// and ends the program.
pub(crate) fn write_whole<T>(
    output: &Path,
    format: Format,
    force: bool,
    read: &ReadFiles,
    write: impl FnOnce(&mut OutputDirectory<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let removed = RemovedBySignal::listen()?;
    look(output, format, force, read)?;
    let cannot = |error: io::Error| Failure::writing(output, &error);
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(".".as_ref());
    let mut unnamed = tempfile::Builder::new();
    unnamed.prefix(UNFINISHED);
    #[cfg(unix)]
    unnamed.permissions(std::os::unix::fs::PermissionsExt::from_mode(MODE));
    let make = || unnamed.tempdir_in(parent);
    let unfinished = removed.make(make).map_err(|error| cannot(io_error(&error)))?;
    let written = write(&mut OutputDirectory(unfinished.path()))?;
    sync(unfinished.path()).map_err(cannot)?;
    // From here on, the temporary name may belong to something else.
    #[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), expect(clippy::drop_non_drop))]
    drop(removed);
    look(output, format, force, read)?;
    if fs::symlink_metadata(output).is_ok() {
        // The earlier export gets the temporary name, and is removed. It is looked at once more, because something else
        // may have got its name in between.
        exchange(unfinished.path(), output).map_err(cannot)?;
        if let Err(error) = look(unfinished.path(), format, force, read) {
            exchange(unfinished.path(), output).map_err(cannot)?;
            return Err(error);
        }
        remove(&unfinished.keep(), |name| format.may_have_file(name)).map_err(cannot)?;
    } else {
        // A rename replaces no directory that has files.
        fs::rename(unfinished.path(), output).map_err(cannot)?;
        let _ = unfinished.keep();
    }
    Ok(written)
}

/// Returns the operating system's own error. The message of a temporary directory's error names the temporary path.
fn io_error(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Returns true if there is a file with this path, and the text is in it.
fn has_text(path: &Path, text: &str) -> bool {
    const BYTES_MAX: u64 = 64 << 20;
    let Some(file) = open_plain(path) else { return false };
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX).read_to_end(&mut bytes);
    read.is_ok() && bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

#[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "a directory is no file"))]
fn sync(directory: &Path) -> io::Result<()> {
    for path in entries(directory)? {
        shm::open_file(&path)?.sync_all()?;
    }
    // Windows opens no directory.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

fn refused(output: &Path, problem: &str) -> anyhow::Error {
    Exit::Exists.failure(format!("cannot write {}: {problem}", output.display())).into()
}

/// What needs the calls of Linux.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod linux {
    use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, renameat_with, unlinkat};
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Exchanges the names of two directories.
    pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
        Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
    }

    /// Opens a file. A link or a pipe is no file of an export.
    pub(crate) fn open_plain(path: &Path) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
    }

    /// Removes the files of an export, which have such names, and its directory. If the name of the directory is a
    /// link, nothing is removed.
    pub(crate) fn remove(directory: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty())?;
        for entry in Dir::read_from(&opened)? {
            let name = entry?.file_name().to_owned();
            if name.to_str().is_ok_and(&is_ours) {
                unlinkat(&opened, name, AtFlags::empty())?;
            }
        }
        std::fs::remove_dir(directory)
    }
}
