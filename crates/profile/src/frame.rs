//! A frame of a stack.

use std::sync::Arc;

/// A frame of a stack: a function, or an address without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The name of the function; otherwise the file and the place in it, or the address.
    pub name: Arc<str>,
    /// The path of the file with the code; empty if it is not known.
    pub path: Arc<str>,
    /// The place in the file, or the address; 0 if neither is known.
    pub place: u64,
    /// True if it is code of the kernel.
    pub is_kernel: bool,
}

impl Frame {
    /// Makes a frame. Without a name, it is called after its place.
    pub(crate) fn new(name: Option<Arc<str>>, path: &Arc<str>, place: u64, is_kernel: bool) -> Self {
        let name = match name {
            Some(name) => name,
            None if is_kernel => format!("kernel+{place:#x}").into(),
            None if path.is_empty() => format!("{place:#x}").into(),
            None => format!("{}+{place:#x}", path.rsplit('/').next().unwrap_or_default()).into(),
        };
        Self { name, path: path.clone(), place, is_kernel }
    }
}
