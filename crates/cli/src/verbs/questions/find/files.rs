//! The capture files that are searched.

use crate::exit::{Exit, Failure};
use eventring_capture::CaptureFile;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Returns the captures among these files and in these directories, each once, in the order of time.
///
/// # Errors
/// A file is no capture, a directory cannot be read, or there is no capture.
pub(super) fn in_order(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for path in paths {
        let failed = |error| Failure::io(format!("cannot read {}", path.display()), &error);
        let remedy = "name captures, or directories with captures";
        let metadata = fs::metadata(path).map_err(|error| failed(error).and(remedy))?;
        if metadata.is_dir() {
            add_directory(path, &mut found)?;
        } else if let Some(begun) = CaptureFile::begun_epoch_nanos(path).map_err(failed)? {
            found.push((begun, path.clone()));
        } else {
            return Exit::NotARing.fail(format!(
                "{} is no capture; name files that `eventring capture` has made, or directories with such files",
                path.display()
            ));
        }
    }
    if found.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Exit::NotFound.fail(format!("there is no capture in {}; name where captures are", named.join(", ")));
    }
    found.sort();
    // A file may be reached by several paths.
    let mut seen = HashSet::new();
    found.retain(|(_, path)| seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Adds the captures of a directory and of those in it. Links to directories are not followed: they may lead back.
fn add_directory(directory: &Path, found: &mut Vec<(u64, PathBuf)>) -> anyhow::Result<()> {
    let mut directories = vec![directory.to_path_buf()];
    let mut is_first = true;
    while let Some(directory) = directories.pop() {
        let failed = |error| Failure::io(format!("cannot read the directory {}", directory.display()), &error);
        let entries = match fs::read_dir(&directory) {
            // What cannot be read is told by the search, which goes on.
            Err(_) if !is_first => {
                found.push((u64::MAX, directory));
                continue;
            }
            entries => entries.map_err(failed)?,
        };
        is_first = false;
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if kind.is_dir() {
                directories.push(path);
                continue;
            }
            match CaptureFile::begun_epoch_nanos(&path) {
                Ok(Some(begun)) => found.push((begun, path)),
                // By its name it is a capture.
                Err(error)
                    if error.kind() == ErrorKind::PermissionDenied && path.extension() == Some("evc".as_ref()) =>
                {
                    found.push((u64::MAX, path));
                }
                // A file that is gone meanwhile is no capture.
                Ok(None) | Err(_) => {}
            }
        }
    }
    Ok(())
}
