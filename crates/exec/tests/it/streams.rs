//! Blocks of live rings, captures and snapshots.
