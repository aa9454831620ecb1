//! The comparison of two schemas, and the state that all of its parts share.

use super::difference::Differences;
use crate::schema::description::evolution::Evolution;
use crate::schema::dynamic::model::SchemaModel;

/// The comparison of two schemas.
pub(super) struct Resolver<'a> {
    pub(super) writer: &'a SchemaModel,
    /// True if an event has the same code in both schemas.
    pub(super) keeps_codes: bool,
    pub(super) differences: Differences,
}

/// Finds the item with the name `name`, or otherwise with one of its earlier names. Returns its index.
pub(super) fn index_of<T>(items: &[T], name_of: fn(&T) -> &str, name: &str, evolution: &Evolution) -> Option<usize> {
    let find = |is_it: &dyn Fn(&str) -> bool| items.iter().position(|item| is_it(name_of(item)));
    find(&|of| of == name).or_else(|| find(&|of| evolution.has_alias(of)))
}
