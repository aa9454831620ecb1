//! The addresses of sockets.

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The end of the names of sockets in ring directories.
const SUFFIX: &str = ".sock";

/// Address of a server: a path, or a name in the abstract namespace of the network namespace, written `@name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerAddress {
    /// A socket file.
    Path(PathBuf),
    /// A name without a file. It is there as long as the server, and every process of the same network namespace can
    /// find it.
    Abstract(String),
}

impl ServerAddress {
    /// Returns the address that a text names: `@name`, or a path.
    #[must_use]
    pub fn new(text: impl AsRef<OsStr>) -> Self {
        let text = text.as_ref();
        match text.to_str().and_then(|text| text.strip_prefix('@')) {
            Some(name) => Self::Abstract(name.to_owned()),
            None => Self::Path(text.into()),
        }
    }

    pub(super) fn to_socket_address(&self) -> Result<SocketAddrUnix, Errno> {
        match self {
            Self::Path(path) => SocketAddrUnix::new(path),
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        }
    }

    /// Returns a new address in a ring directory for the process `pid`. `number` distinguishes servers of one process,
    /// and processes of several pid namespaces.
    pub(super) fn in_directory(directory: &Path, pid: u32, number: u32) -> Self {
        Self::Path(directory.join(format!("{pid}-{number:08x}{SUFFIX}")))
    }

    /// Returns the addresses of the sockets in a directory, in the order of their names. A socket may belong to a
    /// process that has ended.
    #[must_use]
    pub fn in_ring_directory(directory: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_name().as_bytes().ends_with(SUFFIX.as_bytes()))
            .filter(|entry| entry.file_type().is_ok_and(|kind| std::os::unix::fs::FileTypeExt::is_socket(&kind)))
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        paths.into_iter().map(Self::Path).collect()
    }

    /// Returns the process id in the name of a socket of a ring directory. It is only a hint: what the
    /// kernel says about the server counts.
    #[must_use]
    pub fn pid_hint(&self) -> Option<u32> {
        let Self::Path(path) = self else { return None };
        path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.split_once('-')?.0.parse().ok()
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Abstract(name) => write!(f, "@{name}"),
        }
    }
}
