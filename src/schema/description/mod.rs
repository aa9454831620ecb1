//! Descriptions of events, which the derives make at compile time.

pub(in crate::schema) mod describe;
pub(in crate::schema) mod domain;
pub(in crate::schema) mod evolution;
pub(in crate::schema) mod ext_words;
mod segment;
