//! Types for the results of system calls about files and processes.

use std::{fmt, io};

/// The identity of a file: its device and its inode. A file keeps its identity when it is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device of the file system.
    pub device: u64,
    /// The inode on that file system.
    pub inode: u64,
}

/// The state of a file's writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// A lock that no process holds.
    Free,
    /// A lock that a process holds.
    Held {
        /// The process that took the lock, as an id in the caller's pid namespace. `None` if the kernel does not show
        /// this process. Possible reasons: the process is in another namespace; the process has exited and left the
        /// lock to a child; `/proc/locks` names the file by another device number than `stat` does.
        pid: Option<u32>,
    },
    /// A lock whose state the operating system does not show to this process.
    Unknown,
}

/// The identity of a process. A later process with the same process id has another identity.
///
/// The writer of a ring stores its identity in the ring's file. A reader then asks whether the process with this
/// identity still lives. All fields are plain numbers, because they are stored in a file. In each of them, 0 means
/// "unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The process id in the process's own pid namespace.
    pub pid: u32,
    /// The time at which the process started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The inode of the pid namespace of the process.
    pub pid_namespace: u64,
    /// The inode of the time namespace of the process. `start_ticks` counts in this namespace.
    pub time_namespace: u64,
    /// The kernel's random id of this boot.
    pub boot_id: [u8; 16],
}

/// The error of [`open_file`](super::open_file) that there is something else than a regular file, in words: "it is a
/// pipe".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFile(pub(super) &'static str);

impl NotAFile {
    /// Returns true if this is the cause of the error.
    #[must_use]
    pub fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

impl fmt::Display for NotAFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, expected a regular file; copy what comes from it into a file, and name that", self.0)
    }
}

impl std::error::Error for NotAFile {}

impl From<NotAFile> for io::Error {
    fn from(found: NotAFile) -> Self {
        Self::new(io::ErrorKind::InvalidInput, found)
    }
}

/// The answer to the question whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Process that runs, or is stopped.
    Alive,
    /// Process that has ended. A zombie counts as ended, because it cannot write any more.
    Dead,
    /// Process whose state the caller cannot find out.
    Unknown,
}

/// The reason why an access to a mapped file found no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostPages {
    /// Truncation of the file by another program.
    Truncated,
    /// Lack of memory for a page of a file that is in memory.
    NoMemory,
    /// I/O error: the file system could not read the page.
    Unreadable,
}

impl fmt::Display for LostPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the file was truncated while it was read",
            Self::NoMemory => "there was no memory for a page of the file while it was read (its file system is full)",
            Self::Unreadable => "a page of the file could not be read (an I/O error)",
        })
    }
}
