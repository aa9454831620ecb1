//! The derives of `eventring`. Use them through the crate `eventring`. That crate documents each derive at the trait of
//! the same name.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod attributes;
mod commas;
mod domains;
mod event;
mod event_payload;
mod event_type;
mod evolution;
mod ext_words;
mod generated;
mod log_text;
mod names;
mod payload_field;
mod payloads;
mod schema_info;
mod scoped;
mod views;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `eventring::schema::EventPayload` for a struct. The struct can then be the payload of an event.
#[proc_macro_derive(EventPayload, attributes(event))]
pub fn derive_event_payload(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event_payload::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Expands a macro of `eventring::log`.
#[doc(hidden)]
#[proc_macro]
pub fn __log_text(input: TokenStream) -> TokenStream {
    log_text::expand(input.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes the body of a function a scope: `scope!` at its beginning, with the arguments as fields.
#[proc_macro_attribute]
pub fn scoped(args: TokenStream, item: TokenStream) -> TokenStream {
    scoped::expand(args.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `eventring::schema::PayloadField` for an enum without fields, or for a struct with one unnamed field.
/// Payload structs can then have fields of this type.
#[proc_macro_derive(PayloadField, attributes(event))]
pub fn derive_payload_field(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    payload_field::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `eventring::schema::EventType` for an enum. Each variant is one event of a schema.
#[proc_macro_derive(EventType, attributes(event))]
pub fn derive_event_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event_type::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
