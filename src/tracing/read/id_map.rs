//! Hash maps whose keys are ids from untrusted files.

/// A hash map for short keys. Its hash function is fast. It is seeded with a random number, so a file cannot be made
/// whose ids all collide.
pub type IdMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
