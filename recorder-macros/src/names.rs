//! Names and descriptions in schema text.

use syn::ext::IdentExt as _;
use syn::{Attribute, Expr, ExprLit, Generics, Ident, Lit, LitStr, Meta, Result};

/// Returns the identifier without `r#`. Returns an error if it is not ASCII, because names in schema text are ASCII.
pub fn plain(ident: &Ident) -> Result<String> {
    let name = ident.unraw().to_string();
    if name.is_ascii() { Ok(name) } else { Err(syn::Error::new(ident.span(), "names in schemas are ASCII")) }
}

/// Returns the name of a type. Returns an error if the name does not begin with a capital letter. In schema text, the
/// capital distinguishes the type from built-in types like `u8`.
pub fn type_name(ident: &Ident) -> Result<String> {
    let name = plain(ident)?;
    if name.starts_with(|c: char| c.is_ascii_uppercase()) {
        Ok(name)
    } else {
        Err(syn::Error::new(
            ident.span(),
            "names of types in schemas begin with a capital letter; give it one with #[event(name = \"…\")]",
        ))
    }
}

/// Turns `BlockStart` into `BLOCK_START`.
pub fn screaming(ident: &Ident) -> Result<String> {
    let chars: Vec<char> = plain(ident)?.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let after_lower = i > 0 && !chars[i - 1].is_ascii_uppercase() && chars[i - 1] != '_';
        // If several capitals stand before a small letter, the last capital begins a word. For example, `EVMError` has
        // the words `EVM` and `Error`.
        let before_lower =
            i > 0 && chars[i - 1].is_ascii_uppercase() && chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (after_lower || before_lower) {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    Ok(out)
}

/// Returns the first paragraph of the item's documentation comments, as one line.
pub fn description(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let mut words = Vec::new();
    'paragraph: for text in lines {
        for line in text.lines().map(str::trim) {
            match (line.is_empty(), words.is_empty()) {
                (true, true) => {}
                (true, false) => break 'paragraph,
                (false, _) => words.push(line.to_owned()),
            }
        }
        if text.trim().is_empty() && !words.is_empty() {
            break;
        }
    }
    words.join(" ")
}

/// Refuses generic parameters. A payload has exactly one layout, and generic parameters would allow several.
pub fn refuse_generics(generics: &Generics) -> Result<()> {
    match generics.params.first() {
        None => Ok(()),
        Some(parameter) => Err(syn::Error::new_spanned(
            parameter,
            "a payload has no lifetime, type or const parameters: its layout is fixed; variable-length data goes into a trailing array",
        )),
    }
}

/// Checks a name that an attribute gives as a string. Returns an error if schema text does not allow this name.
pub fn checked_name(text: &LitStr, first: fn(&char) -> bool, expected: &str) -> Result<String> {
    let name = text.value();
    let is_name =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.chars().next().as_ref().is_some_and(first);
    if is_name { Ok(name) } else { Err(syn::Error::new(text.span(), format!("expected {expected}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Span;

    #[test]
    fn variants_become_the_published_names() {
        for (rust, published) in [
            ("BlockStart", "BLOCK_START"),
            ("TxnPerfEvmEnter", "TXN_PERF_EVM_ENTER"),
            ("BlockQc", "BLOCK_QC"),
            ("EVMError", "EVM_ERROR"),
            ("Step2Done", "STEP2_DONE"),
            ("r#Type", "TYPE"),
            ("Already_Split", "ALREADY_SPLIT"),
        ] {
            let ident = match rust.strip_prefix("r#") {
                Some(raw) => Ident::new_raw(raw, Span::call_site()),
                None => Ident::new(rust, Span::call_site()),
            };
            assert_eq!(screaming(&ident).unwrap(), published);
        }
    }

    #[test]
    fn a_description_is_the_first_paragraph_on_one_line() {
        let item: syn::ItemStruct = syn::parse_quote! {
            /// One
            /// sentence.
            ///
            /// More.
            struct S;
        };
        assert_eq!(description(&item.attrs), "One sentence.");
    }
}
