//! Derives of the `eventring` crate. Use them through `eventring`, where the traits of the same names document them.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod attributes;
mod event_payload;
mod event_type;
mod ext_words;
mod names;
mod payload_field;
mod payloads;
mod schema_info;
mod views;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements the payload of an event for a struct; see the trait `eventring::schema::EventPayload`.
#[proc_macro_derive(EventPayload, attributes(event))]
pub fn derive_event_payload(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event_payload::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Lets payloads have fields of an enum without fields, or of a struct with one unnamed field; see the trait
/// `eventring::schema::PayloadField`.
#[proc_macro_derive(PayloadField, attributes(event))]
pub fn derive_payload_field(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    payload_field::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements the events of a content type for an enum; see the trait `eventring::schema::EventType`.
#[proc_macro_derive(EventType, attributes(event))]
pub fn derive_event_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event_type::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
