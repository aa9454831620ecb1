//! An event of an enum, as the derive has read it.

use syn::{Ident, LitStr, Type};

use crate::attributes::Trailing;
use crate::evolution::Evolution;

/// Code of RECORD_ERROR in every schema.
pub const RECORD_ERROR_CODE: u16 = 1;

/// A variant as the generated code needs it.
pub struct Event<'a> {
    pub ident: &'a Ident,
    pub code: u16,
    pub name: String,
    pub description: String,
    pub payload: Option<Type>,
    pub trailing: Vec<Trailing>,
    /// The event's earlier names.
    pub evolution: Evolution,
    /// The name of the event's view. A view is a generated struct that reads the event's payload.
    pub view: Ident,
    /// The names of the extension words that the event carries. `None` if the variant has no attribute `carries`.
    pub carried: Option<Vec<Ident>>,
    /// The name of the event's domain, if the variant gives one.
    pub domain: Option<LitStr>,
}
