//! How ring files are made, opened and mapped.

/// How a ring file is made.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Mode of the file, exactly (the umask does not matter): 0640 by default, the owner writes and the group reads. Only permission bits; the owner
    /// may always read and write.
    pub file_mode: u32,
    /// Mode of a ring directory that has to be made, exactly: 0750 by default. One that others may write to gets the sticky bit, too, without which they
    /// could exchange our files. A directory that exists keeps its mode.
    pub directory_mode: u32,
    /// Leave the file when its owner ends.
    pub keep: bool,
    /// With a bare name: use a ring directory, and replace a stale file in it, that belong to neither us nor root.
    pub allow_foreign_owner: bool,
    /// A stale file is replaced only if it starts with these bytes, or is empty: a mistyped path must not cost somebody his file.
    pub replace_prefix: &'static [u8],
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, directory_mode: 0o750, keep: false, allow_foreign_owner: false, replace_prefix: b"" }
    }
}

/// How an anonymous ring is made.
#[derive(Clone, Copy, Debug)]
pub struct MemfdOptions {
    /// Mode of the file, which matters to who opens `/proc/PID/fd/N`: 0640 by default.
    pub file_mode: u32,
    /// On 2 MiB huge pages.
    pub huge_pages: bool,
}

impl Default for MemfdOptions {
    fn default() -> Self {
        Self { file_mode: 0o640, huge_pages: false }
    }
}

/// What is accepted when a ring file is opened. By default neither links nor, in a ring directory, strangers' files.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Follow a symbolic link in the last component, as `/proc/PID/fd/N` is one.
    pub follow_symlinks: bool,
    /// With a bare name: accept a file that belongs to neither us, root nor a group of ours. A path is always taken as written.
    pub allow_foreign_owner: bool,
}

/// What the mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads only; a store kills the process.
    ReadOnly,
    /// Loads and stores; the descriptor must be open for both.
    ReadWrite,
}

/// How to map; start from [`MapOptions::reader`] or [`MapOptions::writer`].
#[derive(Clone, Copy, Debug)]
pub struct MapOptions {
    /// Loads only, or stores too.
    pub access: Access,
    /// Touch every page now, so that no access faults later. On kernels before 5.14 this does nothing.
    pub prefault: bool,
    /// Survive it if somebody truncates the file; see [`Mapping::was_truncated`](super::Mapping::was_truncated).
    pub survive_truncation: bool,
    /// Map the holes of a sparse file, too: who loads from one then gives it a page. Otherwise what is read there is zero, and takes no memory;
    /// what is written there later is seen after [`Mapping::reach`](super::Mapping::reach). A mapping that is writable or prefaulted always has them.
    pub map_holes: bool,
}

impl MapOptions {
    /// Read-only, not prefaulted, surviving truncation, without the holes of a sparse file.
    #[must_use]
    pub const fn reader() -> Self {
        Self { access: Access::ReadOnly, prefault: false, survive_truncation: true, map_holes: false }
    }

    /// Writable, prefaulted, surviving truncation.
    #[must_use]
    pub const fn writer() -> Self {
        Self { access: Access::ReadWrite, prefault: true, survive_truncation: true, map_holes: true }
    }
}
