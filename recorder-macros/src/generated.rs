//! The spans of generated code.
//!
//! Generated code has spans (source positions) that point compiler errors to the program's source. Lints do not treat
//! the code as the program's own. An `allow` attribute would be an error in a crate that forbids the lint.

use proc_macro2::{Ident, Span};

/// Returns the place for code that the macros generate for what the program has written at `span`.
pub fn generated_at(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// Returns the name for an item, variant or field that the macros generate.
pub fn generated(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(generated_at(name.span()));
    name
}
