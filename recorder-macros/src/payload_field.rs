//! The derive `PayloadField`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Field, Fields, Ident, Result};

use crate::attributes::{EventAttributes, refuse_packed, repr_integer, type_name};
use crate::evolution::{Evolution, refuse_equal_aliases};
use crate::names;

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    names::refuse_generics(&input.generics)?;
    refuse_packed(&input.attrs)?;
    match &input.data {
        Data::Enum(data) => expand_enum(input, data),
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => expand_newtype(input, &fields.unnamed[0]),
            _ => Err(syn::Error::new(
                input.ident.span(),
                "PayloadField is for enums without fields and structs of one unnamed field; use #[derive(EventPayload)]",
            )),
        },
        Data::Union(_) => Err(syn::Error::new(input.ident.span(), "a union cannot be a field of an event payload")),
    }
}

/// Expands the derive for a struct with one unnamed field. The struct is encoded in the same way as its field.
fn expand_newtype(input: &DeriveInput, field: &Field) -> Result<TokenStream> {
    let krate = EventAttributes::read(&input.attrs, &["crate"])?.krate();
    EventAttributes::read(&field.attrs, &[])?;
    let ty = &field.ty;
    let ident = &input.ident;
    Ok(quote! {
        const _: () = {
            use #krate::schema as __schema;

            #[automatically_derived]
            impl __schema::PayloadField for #ident {
                const WIRE_BYTES: ::core::primitive::usize = <#ty as __schema::PayloadField>::WIRE_BYTES;
                const WIRE_ALIGN: ::core::primitive::usize = <#ty as __schema::PayloadField>::WIRE_ALIGN;
                const TYPE: __schema::FieldType = <#ty as __schema::PayloadField>::TYPE;
                const ZERO_IS_VALID: ::core::primitive::bool = <#ty as __schema::PayloadField>::ZERO_IS_VALID;

                #[inline(always)]
                fn encode_field(&self, out: &mut [::core::primitive::u8]) {
                    <#ty as __schema::PayloadField>::encode_field(&self.0, out);
                }

                #[inline]
                fn decode_field(bytes: &[::core::primitive::u8]) -> ::core::result::Result<Self, __schema::DecodeError> {
                    <#ty as __schema::PayloadField>::decode_field(bytes).map(Self)
                }
            }
        };
    })
}

fn expand_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let attributes = EventAttributes::read(&input.attrs, &["name", "crate"])?;
    let ident = &input.ident;
    let name = type_name(attributes.name.as_ref(), ident)?;
    let Some(repr) = repr_integer(&input.attrs)? else {
        return Err(syn::Error::new(ident.span(), "say which integer represents the enum, e.g. #[repr(u8)]"));
    };
    if data.variants.is_empty() {
        return Err(syn::Error::new(ident.span(), "an enum without values cannot be a field"));
    }
    let mut variants = Vec::new();
    let mut value_names = Vec::new();
    let mut evolutions = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(
                &variant.fields,
                "an enum in a payload has no fields: it is represented by its number",
            ));
        }
        evolutions.push(EventAttributes::read(&variant.attrs, &["alias"])?.evolution);
        variants.push(&variant.ident);
        value_names.push(names::screaming(&variant.ident)?);
    }
    refuse_equal_aliases(value_names.iter().map(String::as_str).zip(&evolutions))?;
    let evolutions = evolutions.iter().map(Evolution::of_names);
    let scalar = Ident::new(&repr.to_string().to_uppercase(), repr.span());
    let krate = attributes.krate();
    let description = names::description(&input.attrs);
    Ok(quote! {
        const _: () = {
            use #krate::schema as __schema;

            const __EVENTRING_ENUM: __schema::EnumInfo = __schema::EnumInfo {
                name: #name,
                repr: __schema::Scalar::#scalar,
                values: &[#((#ident::#variants as ::core::primitive::#repr as ::core::primitive::i128, #value_names)),*],
                evolution: &[#(#evolutions),*],
                description: #description,
            };

            #[automatically_derived]
            impl __schema::PayloadField for #ident {
                const WIRE_BYTES: ::core::primitive::usize = <::core::primitive::#repr as __schema::PayloadField>::WIRE_BYTES;
                const WIRE_ALIGN: ::core::primitive::usize = <::core::primitive::#repr as __schema::PayloadField>::WIRE_ALIGN;
                const TYPE: __schema::FieldType = __schema::FieldType::Enum(&__EVENTRING_ENUM);
                const ZERO_IS_VALID: ::core::primitive::bool = false #(|| #ident::#variants as ::core::primitive::#repr == 0)*;

                #[inline(always)]
                fn encode_field(&self, out: &mut [::core::primitive::u8]) {
                    let number = match self {
                        #(#ident::#variants => #ident::#variants as ::core::primitive::#repr,)*
                    };
                    <::core::primitive::#repr as __schema::PayloadField>::encode_field(&number, out);
                }

                #[inline]
                fn decode_field(bytes: &[::core::primitive::u8]) -> ::core::result::Result<Self, __schema::DecodeError> {
                    let number = <::core::primitive::#repr as __schema::PayloadField>::decode_field(bytes)?;
                    #(
                        if number == #ident::#variants as ::core::primitive::#repr {
                            return ::core::result::Result::Ok(#ident::#variants);
                        }
                    )*
                    ::core::result::Result::Err(
                        __schema::DecodeError::invalid_enum(#name, number as ::core::primitive::i128),
                    )
                }
            }
        };
    })
}
