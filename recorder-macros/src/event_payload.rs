//! The derive `EventPayload`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Fields, FieldsNamed, Ident, Result, Type};

use crate::attributes::{EventAttributes, refuse_packed, type_name};
use crate::evolution::{Evolution, refuse_equal_aliases};
use crate::generated::generated_at;
use crate::names;

/// A field as the generated code needs it.
struct Field<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    name: String,
    description: String,
    redact: bool,
    evolution: Evolution,
    /// Name of the constant that holds the field's offset.
    offset: Ident,
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = named_fields(input)?;
    names::refuse_generics(&input.generics)?;
    refuse_packed(&input.attrs)?;
    let attributes = EventAttributes::read(&input.attrs, &["name", "crate"])?;
    let name = type_name(attributes.name.as_ref(), &input.ident)?;
    let fields = fields.named.iter().enumerate().map(|(i, field)| read_field(i, field)).collect::<Result<Vec<_>>>()?;
    refuse_equal_aliases(fields.iter().map(|field| (field.name.as_str(), &field.evolution)))?;

    let krate = attributes.krate();
    let ident = &input.ident;
    let description = names::description(&input.attrs);
    let count = fields.len();
    let sizes = fields.iter().map(|Field { ty, .. }| {
        quote_spanned!(generated_at(ty.span())=> (<#ty as __schema::PayloadField>::WIRE_BYTES, <#ty as __schema::PayloadField>::WIRE_ALIGN))
    });
    let offsets = fields.iter().enumerate().map(
        |(i, Field { offset, .. })| quote!(const #offset: ::core::primitive::usize = __EVENTRING_LAYOUT.offsets[#i];),
    );
    let infos = fields.iter().map(|Field { ty, name, description, redact, evolution, offset, .. }| {
        let evolution = evolution.of_field(ty);
        quote! {
            __schema::FieldInfo {
                name: #name,
                ty: <#ty as __schema::PayloadField>::TYPE,
                offset: #offset,
                bytes: <#ty as __schema::PayloadField>::WIRE_BYTES,
                redacted: #redact,
                evolution: #evolution,
                description: #description,
            }
        }
    });
    let redact_checks = fields.iter().filter(|field| field.redact).map(|Field { ty, .. }| {
        quote_spanned! {generated_at(ty.span())=>
            const _: () = assert!(
                <#ty as __schema::PayloadField>::ZERO_IS_VALID,
                "a redacted field is recorded as zeros, and zeros are no value of its type"
            );
        }
    });
    // The generated code writes every byte of the target array, including padding. So the compiler can remove the
    // earlier code that fills the array with zeros.
    let encodes = fields.iter().enumerate().map(|(i, Field { ident, ty, redact, offset, .. })| {
        let end = quote!(#offset + <#ty as __schema::PayloadField>::WIRE_BYTES);
        let next = match fields.get(i + 1) {
            Some(next) => next.offset.to_token_stream(),
            None => quote!(__EVENTRING_LAYOUT.bytes),
        };
        if *redact {
            // The value of a redacted field is not encoded; zeros take its place. The generated code still borrows the
            // field. Otherwise the compiler would warn that the field is never read.
            return quote! {
                let _ = &self.#ident;
                out[#offset..#next].fill(0);
            };
        }
        quote! {
            <#ty as __schema::PayloadField>::encode_field(&self.#ident, &mut out[#offset..#end]);
            out[#end..#next].fill(0);
        }
    });
    let decodes = fields.iter().map(|Field { ident, ty, name: field_name, offset, .. }| {
        quote! {
            #ident: <#ty as __schema::PayloadField>::decode_field(
                &bytes[#offset..#offset + <#ty as __schema::PayloadField>::WIRE_BYTES],
            )
            .map_err(|error| error.inside(#name, #field_name))?,
        }
    });
    let types = fields.iter().map(|field| field.ty);

    Ok(quote! {
        const _: () = {
            use #krate::schema as __schema;

            const __EVENTRING_LAYOUT: __schema::derive_support::Layout<#count> =
                __schema::derive_support::Layout::new([#(#sizes),*]);
            #(#offsets)*
            #(#redact_checks)*
            const __EVENTRING_STRUCT: __schema::StructInfo = __schema::StructInfo {
                name: #name,
                bytes: __EVENTRING_LAYOUT.bytes,
                align: __EVENTRING_LAYOUT.align,
                fields: &[#(#infos),*],
                description: #description,
            };

            #[automatically_derived]
            impl __schema::PayloadField for #ident {
                const WIRE_BYTES: ::core::primitive::usize = __EVENTRING_LAYOUT.bytes;
                const WIRE_ALIGN: ::core::primitive::usize = __EVENTRING_LAYOUT.align;
                const TYPE: __schema::FieldType = __schema::FieldType::Struct(&__EVENTRING_STRUCT);
                const ZERO_IS_VALID: ::core::primitive::bool = true #(&& <#types as __schema::PayloadField>::ZERO_IS_VALID)*;

                #[inline]
                fn encode_field(&self, out: &mut [::core::primitive::u8]) {
                    let out = &mut out[..__EVENTRING_LAYOUT.bytes];
                    #(#encodes)*
                }

                #[inline]
                fn decode_field(bytes: &[::core::primitive::u8]) -> ::core::result::Result<Self, __schema::DecodeError> {
                    if bytes.len() != __EVENTRING_LAYOUT.bytes {
                        return ::core::result::Result::Err(
                            __schema::DecodeError::too_short(#name, bytes.len(), __EVENTRING_LAYOUT.bytes),
                        );
                    }
                    ::core::result::Result::Ok(Self { #(#decodes)* })
                }
            }

            #[automatically_derived]
            impl __schema::EventPayload for #ident {
                const STRUCT: &'static __schema::StructInfo = &__EVENTRING_STRUCT;

                #[inline]
                fn with_bytes<__R>(&self, f: impl ::core::ops::FnOnce(&[::core::primitive::u8]) -> __R) -> __R {
                    let mut bytes = [0; __EVENTRING_LAYOUT.bytes];
                    <Self as __schema::PayloadField>::encode_field(self, &mut bytes);
                    f(&bytes)
                }
            }
        };
    })
}

fn named_fields(input: &DeriveInput) -> Result<&FieldsNamed> {
    let problem = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Ok(fields),
            Fields::Unnamed(_) => {
                "EventPayload needs named fields: their names are in the schema; a struct of one unnamed field can be a field with #[derive(PayloadField)]"
            }
            Fields::Unit => "EventPayload needs named fields; an event without payload has no struct at all",
        },
        Data::Enum(_) => {
            "EventPayload is for structs; an enum without fields can be a field with #[derive(PayloadField)]"
        }
        Data::Union(_) => "EventPayload is for structs",
    };
    Err(syn::Error::new(input.ident.span(), problem))
}

fn read_field(index: usize, field: &syn::Field) -> Result<Field<'_>> {
    let Some(ident) = &field.ident else {
        return Err(syn::Error::new_spanned(field, "EventPayload needs named fields"));
    };
    if let Type::Reference(reference) = &field.ty {
        return Err(syn::Error::new_spanned(
            reference,
            "a payload holds no references: take the value, or put variable-length data into a trailing array of the event",
        ));
    }
    let attributes = EventAttributes::read(&field.attrs, &["redact", "alias", "default"])?;
    if attributes.redact && attributes.evolution.default.is_some() {
        return Err(syn::Error::new(ident.span(), "a redacted field is zeros in every ring: leave `default` out"));
    }
    Ok(Field {
        ident,
        ty: &field.ty,
        name: names::plain(ident)?,
        description: names::description(&field.attrs),
        redact: attributes.redact,
        evolution: attributes.evolution,
        offset: format_ident!("__EVENTRING_OFFSET_{index}"),
    })
}
