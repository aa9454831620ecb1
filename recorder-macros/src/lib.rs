//! Derives of the `eventring` crate; use them through `eventring`.
