//! What the operating system says about files and processes.

use std::fmt;

/// Which file, across renames: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device of the file system.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

/// What is known about the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds it.
    Free,
    /// Somebody holds it.
    Held {
        /// The process that took it, in our pid namespace; `None` if the kernel does not show it to us: it is in another namespace, it has exited
        /// and left the lock to a child, or the file system hides its device.
        pid: Option<u32>,
    },
    /// The system does not tell.
    Unknown,
}

/// A process, told apart from every later process with the same id. The writer stores it in its ring, a reader asks whether it lives.
///
/// All words are plain numbers, so that they can stand in a file; 0 means "unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The process id in the process's own pid namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The inode of its pid namespace.
    pub pid_namespace: u64,
    /// The inode of its time namespace, which shifts `start_ticks`.
    pub time_namespace: u64,
    /// The kernel's random id of this boot.
    pub boot_id: [u8; 16],
}

/// Whether a process is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs, or is stopped.
    Alive,
    /// It has ended, or is a zombie that cannot write any more.
    Dead,
    /// It cannot be told from here.
    Unknown,
}

/// Why an access found no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostPages {
    /// Somebody has truncated the file.
    Truncated,
    /// The file is memory, and there was none left for it.
    NoMemory,
    /// The file system could not read it: an I/O error.
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
