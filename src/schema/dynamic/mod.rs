//! Events that are known only by the schema text of their ring.

pub(in crate::schema) mod decode;
pub(crate) mod model;
pub(crate) mod places;
pub(in crate::schema) mod shape;
