//! The names in a dotted path, compared while the derives run.

/// Returns true if the bytes of `path` from `start` up to `end`, without `end`, are `name`.
pub(in crate::schema) const fn is_segment(name: &str, path: &str, start: usize, end: usize) -> bool {
    let (name, path) = (name.as_bytes(), path.as_bytes());
    if name.len() != end - start {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if name[i] != path[start + i] {
            return false;
        }
        i += 1;
    }
    true
}
