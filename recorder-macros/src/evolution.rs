//! The keys `alias` and `default`, for readers of rings that have another version of the schema.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::parse::ParseStream;
use syn::spanned::Spanned as _;
use syn::{LitStr, Result, Token, Type};

use crate::generated::generated_at;
use crate::names::checked_name;

/// The earlier names of an item, and its value for rings that lack it: `Some(None)` for `default` without a value.
#[derive(Default)]
pub struct Evolution {
    pub aliases: Vec<LitStr>,
    pub default: Option<Option<TokenStream>>,
}

impl Evolution {
    /// Makes the description for a field of type `ty`.
    pub fn of_field(&self, ty: &Type) -> TokenStream {
        let default = self.default.as_ref().map(|value| {
            let value = match value {
                Some(value) => quote!(#value),
                None => quote_spanned!(generated_at(ty.span())=> <#ty as ::core::default::Default>::default()),
            };
            quote! {
                |out: &mut [::core::primitive::u8]| {
                    let value: #ty = #value;
                    <#ty as __schema::PayloadField>::encode_field(&value, out);
                }
            }
        });
        self.expression(default)
    }

    /// Makes the description for an array.
    pub fn of_elements(&self) -> TokenStream {
        self.expression(self.default.as_ref().map(|_| quote!(|_: &mut [::core::primitive::u8]| ())))
    }

    /// Makes the description for what has no default.
    pub fn of_names(&self) -> TokenStream {
        self.expression(None)
    }

    fn expression(&self, default: Option<TokenStream>) -> TokenStream {
        let aliases = &self.aliases;
        let default = match default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        quote!(__schema::Evolution { aliases: &[#(#aliases),*], default: #default })
    }
}

/// Reads the value of `default = VALUE`, up to the next comma. The compiler parses it: `syn` knows all expressions only
/// with its feature `full`, which takes long to build.
pub fn value(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    if value.is_empty() { Err(input.error("expected a value")) } else { Ok(value) }
}

/// Checks the earlier names of items that stand beside each other. If an earlier name were that of two items, both
/// would read the same field of an older ring.
pub fn refuse_equal_aliases<'a>(items: impl Iterator<Item = (&'a str, &'a Evolution)> + Clone) -> Result<()> {
    let mut taken: HashSet<String> = items.clone().map(|(name, _)| name.to_owned()).collect();
    for alias in items.flat_map(|(_, evolution)| &evolution.aliases) {
        let name = checked_name(
            alias,
            |first| first.is_ascii_alphabetic() || *first == '_',
            "a name of ASCII letters, digits and `_` that does not begin with a digit, as schema text has it",
        )?;
        if !taken.insert(name) {
            let problem = "another item here has this name or alias: an old ring would give its value to both";
            return Err(syn::Error::new(alias.span(), problem));
        }
    }
    Ok(())
}
