//! Where generated code lies.
//!
//! The compiler's errors about generated code point to what the program has written. But its lints must not take the
//! code for the program's. An `allow` would not do: in a crate that forbids the lint, it is an error.

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
