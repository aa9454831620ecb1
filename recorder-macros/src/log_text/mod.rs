//! The macros of `eventring::log`. They have the syntax of `tracing`'s macros, but encode the arguments of the text by
//! their types.
//!
//! The generated code passes the format string and its arguments unchanged to `format_args!`, which checks them.

mod placeholder;

use crate::commas::split;
use placeholder::{Argument, placeholders};
use proc_macro2::{Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::{Error, LitStr, Result};

/// Expands a call: the level, a comma, and what the user wrote.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let mut items = split(input);
    let level = items.remove(0);
    let mut target = quote!(::core::module_path!());
    while let Some((name, value)) = items.first().and_then(|item| after_name(item, ':')) {
        if name != "target" {
            return Err(Error::new(name.span(), format!("`{name}:` is not known here, expected `target:`")));
        }
        target = value;
        items.remove(0);
    }
    let at = items.iter().position(|item| literal(item).is_some()).unwrap_or(items.len());
    let arguments = items.split_off(at);
    let fields = quote!(#(#items,)*);
    Ok(match arguments.split_first().and_then(|(format, arguments)| text(format, arguments)) {
        Some((given, text)) => {
            quote!(
                ::eventring::__fields!((::eventring::__log) [#target, #level, #given] ["message",] ((), #text) #fields)
            )
        }
        None => quote!(::eventring::__fields!((::eventring::__log) [#target, #level] [] () #fields)),
    })
}

/// Returns what `__log!` needs of a text: the format string, what is checked, the arguments as references in a tuple,
/// and the name of this tuple. And returns the value of the text.
fn text(format: &TokenStream, given: &[TokenStream]) -> Option<(TokenStream, TokenStream)> {
    let literal = literal(format)?;
    let tuple = Ident::new("__eventring_args", Span::mixed_site());
    let named: Vec<Option<(Ident, TokenStream)>> = given.iter().map(|item| after_name(item, '=')).collect();
    let values: Vec<&TokenStream> =
        given.iter().zip(&named).map(|(item, named)| named.as_ref().map_or(item, |(_, value)| value)).collect();
    // References to the arguments. A name that is not given is a variable of the caller.
    let number = |at: usize| {
        let at = proc_macro2::Literal::usize_unsuffixed(at);
        quote!(#tuple.#at)
    };
    let reference = |argument: &Argument| match argument {
        Argument::Number(at) => (*at < given.len()).then(|| number(*at)),
        Argument::Name(name) => {
            match named.iter().position(|it| it.as_ref().is_some_and(|(known, _)| known.unraw() == name)) {
                Some(at) => Some(number(at)),
                None => variable(name, literal.span()).map(|variable| quote!((&#variable))),
            }
        }
    };
    let mut encoded = Vec::new();
    for it in placeholders(&literal.value()) {
        let counts: Option<Vec<TokenStream>> =
            [&it.width, &it.precision].into_iter().flatten().map(reference).collect();
        // `format_args!` says what is missing.
        let (Some(counts), Some(value)) = (counts, reference(&it.value)) else { continue };
        let spec = it.spec();
        let format = quote! {
            |__eventring_out: &mut dyn ::core::fmt::Write| ::core::write!(__eventring_out, #spec, *#value #(, *#counts)*)
        };
        encoded.extend(counts.iter().cloned());
        encoded.push(match it.is_pointer() {
            true => quote!(::eventring::__private::FormattedArg(#format)),
            false => quote!((&::eventring::__private::ArgOf(#value)).__eventring_arg(#format)),
        });
    }
    let encoded = encoded.into_iter().rev().fold(quote!(()), |rest, arg| quote!((#arg, #rest)));
    let again = named.iter().enumerate().map(|(at, named)| {
        let value = number(at);
        match named {
            Some((name, _)) => quote!(#name = *#value),
            None => quote!(*#value),
        }
    });
    let whole = quote! {
        |__eventring_out: &mut ::core::fmt::Formatter<'_>| ::core::write!(__eventring_out, #literal #(, #again)*)
    };
    let checked = quote!({
        ::eventring::__private::checked(::core::format_args!(#literal #(, #given)*));
    });
    Some((
        quote!(#literal, #checked, (#((&(#values)),)*), #tuple),
        quote!(::eventring::__private::LogText(#encoded, #whole)),
    ))
}

/// Returns the variable of the caller that a placeholder names. A name that is a keyword means the raw variable, as in
/// `format_args!`, or `self`. A raw name is none that `format_args!` takes.
fn variable(name: &str, span: Span) -> Option<Ident> {
    let parsed = Ident::parse_any.parse_str(name).ok().filter(|parsed| parsed.unraw() == *parsed)?;
    let is_keyword = syn::parse_str::<Ident>(name).is_err();
    let has_no_raw_form = ["self", "Self", "super", "crate"].contains(&name);
    Some(if is_keyword && !has_no_raw_form {
        Ident::new_raw(name, span)
    } else {
        Ident::new(&parsed.to_string(), span)
    })
}

/// Returns the name and the rest of `NAME: rest` or `NAME = rest`.
fn after_name(item: &TokenStream, sign: char) -> Option<(Ident, TokenStream)> {
    let mut tokens = item.clone().into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(punct))) = (tokens.next(), tokens.next()) else {
        return None;
    };
    (punct.as_char() == sign && punct.spacing() == Spacing::Alone).then(|| (name, tokens.collect()))
}

/// Returns the item if it is a lone text.
fn literal(item: &TokenStream) -> Option<LitStr> {
    // A literal that comes from another macro lies in an invisible group.
    let mut tokens = item.clone().into_iter();
    let (token, rest) = (tokens.next()?, tokens.next());
    match token {
        _ if rest.is_some() => None,
        TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::None => literal(&group.stream()),
        token => syn::parse2(token.into_token_stream()).ok(),
    }
}
