//! The attributes `#[event(ext(…))]` of an enum and `#[event(carries(…))]` of its variants.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, Result};

use crate::attributes::{EventAttributes, ExtWord};
use crate::generated::generated_at;
use crate::names;

/// The index and the name of the extension word that holds the id of the span in which an event was recorded.
const SPAN: (usize, &str) = (3, "span");

/// The named extension words of a schema.
pub struct ExtWords {
    /// For each extension word that has a name: the name, and the word's kind (the name of a variant of
    /// `ExtWordKind`).
    words: [Option<(String, &'static str)>; 4],
    /// The places in the source that name the words.
    spans: [Option<Span>; 4],
}

impl ExtWords {
    /// Reads the extension words of an enum. Word 3 is named `span`, unless the enum has the attribute `no_span`.
    pub fn read(attributes: &EventAttributes) -> Result<Self> {
        let mut words = [const { None }; 4];
        let mut spans = [None; 4];
        if !attributes.no_span {
            words[SPAN.0] = Some((SPAN.1.to_owned(), "Number"));
        }
        for word in attributes.ext.iter().flatten() {
            let (index, name, kind) = read_word(word)?;
            if name == SPAN.1 {
                let problem = "word 3 is called span, unless the enum says no_span; no other word is called so";
                return Err(syn::Error::new(word.name.span(), problem));
            }
            if words.iter().flatten().any(|(other, of)| *other == name || key(other, of) == key(&name, kind)) {
                return Err(syn::Error::new(word.name.span(), "a second extension word of this name"));
            }
            match &words[index] {
                None => (words[index], spans[index]) = (Some((name, kind)), Some(word.name.span())),
                Some((other, _)) if other == SPAN.1 => {
                    let problem = "word 3 holds the id of the current span; #[event(no_span)] on the enum frees it";
                    return Err(syn::Error::new(word.index.span(), problem));
                }
                Some(_) => return Err(syn::Error::new(word.index.span(), "this extension word has a name already")),
            }
        }
        Ok(Self { words, spans })
    }

    /// Returns the extension words that a variant carries: bit N is set if it carries word N. If the variant names no
    /// words, it carries all named words except `span`.
    pub fn carried_bits(&self, carried: Option<&[Ident]>) -> Result<u8> {
        let own = self.words.iter().enumerate().filter_map(|(index, word)| Some((index, &word.as_ref()?.0)));
        let own: Vec<(usize, &String)> = own.filter(|(_, name)| *name != SPAN.1).collect();
        let Some(carried) = carried else {
            return Ok(own.iter().fold(0, |bits, (index, _)| bits | 1 << index));
        };
        carried.iter().try_fold(0, |bits, name| match own.iter().find(|(_, own)| name == own.as_str()) {
            Some((index, _)) => Ok(bits | 1 << index),
            None => {
                let problem = "the enum names no such extension word: #[event(ext(INDEX = NAME))]";
                Err(syn::Error::new(name.span(), problem))
            }
        })
    }

    /// Returns true if the schema names words other than `span`.
    pub fn has_own(&self) -> bool {
        self.words.iter().flatten().any(|(name, _)| name != SPAN.1)
    }

    /// Returns an expression that makes the schema's `ExtWords`.
    pub fn expression(&self) -> TokenStream {
        let words = self.words.iter().map(|word| match word {
            None => quote!(::core::option::Option::None),
            Some((name, kind)) => {
                let kind = Ident::new(kind, Span::call_site());
                quote! {
                    ::core::option::Option::Some(__schema::ExtWord::new(#name, __schema::ExtWordKind::#kind))
                }
            }
        });
        quote!(__schema::ExtWords::new([#(#words),*]))
    }

    /// Makes the checks that outputs can show each word under its name. The names that they cannot show are listed in
    /// `eventring`, so the compiler makes these checks.
    pub fn name_checks(&self) -> TokenStream {
        let own = self.words.iter().zip(self.spans).filter_map(|(word, span)| Some((word.as_ref()?, span?)));
        let checks = own.map(|((name, kind), span)| {
            let kind = Ident::new(kind, Span::call_site());
            quote_spanned! {generated_at(span)=>
                const _: () = if let ::core::option::Option::Some(problem) =
                    __schema::derive_support::word_problem(#name, __schema::ExtWordKind::#kind)
                {
                    ::core::panic!("{}", problem)
                };
            }
        });
        quote!(#(#checks)*)
    }
}

/// Returns the name of a word in outputs, as `ExtWord::key` does: a seqno `order` is `order_seqno`.
fn key(name: &str, kind: &str) -> String {
    if kind == "Number" { name.to_owned() } else { format!("{name}_{}", kind.to_ascii_lowercase()) }
}

fn read_word(word: &ExtWord) -> Result<(usize, String, &'static str)> {
    let index: usize = word.index.base10_parse()?;
    if index > 3 {
        return Err(syn::Error::new(word.index.span(), "an event has the extension words 0 to 3"));
    }
    let kind = match &word.kind {
        None => "Number",
        Some(kind) if kind == "seqno" => "Seqno",
        Some(kind) if kind == "index" => "Index",
        Some(kind) => {
            let problem = "expected `seqno` (of an event of the same ring) or `index` (stored plus one), or nothing";
            return Err(syn::Error::new(kind.span(), problem));
        }
    };
    Ok((index, names::plain(&word.name)?, kind))
}
