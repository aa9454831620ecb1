//! Views: for each event with trailing arrays, the derive makes a struct that reads the event's payload.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Ident, Result};

use crate::attributes::Trailing;
use crate::event::Event;
use crate::generated::generated;

/// The field of a view that holds the fixed struct.
const FIXED: &str = "fixed";

/// The generated code of a view. `item` is the struct, which goes beside the enum. `functions` are the functions of
/// the view, which go into the scope where `__schema` is defined.
pub struct View {
    pub item: TokenStream,
    pub functions: TokenStream,
}

/// Makes the view of an event. Returns `None` for an event without trailing arrays.
pub fn view(input: &DeriveInput, krate: &TokenStream, event: &Event<'_>) -> Result<Option<View>> {
    if event.trailing.is_empty() {
        return Ok(None);
    }
    if let Some(array) = event.trailing.iter().find(|array| event.payload.is_some() && array.name == FIXED) {
        let problem = "a view has a field `fixed` that holds the fixed struct: choose another name for the array";
        return Err(syn::Error::new(array.name.span(), problem));
    }
    Ok(Some(View { item: item(input, krate, event), functions: functions(event) }))
}

fn item(input: &DeriveInput, krate: &TokenStream, event: &Event<'_>) -> TokenStream {
    let (vis, name) = (&input.vis, generated(&event.view));
    let description = format!("The whole payload of {}.", event.name);
    let fixed = event.payload.as_ref().map(|payload| {
        quote! {
            /// The fixed struct.
            pub fixed: #payload,
        }
    });
    let arrays = event.trailing.iter().map(|Trailing { name, element, .. }| {
        let (description, name) = (format!("The array `{name}`."), generated(name));
        quote! {
            #[doc = #description]
            pub #name: #krate::schema::ArrayView<'a, #element>,
        }
    });
    quote! {
        #[doc = #description]
        #vis struct #name<'a> {
            #fixed
            #(#arrays)*
        }
    }
}

fn functions(event: &Event<'_>) -> TokenStream {
    let (owner, name) = (&event.name, &event.view);
    let decoded = match &event.payload {
        Some(fixed) => quote!(let (fixed, rest) = <#fixed as __schema::EventPayload>::decode(payload)?;),
        None => quote!(let rest = payload;),
    };
    let arrays = event.trailing.iter().enumerate().map(|(i, Trailing { name, count, .. })| {
        let text = name.to_string();
        let local = local(i);
        match (count, &event.payload) {
            (Some(path), Some(payload)) => {
                let path = &path.text;
                quote! {
                    let (#local, rest) = __schema::derive_support::split_counted(
                        #owner,
                        #text,
                        rest,
                        payload,
                        const { __schema::derive_support::count_at(<#payload as __schema::EventPayload>::STRUCT, #path) },
                    )?;
                }
            }
            _ => quote!(let (#local, rest) = __schema::derive_support::split_rest(#owner, #text, rest)?;),
        }
    });
    let has_fixed = event.payload.is_some();
    let fixed = has_fixed.then(|| quote!(fixed,));
    let names: Vec<&Ident> = event.trailing.iter().map(|array| &array.name).collect();
    let locals = (0..names.len()).map(local);
    // The view implements a trait like `Clone` or `Debug` only if the payload struct implements it. Without
    // `for<'__bound>`, the compiler would check the bound here, and refuse a struct that does not implement the trait.
    // With `for<'__bound>`, the compiler checks the bound only where the trait is used.
    let bound = |of: TokenStream| event.payload.as_ref().map(|payload| quote!(where for<'__bound> #payload: #of));
    let (clone, copy) = (bound(quote!(::core::clone::Clone)), bound(quote!(::core::marker::Copy)));
    let (partial_eq, eq) = (bound(quote!(::core::cmp::PartialEq)), bound(quote!(::core::cmp::Eq)));
    let debug = bound(quote!(::core::fmt::Debug));
    let elements = event.trailing.iter().map(|array| &array.element);
    let debug_elements = match &debug {
        Some(debug) => quote!(#debug, #(for<'__bound> #elements: ::core::fmt::Debug),*),
        None => quote!(where #(for<'__bound> #elements: ::core::fmt::Debug),*),
    };
    let fixed_ident = format_ident!("{FIXED}");
    let all: Vec<&Ident> = has_fixed.then_some(&fixed_ident).into_iter().chain(names.iter().copied()).collect();
    let texts = all.iter().map(|name| name.to_string());
    let title = name.to_string();
    quote! {
        impl<'a> #name<'a> {
            /// Decodes the fixed struct and finds the arrays. The elements of an array are decoded later, when they
            /// are read.
            ///
            /// # Errors
            /// The payload is shorter or longer than its counts say, or a bool or enum of the fixed struct has an
            /// invalid value.
            pub fn decode(
                payload: &'a [::core::primitive::u8],
            ) -> ::core::result::Result<Self, __schema::DecodeError> {
                #decoded
                #(#arrays)*
                __schema::derive_support::expect_end(#owner, rest)?;
                ::core::result::Result::Ok(Self { #fixed #(#names: #locals),* })
            }
        }

        #[automatically_derived]
        impl<'a> ::core::clone::Clone for #name<'a> #clone {
            fn clone(&self) -> Self {
                Self { #(#all: ::core::clone::Clone::clone(&self.#all)),* }
            }
        }

        #[automatically_derived]
        impl<'a> ::core::marker::Copy for #name<'a> #copy {}

        #[automatically_derived]
        impl<'a> ::core::cmp::PartialEq for #name<'a> #partial_eq {
            fn eq(&self, other: &Self) -> ::core::primitive::bool {
                true #(&& self.#all == other.#all)*
            }
        }

        #[automatically_derived]
        impl<'a> ::core::cmp::Eq for #name<'a> #eq {}

        #[automatically_derived]
        impl<'a> ::core::fmt::Debug for #name<'a> #debug_elements {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#title)#(.field(#texts, &self.#all))*.finish()
            }
        }
    }
}

/// Returns the name of the generated variable that holds the array with this index. The array's own name is not used,
/// because another variable may have that name.
fn local(index: usize) -> Ident {
    format_ident!("__array_{index}")
}
