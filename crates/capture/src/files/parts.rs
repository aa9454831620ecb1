//! The names of the files of a rotated capture, and removing files.

use crate::error::CaptureError;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory of `path`.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(".".as_ref())
}

/// Removes a file. One that is not there any more is removed already.
pub(crate) fn remove_file(path: &Path) -> Result<(), CaptureError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CaptureError::io_writing("remove it", error).at(path))
        }
        _ => Ok(()),
    }
}

/// Returns the path of the file with the number `part`: `trace.evc` becomes `trace.0001.evc`.
pub(crate) fn part_path(output: &Path, part: u32) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{part:04}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Returns the numbers of the files of a rotation set that are there.
pub(crate) fn existing_parts(output: &Path) -> Result<Vec<u32>, CaptureError> {
    let directory = directory_of(output);
    let read = |error| CaptureError::io("read the directory", error).at(directory);
    let mut parts = Vec::new();
    for entry in fs::read_dir(directory).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        let numbers = name.to_str().into_iter().flat_map(|name| name.split('.')).filter_map(|part| part.parse().ok());
        parts.extend(numbers.filter(|part| part_path(output, *part).file_name() == Some(&name)));
    }
    parts.sort_unstable();
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_before_the_extension() {
        assert_eq!(part_path(Path::new("a/trace.evc"), 7), Path::new("a/trace.0007.evc"));
        assert_eq!(part_path(Path::new("trace"), 12345), Path::new("trace.12345"));
    }
}
