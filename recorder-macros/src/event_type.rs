//! The derive `EventType`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Expr, ExprLit, Fields, Ident, Lit, Result, Variant};

use crate::attributes::{EventAttributes, OWN_SCHEMA, Trailing, repr_integer, screaming_name};
use crate::domains;
use crate::event::{Event, RECORD_ERROR_CODE};
use crate::evolution::refuse_equal_aliases;
use crate::ext_words::ExtWords;
use crate::names;
use crate::payloads;
use crate::schema_info::{checks, schema_info};
use crate::views;

const RECORD_ERROR_NAME: &str = "RECORD_ERROR";

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(input.ident.span(), "EventType is for enums: each variant is an event"));
    };
    names::refuse_generics(&input.generics)?;
    if repr_integer(&input.attrs)?.is_none_or(|repr| repr != "u16") {
        return Err(syn::Error::new(input.ident.span(), "event codes are u16: add #[repr(u16)]"));
    }
    let allowed = [
        "content_type",
        "name",
        "version",
        "schema_hash",
        "recorder",
        "ext",
        "domains",
        "no_span",
        "no_views",
        "payloads",
        "crate",
        OWN_SCHEMA,
    ];
    let attributes = EventAttributes::read(&input.attrs, &allowed)?;
    if data.variants.is_empty() {
        return Err(syn::Error::new(input.ident.span(), "a schema has at least one event"));
    }
    let mut events = data.variants.iter().map(read_event).collect::<Result<Vec<_>>>()?;
    events.sort_by_key(|event| event.code);
    refuse_equal_names(&events)?;
    refuse_equal_aliases(events.iter().map(|event| (event.name.as_str(), &event.evolution)))?;

    let words = ExtWords::read(&attributes)?;
    let carried = events.iter().map(|event| words.carried_bits(event.carried.as_deref()));
    let carried: Vec<u8> = carried.collect::<Result<_>>()?;
    let domains = domains::domains_of(&events, attributes.domains)?;
    let info = schema_info(input, &attributes, &words, &events, &domains)?;
    let checks = events.iter().map(checks);
    let name_checks = words.name_checks();
    let payloads =
        events.iter().filter(|event| event.code != RECORD_ERROR_CODE).map(|event| payload_of(&input.ident, event));
    let krate = attributes.krate();
    let recorder = attributes.recorder.as_ref().map(|recorder| records_to(input, &krate, &words, recorder));
    let views = match attributes.no_views {
        true => Vec::new(),
        false => {
            events.iter().filter_map(|event| views::view(input, &krate, event).transpose()).collect::<Result<_>>()?
        }
    };
    if let (Some(payloads), true) = (&attributes.payloads, attributes.no_views) {
        return Err(syn::Error::new(payloads.name.span(), "`payloads` is made of views: leave `no_views` out"));
    }
    let payloads_enum = attributes.payloads.as_ref().map(|payloads| payloads::expand(input, &krate, payloads, &events));
    let payloads_enum = payloads_enum.transpose()?;
    let (view_items, view_functions): (Vec<_>, Vec<_>) =
        views.into_iter().map(|view| (view.item, view.functions)).unzip();

    let ident = &input.ident;
    let variants: Vec<&Ident> = events.iter().map(|event| event.ident).collect();
    let codes: Vec<u16> = events.iter().map(|event| event.code).collect();
    let event_names = events.iter().map(|event| &event.name);
    Ok(quote! {
        #(#view_items)*
        #payloads_enum

        const _: () = {
            use #krate::schema as __schema;

            // The schema is a static, so it has one address. Recorders identify an event type by this address.
            static __EVENTRING_SCHEMA: __schema::SchemaInfo = #info;
            #(#checks)*
            #name_checks

            #[automatically_derived]
            impl __schema::EventType for #ident {
                const INFO: &'static __schema::SchemaInfo = &__EVENTRING_SCHEMA;

                #[inline]
                fn code(self) -> ::core::primitive::u16 {
                    self as ::core::primitive::u16
                }

                #[inline]
                fn from_code(code: ::core::primitive::u16) -> ::core::option::Option<Self> {
                    match code {
                        #(#codes => ::core::option::Option::Some(#ident::#variants),)*
                        _ => ::core::option::Option::None,
                    }
                }

                fn name(self) -> &'static ::core::primitive::str {
                    match self {
                        #(#ident::#variants => #event_names,)*
                    }
                }

                #[inline(always)]
                fn carried_words(self) -> ::core::primitive::u8 {
                    match self {
                        #(#ident::#variants => #carried,)*
                    }
                }

                fn schema() -> &'static __schema::Schema {
                    static SCHEMA: __schema::derive_support::OnceLock<__schema::Schema> =
                        __schema::derive_support::OnceLock::new();
                    __schema::derive_support::get_or_make(&SCHEMA, || __schema::Schema::new(&__EVENTRING_SCHEMA))
                }
            }

            #(#payloads)*
            #(#view_functions)*
            #recorder
        };
    })
}

