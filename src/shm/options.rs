//! Options for making, opening and mapping ring files.

/// Options for making a ring file.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// The mode of the file, whatever the umask is. The default is 0640: the owner writes and the group reads. Only
    /// permission bits are allowed, and the owner's bits for reading and writing are required.
    pub file_mode: u32,
    /// The mode of a ring directory that has to be made, whatever the umask is. The default is 0750. If the group or
    /// other users may write to the directory, it also gets the sticky bit. Without this bit they could exchange the
    /// ring files in it. A directory that exists keeps its mode.
    pub directory_mode: u32,
    /// True if the file stays when its owner ends.
    pub keep: bool,
    /// True if, for a bare name, the ring directory and a stale file in it may belong to a user other than the caller
    /// and root.
    pub allow_foreign_owner: bool,
    /// The first bytes that a stale file must have to be replaced, unless the file is empty. Because of this check, a
    /// mistyped path does not destroy a file.
    pub replace_prefix: &'static [u8],
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, directory_mode: 0o750, keep: false, allow_foreign_owner: false, replace_prefix: b"" }
    }
}

/// Options for making an anonymous ring.
#[derive(Clone, Copy, Debug)]
pub struct MemfdOptions {
    /// The mode of the file, which matters when a process opens `/proc/PID/fd/N`. The default is 0640.
    pub file_mode: u32,
    /// True if the file consists of 2 MiB huge pages.
    pub huge_pages: bool,
}

impl Default for MemfdOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, huge_pages: false }
    }
}

/// Options for opening a ring file. By default links are refused, and so are strangers' files in a ring directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// True if a symbolic link in the last component is followed. (`/proc/PID/fd/N` is such a link.)
    pub follow_symlinks: bool,
    /// True if, for a bare name, the file may belong to a user other than the caller and root, and to none of the
    /// caller's groups. Files that are given by a path are never checked.
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

/// Options for mapping; start from [`MapOptions::reader`] or [`MapOptions::writer`].
#[derive(Clone, Copy, Debug)]
pub struct MapOptions {
    /// The access that the mapping allows.
    pub access: Access,
    /// True if every page is mapped now, so that no access faults later. On kernels before 5.14 this does nothing.
    pub prefault: bool,
    /// True if accesses survive a truncation of the file by another program; see
    /// [`Mapping::was_truncated`](super::Mapping::was_truncated).
    pub survive_truncation: bool,
    /// True if the holes of a sparse file are mapped, too. A load from a mapped hole gives the file a page. If holes
    /// are not mapped, they read as zeros and take no memory, and later writes to them are visible after
    /// [`Mapping::reach`](super::Mapping::reach). A writable or prefaulted mapping always has its holes mapped.
    pub map_holes: bool,
}

impl MapOptions {
    /// Returns options for readers: read-only, not prefaulted, surviving truncation, without the holes of a sparse
    /// file.
    #[must_use]
    pub const fn reader() -> Self {
        Self { access: Access::ReadOnly, prefault: false, survive_truncation: true, map_holes: false }
    }

    /// Returns options for writers: writable, prefaulted, surviving truncation.
    #[must_use]
    pub const fn writer() -> Self {
        Self { access: Access::ReadWrite, prefault: true, survive_truncation: true, map_holes: true }
    }
}
