//! Files without a name.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Makes a file in `directory`, open for reading and writing, and removes its name. Other users may not open it.
///
/// # Errors
/// Returns an error if the operating system refuses.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    const ATTEMPTS: u32 = 16;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    for _ in 0..ATTEMPTS {
        // Nobody can have put a file or a link under this name before, because the name cannot be predicted.
        let name = format!(".eventring.{:016x}", RandomState::new().build_hasher().finish());
        let path = directory.join(name);
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Makes a file in memory, open for reading and writing. `name` is what the operating system shows of it.
///
/// # Errors
/// Returns an error if the operating system refuses.
pub fn nameless_memory(name: &str) -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_nameless_file_is_nobody_elses_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = nameless_file(directory.path()).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(nameless_file(&directory.path().join("missing")).is_err());
    }
}
