//! The description of a schema, and those checks of its trailing arrays that the compiler must make.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, LitStr, Result};

use crate::attributes::{EventAttributes, Trailing, screaming_name};
use crate::domains::Domain;
use crate::event::{Event, RECORD_ERROR_CODE};
use crate::ext_words::ExtWords;
use crate::generated::generated_at;
use crate::names;

/// The smallest content type that a program may use for events of its own.
const FIRST_OF_PROGRAMS: u16 = 256;

/// Makes the `SchemaInfo` of an enum.
pub fn schema_info(
    input: &DeriveInput,
    attributes: &EventAttributes,
    words: &ExtWords,
    events: &[Event<'_>],
    domains: &[Option<Domain>],
) -> Result<TokenStream> {
    let Some(content_type) = &attributes.content_type else {
        return Err(syn::Error::new(
            input.ident.span(),
            "expected #[event(content_type = N)]; 1 to 3 are TEST, EXEC and PERF, programs use numbers from 256",
        ));
    };
    match content_type.base10_parse::<u16>()? {
        0 => {
            return Err(syn::Error::new(content_type.span(), "content type 0 means no content; use a number from 256"));
        }
        1..FIRST_OF_PROGRAMS if !attributes.own_schema => {
            let problem = "content types below 256 are for published schemas: 1 to 3 are TEST, EXEC and PERF; use a number from 256";
            return Err(syn::Error::new(content_type.span(), problem));
        }
        _ => {}
    }
    let name = screaming_name(attributes.name.as_ref(), &input.ident)?;
    let version = match &attributes.version {
        Some(version) => version.base10_parse::<u32>()?,
        None => 1,
    };
    let published_hash = match &attributes.schema_hash {
        Some(text) => {
            let bytes = hash_bytes(text)?;
            quote!(::core::option::Option::Some([#(#bytes),*]))
        }
        None => quote!(::core::option::Option::None),
    };
    let record_error = quote!(__schema::derive_support::RECORD_ERROR_EVENT);
    let implied = events.iter().all(|event| event.code != RECORD_ERROR_CODE).then_some(&record_error);
    let infos =
        implied.into_iter().cloned().chain(events.iter().zip(domains).map(|(event, domain)| match event.code {
            RECORD_ERROR_CODE => record_error.clone(),
            _ => event_info(event, domain.as_ref()),
        }));
    let ext_words = words.expression();
    let description = names::description(&input.attrs);
    Ok(quote! {
        __schema::SchemaInfo {
            content_type: #content_type,
            name: #name,
            version: #version,
            events: &[#(#infos),*],
            published_hash: #published_hash,
            ext_words: #ext_words,
            description: #description,
        }
    })
}

fn event_info(event: &Event<'_>, domain: Option<&Domain>) -> TokenStream {
    let Event { code, name, description, payload, trailing, evolution, .. } = event;
    let evolution = evolution.of_names();
    let payload = match payload {
        Some(ty) => {
            quote_spanned!(generated_at(ty.span())=> ::core::option::Option::Some(<#ty as __schema::EventPayload>::STRUCT))
        }
        None => quote!(::core::option::Option::None),
    };
    let arrays = trailing.iter().map(|Trailing { name, element, count, evolution }| {
        let (name, evolution) = (name.to_string(), evolution.of_elements());
        let count = match count {
            Some(path) => {
                let path = &path.text;
                quote!(__schema::TrailingCount::Field(#path))
            }
            None => quote!(__schema::TrailingCount::Rest),
        };
        quote! {
            __schema::TrailingInfo {
                name: #name,
                element: <#element as __schema::PayloadField>::TYPE,
                count: #count,
                evolution: #evolution,
            }
        }
    });
    let domain = match domain {
        Some(Domain { number, name }) => {
            quote!(::core::option::Option::Some(__schema::DomainInfo { number: #number, name: #name }))
        }
        None => quote!(::core::option::Option::None),
    };
    quote! {
        __schema::EventInfo {
            code: #code,
            name: #name,
            domain: #domain,
            payload: #payload,
            trailing: &[#(#arrays),*],
            evolution: #evolution,
            description: #description,
        }
    }
}

/// Makes the checks of trailing arrays that need the size of a type or the fields of the payload struct. Only the
/// compiler knows these. So each check is an assertion that the compiler evaluates. Its error points to the wrong part
/// of the `#[event(...)]` attribute.
pub fn checks(event: &Event<'_>) -> TokenStream {
    let checks = event.trailing.iter().map(|Trailing { name, element, count, .. }| {
        let text = name.to_string();
        let element_check = quote_spanned! {generated_at(element.span())=>
            const _: () = assert!(
                <#element as __schema::PayloadField>::WIRE_BYTES > 0,
                "the elements of a trailing array have 0 bytes"
            );
        };
        let Some(payload) = &event.payload else {
            return element_check;
        };
        let name_check = quote_spanned! {generated_at(name.span())=>
            const _: () = assert!(
                <#payload as __schema::EventPayload>::STRUCT.field(#text).is_none(),
                "the payload struct has a field of this name"
            );
        };
        let count_check = count.as_ref().map(|path| {
            let text = &path.text;
            quote_spanned! {generated_at(path.span)=>
                const _: () = if let ::core::option::Option::Some(problem) =
                    __schema::derive_support::count_problem(<#payload as __schema::EventPayload>::STRUCT, #text)
                {
                    ::core::panic!("{}", problem)
                };
            }
        });
        quote!(#element_check #name_check #count_check)
    });
    quote!(#(#checks)*)
}

fn hash_bytes(text: &LitStr) -> Result<Vec<u8>> {
    let digits = text.value();
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|i| {
            digits
                .get(i..i + 2)
                .filter(|pair| !pair.starts_with('+'))
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        })
        .collect();
    bytes.filter(|bytes| bytes.len() == 32).ok_or_else(|| syn::Error::new(text.span(), "expected 64 hex digits"))
}
