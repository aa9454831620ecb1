//! The filter of call sites of this crate's own macros, which asks subscribers and layers.
//!
//! | file | idea |
//! |---|---|
//! | `wanted` | whether a call site is wanted |
//! | `owner_filter` | whether the filters of a stack of layers let a call site through |

mod owner_filter;
mod wanted;