fn read_event(variant: &Variant) -> Result<Event<'_>> {
    if !matches!(variant.fields, Fields::Unit) {
        return Err(syn::Error::new_spanned(
            &variant.fields,
            "the variants of an EventType have no fields; name the payload with #[event(payload = STRUCT)]",
        ));
    }
    let attributes =
        EventAttributes::read(&variant.attrs, &["name", "alias", "domain", "payload", "trailing", "view", "carries"])?;
    let code = match &variant.discriminant {
        Some((_, Expr::Lit(ExprLit { lit: Lit::Int(code), .. }))) => code.base10_parse::<u16>()?,
        Some((_, other)) => return Err(syn::Error::new_spanned(other, "expected the event code as a number")),
        None => return Err(syn::Error::new(variant.ident.span(), "expected the event code: `= N`, from 2")),
    };
    let name = screaming_name(attributes.name.as_ref(), &variant.ident)?;
    if code == 0 {
        return Err(syn::Error::new_spanned(variant, "event code 0 means no event; codes begin at 2"));
    }
    if (code == RECORD_ERROR_CODE) != (name == RECORD_ERROR_NAME) {
        return Err(syn::Error::new_spanned(
            variant,
            "event code 1 is RecordError in every schema, and no other is; codes begin at 2",
        ));
    }
    if code == RECORD_ERROR_CODE && (attributes.payload.is_some() || attributes.trailing.is_some()) {
        return Err(syn::Error::new_spanned(
            variant,
            "the payload of RecordError is the same in every schema: leave it out",
        ));
    }
    let trailing = attributes.trailing.unwrap_or_default();
    if let (Some(view), true) = (&attributes.view, trailing.is_empty()) {
        let problem = "only an event with trailing arrays has a view: leave `view` out";
        return Err(syn::Error::new(view.span(), problem));
    }
    check_trailing(&trailing, attributes.payload.is_some())?;
    Ok(Event {
        ident: &variant.ident,
        code,
        name,
        description: names::description(&variant.attrs),
        payload: attributes.payload,
        trailing,
        evolution: attributes.evolution,
        view: attributes.view.unwrap_or_else(|| format_ident!("{}View", variant.ident)),
        carried: attributes.carried,
        domain: attributes.domain,
    })
}

/// Checks trailing arrays for mistakes that the attributes alone show. The other checks need the size of a type or the
/// fields of the payload struct, so the compiler makes them when it compiles the generated code.
fn check_trailing(trailing: &[Trailing], has_payload: bool) -> Result<()> {
    for (i, array) in trailing.iter().enumerate() {
        match &array.count {
            None if i + 1 < trailing.len() => {
                return Err(syn::Error::new(
                    array.name.span(),
                    "only the last trailing array can take the rest of the payload; give this one a count: `NAME: TYPE * FIELD`",
                ));
            }
            Some(count) if !has_payload => {
                return Err(syn::Error::new(
                    count.span,
                    "the count is a field of the payload struct, and there is none: #[event(payload = STRUCT)]",
                ));
            }
            _ => {}
        }
        if trailing[..i].iter().any(|other| other.name == array.name) {
            return Err(syn::Error::new(array.name.span(), "a second trailing array of this name"));
        }
    }
    let names: Vec<String> = trailing.iter().map(|array| array.name.to_string()).collect();
    refuse_equal_aliases(names.iter().map(String::as_str).zip(trailing.iter().map(|array| &array.evolution)))?;
    Ok(())
}

fn refuse_equal_names(events: &[Event<'_>]) -> Result<()> {
    for (i, event) in events.iter().enumerate() {
        if events[..i].iter().any(|other| other.name == event.name) {
            return Err(syn::Error::new(event.ident.span(), format!("a second event of the name {}", event.name)));
        }
    }
    Ok(())
}

fn payload_of(ident: &Ident, event: &Event<'_>) -> TokenStream {
    let variant = event.ident;
    let arrays = event.trailing.len();
    let payload = match &event.payload {
        Some(ty) => quote!(#ty),
        None => quote!(()),
    };
    quote! {
        #[automatically_derived]
        impl __schema::PayloadOf<#ident, { #ident::#variant as ::core::primitive::u16 }> for #payload {
            const TRAILING_ARRAYS: ::core::primitive::usize = #arrays;
        }
    }
}

fn records_to(input: &DeriveInput, krate: &TokenStream, words: &ExtWords, recorder: &syn::Path) -> TokenStream {
    let ident = &input.ident;
    let ambient = words.has_own().then(|| {
        quote! {
            #[inline(always)]
            fn with_ambient<__R>(f: impl ::core::ops::FnOnce(&#krate::global::AmbientWords) -> __R) -> __R {
                ::std::thread_local! {
                    static AMBIENT: #krate::global::AmbientWords = const { #krate::global::AmbientWords::new() };
                }
                AMBIENT.with(f)
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #krate::global::RecordsTo for #ident {
            #[inline(always)]
            fn global_recorder() -> &'static #krate::global::GlobalRecorder {
                &#recorder
            }

            #ambient
        }
    }
}
