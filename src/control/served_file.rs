//! The client's interface to a ring of a server.
//!
//! The server may be hostile. So the client sanitises each ring's name when it receives it: a sanitised name never
//! leads to another directory or ring.

use super::wire::ServedInfo;
use std::path::{Path, PathBuf};

/// The largest size in bytes of a name that a server may give to something.
pub const NAME_BYTES_MAX: usize = 255;
/// The largest size in bytes of a path.
const PATH_BYTES_MAX: usize = 4095;

/// A ring that a server serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedFile {
    pub(super) info: ServedInfo,
}

/// A change of what a server serves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileChange {
    /// The server serves this ring now.
    Added(ServedFile),
    /// The server no longer serves the ring with this number.
    Removed(u64),
}

impl ServedFile {
    pub(super) fn new(mut info: ServedInfo) -> Self {
        info.name = plain_name(&info.name);
        cut(&mut info.content_name, NAME_BYTES_MAX);
        if info.path.len() > PATH_BYTES_MAX || !info.path.starts_with('/') {
            info.path = String::new();
        }
        Self { info }
    }

    /// Returns the number of the ring at its server. No other ring of this server ever has it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.info.id
    }

    /// Returns the name of the ring. It has no `/` and no control characters, and has at most 255 bytes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns the path of the ring's file, or `None` if the ring is in anonymous memory. It is what the server says:
    /// the file at this path may be another one than [`Process::import`](super::Process::import) returns.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        Some(Path::new(&self.info.path)).filter(|path| *path != PathBuf::new())
    }

    /// Returns the code of the content type.
    #[must_use]
    pub fn content_type(&self) -> u16 {
        self.info.content_type
    }

    /// Returns the name of the content type.
    #[must_use]
    pub fn content_name(&self) -> &str {
        &self.info.content_name
    }

    /// Returns the hash of the schema.
    #[must_use]
    pub fn schema_hash(&self) -> [u8; 32] {
        self.info.schema_hash
    }

    /// Returns the size of the ring's file in bytes, as the server says.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.info.bytes
    }

    /// Returns the number that all shards of one recorder share, and the index of this shard. Returns `None` if the
    /// ring is no shard.
    #[must_use]
    pub fn shard(&self) -> Option<(u64, u32)> {
        (self.info.shard_group != 0).then_some((self.info.shard_group, self.info.shard_index))
    }

    /// Returns true if the ring is a shard other than shard 0. A reader finds such shards by itself, through shard 0.
    #[must_use]
    pub fn is_further_shard(&self) -> bool {
        self.shard().is_some_and(|(_, index)| index != 0)
    }
}

/// Cuts a text to a size.
pub(super) fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// Returns the name without what would make it a path, the number of another ring, or unreadable.
fn plain_name(name: &str) -> String {
    let is_directory = matches!(name, "" | "." | "..");
    let mut plain: String = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    if is_directory || plain.starts_with('#') {
        plain.replace_range(..plain.len().min(1), "_");
    }
    cut(&mut plain, NAME_BYTES_MAX);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_ring_is_a_path_or_the_number_of_another_ring() {
        let named = |name: &str| ServedFile::new(ServedInfo { name: name.into(), ..ServedInfo::default() }).info.name;
        for (name, plain) in [
            ("shop", "shop"),
            ("orders.1 ü", "orders.1 ü"),
            ("../../etc/passwd", ".._.._etc_passwd"),
            ("/etc/passwd", "_etc_passwd"),
            ("..", "_."),
            (".", "_"),
            ("", "_"),
            ("#7", "_7"),
            ("a\0b\u{1b}[31m\n", "a_b_[31m_"),
        ] {
            assert_eq!(named(name), plain, "{name:?}");
        }
        assert_eq!(named(&"ü".repeat(10_000)).len(), 254);
        let path = |path: &str| ServedFile::new(ServedInfo { path: path.into(), ..ServedInfo::default() }).info.path;
        assert_eq!(
            (path("/dev/shm/x"), path("../x"), path(&"/".repeat(5000))),
            ("/dev/shm/x".into(), "".into(), "".into())
        );
    }
}
