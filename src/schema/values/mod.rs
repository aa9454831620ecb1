//! Values that were read from payloads, and how they are written.

pub(in crate::schema) mod decimal;
pub(in crate::schema) mod float;
pub(in crate::schema) mod hex;
pub(in crate::schema) mod value;
