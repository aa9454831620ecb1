//! The attribute `#[event(payloads(NAME: DERIVE, …))]`. It makes an enum that can hold the decoded payload of any
//! event of the schema.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Result};

use crate::attributes::Payloads;
use crate::event::{Event, RECORD_ERROR_CODE};
use crate::generated::{generated, generated_at};

/// Returns two pieces of code for an event. The first is the type that the event's variant of the payload enum holds;
/// `None` if the variant holds nothing. The second is an expression that decodes `payload`.
fn held(krate: &TokenStream, event: &Event<'_>) -> (Option<TokenStream>, TokenStream) {
    let view = match (&event.payload, event.trailing.is_empty()) {
        _ if event.code == RECORD_ERROR_CODE => quote!(#krate::schema::RecordErrorView),
        (_, false) => event.view.to_token_stream(),
        (Some(payload), true) => {
            let decoded = quote!(<#payload as __schema::EventPayload>::decode_exact(payload));
            // In parentheses, the place is that of generated code. The payload may be more private than the enum.
            return (Some(quote_spanned!(generated_at(payload.span())=> (#payload))), decoded);
        }
        (None, true) => return (None, quote!(<() as __schema::EventPayload>::decode_exact(payload))),
    };
    (Some(quote!(#view<'a>)), quote!(#view::decode(payload)))
}

/// Makes the enum of payloads and its functions. The enum stands beside the enum of events.
pub fn expand(
    input: &DeriveInput,
    krate: &TokenStream,
    payloads: &Payloads,
    events: &[Event<'_>],
) -> Result<TokenStream> {
    let Payloads { name, derives } = payloads;
    let derives = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    if events.iter().all(|event| event.code != RECORD_ERROR_CODE) {
        let problem = "`payloads` needs the variant `RecordError = 1`, which is an event of every schema";
        return Err(syn::Error::new(name.span(), problem));
    }
    let (vis, ident, generated_name) = (&input.vis, &input.ident, generated(name));
    let variants = events.iter().map(|event| {
        let (variant, description) = (generated(event.ident), &event.description);
        let description = if description.is_empty() { &event.name } else { description };
        let held = held(krate, event).0.map(|held| quote!((#held)));
        quote!(#[doc = #description] #variant #held,)
    });
    let decodes = events.iter().map(|event| {
        let variant = event.ident;
        match held(krate, event) {
            (Some(_), decoded) => quote!(#ident::#variant => #decoded.map(#name::#variant),),
            (None, decoded) => quote!(#ident::#variant => #decoded.map(|()| #name::#variant),),
        }
    });
    let events_of = events.iter().map(|event| {
        let variant = event.ident;
        let held = held(krate, event).0.map(|_| quote!((_)));
        quote!(#name::#variant #held => #ident::#variant,)
    });
    let description = format!("The decoded payload of an event of `{ident}`; a variant for each event.");
    Ok(quote! {
        #[doc = #description]
        #derives
        #vis enum #generated_name<'a> {
            #(#variants)*
        }

        const _: () = {
            use #krate::schema as __schema;

            impl<'a> #name<'a> {
                /// Decodes the payload of event `code`.
                ///
                /// # Errors
                /// The schema has no such event, the payload is not exactly as long as its struct and arrays, or a
                /// bool or enum in the payload has an invalid value.
                pub fn decode(
                    code: ::core::primitive::u16,
                    payload: &'a [::core::primitive::u8],
                ) -> ::core::result::Result<Self, __schema::DecodeError> {
                    match <#ident as __schema::EventType>::from_code(code) {
                        ::core::option::Option::Some(event) => event.decode(payload),
                        ::core::option::Option::None => ::core::result::Result::Err(
                            __schema::DecodeError::unknown_event(<#ident as __schema::EventType>::CONTENT_NAME, code),
                        ),
                    }
                }

                /// Returns the event whose payload this is.
                #[must_use]
                pub const fn event(&self) -> #ident {
                    match self {
                        #(#events_of)*
                    }
                }
            }

            impl #ident {
                /// Decodes the payload of this event.
                ///
                /// # Errors
                /// The payload is not exactly as long as its struct and arrays, or a bool or enum in the payload has
                /// an invalid value.
                pub fn decode(
                    self,
                    payload: &[::core::primitive::u8],
                ) -> ::core::result::Result<#name<'_>, __schema::DecodeError> {
                    match self {
                        #(#decodes)*
                    }
                }
            }
        };
    })
}
