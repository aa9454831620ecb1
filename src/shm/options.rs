//! Options for making, opening and mapping ring files.

use std::time::Duration;

/// Options for making a ring file.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// The permission bits of the file. The umask does not change them. The default is 0640: the owner may write, the
    /// group may read. Other mode bits are not allowed, and the owner must be allowed to read and write.
    pub file_mode: u32,
    /// The permission bits of the ring directory, if it has to be made. The umask does not change them. The default is
    /// 0750. If the group or other users may write to the directory, it also gets the sticky bit. Without this bit
    /// they could replace the ring files in it. A directory that exists keeps its mode.
    pub directory_mode: u32,
    /// True if the file stays when its owner ends.
    pub keep: bool,
    /// True if the ring directory, and a stale file in it, may belong to any user. By default they must belong to the
    /// caller or to root. This concerns bare names only.
    pub allow_foreign_owner: bool,
    /// The bytes with which a stale file must begin. A stale file that begins otherwise is not replaced, so a mistyped
    /// path does not destroy a file. An empty file may always be replaced.
    pub replace_prefix: &'static [u8],
    /// The longest time for which an owner is waited for that is about to end, so that its file can be replaced. An
    /// owner that the system does not show is waited for, too.
    pub owner_timeout: Duration,
}

/// The default of [`CreateOptions::owner_timeout`].
pub(crate) const OWNER_TIMEOUT: Duration = Duration::from_secs(1);

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            file_mode: 0o640,
            directory_mode: 0o750,
            keep: false,
            allow_foreign_owner: false,
            replace_prefix: b"",
            owner_timeout: OWNER_TIMEOUT,
        }
    }
}

/// Options for making an anonymous ring.
#[derive(Clone, Copy, Debug)]
pub struct MemfdOptions {
    /// The permission bits of the file. They apply when a process opens `/proc/PID/fd/N`. The default is 0640.
    pub file_mode: u32,
    /// True if the file consists of 2 MiB huge pages.
    pub huge_pages: bool,
}

impl Default for MemfdOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, huge_pages: false }
    }
}

/// Options for opening a ring file. By default, symbolic links are refused. In a ring directory, files of other users
/// are refused, too, except files of root or of a group of the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// True if the last component of the path may be a symbolic link. (`/proc/PID/fd/N` is one.)
    pub follow_symlinks: bool,
    /// True if the file may belong to any user. By default it must belong to the caller, to root, or to a group of the
    /// caller. This concerns bare names only: a file that is given by its path may always belong to any user.
    pub allow_foreign_owner: bool,
}

/// The access that a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads only. A store kills the process.
    ReadOnly,
    /// Loads and stores. The descriptor must be open for both.
    ReadWrite,
}

/// Options for mapping a ring file. Start from [`MapOptions::reader`] or [`MapOptions::writer`].
#[derive(Clone, Copy, Debug)]
pub struct MapOptions {
    /// The access that the mapping allows.
    pub access: Access,
    /// True if every page is mapped immediately. Later accesses then cause no page fault. On kernels before 5.14 this
    /// has no effect.
    pub prefault: bool,
    /// True if accesses survive a truncation of the file by another program. See
    /// [`Mapping::was_truncated`](super::Mapping::was_truncated).
    pub survive_truncation: bool,
    /// True if the holes of a sparse file are mapped, too. A load from a mapped hole makes the kernel allocate a page.
    /// Holes that are not mapped read as zeros and take no memory. If a writer fills such a hole later,
    /// [`Mapping::reach`](super::Mapping::reach) makes the data visible. If a mapping is writable or prefaulted, its
    /// holes are always mapped.
    pub map_holes: bool,
}

impl MapOptions {
    /// Returns the options for readers: read-only and not prefaulted. The mapping survives truncation. The holes of a
    /// sparse file are not mapped.
    #[must_use]
    pub const fn reader() -> Self {
        Self { access: Access::ReadOnly, prefault: false, survive_truncation: true, map_holes: false }
    }

    /// Returns the options for writers: writable and prefaulted. The mapping survives truncation.
    #[must_use]
    pub const fn writer() -> Self {
        Self { access: Access::ReadWrite, prefault: true, survive_truncation: true, map_holes: true }
    }
}
