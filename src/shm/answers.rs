//! Answers of the operating system about files and processes.

use std::fmt;

/// The identity of a file, which a rename does not change: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        /// The process that took it, in the caller's pid namespace. `None` if the kernel does not show the process: it
        /// is in another namespace, it has exited and left the lock to a child, or the file system hides its device.
        pid: Option<u32>,
    },
    /// A state that the operating system does not show to this process.
    Unknown,
}

/// The identity of a process, which no later process with the same process id has.
///
/// The writer stores its identity in its ring, and a reader asks whether that process lives. All fields are plain
/// numbers, because they are stored in a file; 0 means "unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The process id in the process's own pid namespace.
    pub pid: u32,
    /// The start time of the process, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The inode of the pid namespace of the process.
    pub pid_namespace: u64,
    /// The inode of the time namespace of the process, which shifts `start_ticks`.
    pub time_namespace: u64,
    /// The kernel's random id of this boot.
    pub boot_id: [u8; 16],
}

/// The answer to the question whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Process that runs, or is stopped.
    Alive,
    /// Process that has ended, or is a zombie, which cannot write any more.
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
