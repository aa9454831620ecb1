//! The attribute `scoped`: a function whose whole body is a scope.
//!
//! This module parses functions itself, because a parser of whole items would add a second to builds. It needs only the
//! function's name, argument names and body (the last group of tokens).

use crate::commas::{self, Commas};
use crate::generated::{generated, generated_at};
use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Result, Token};

/// The arguments of the attribute.
#[derive(Default)]
struct ScopedArgs {
    name: Option<LitStr>,
    target: Option<TokenStream>,
    level: Option<TokenStream>,
    fields: TokenStream,
    skipped: Vec<Ident>,
    skips_all: bool,
}

impl Parse for ScopedArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self::default();
        if input.peek(LitStr) {
            args.name = Some(input.parse()?);
            input.parse::<Option<Token![,]>>()?;
        }
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            match key.to_string().as_str() {
                "name" => args.name = Some(input.parse::<Token![=]>().and_then(|_| input.parse())?),
                "target" => args.target = Some(value(input)?),
                "level" => args.level = Some(level(value(input)?)?),
                "skip_all" => args.skips_all = true,
                "skip" => {
                    let content;
                    syn::parenthesized!(content in input);
                    args.skipped.extend(content.parse_terminated(Ident::parse_any, Token![,])?);
                }
                "fields" => {
                    let content;
                    syn::parenthesized!(content in input);
                    args.fields = content.parse()?;
                }
                _ => {
                    let expected = "expected `name = \"…\"`, `target = …`, `level = Level::…`, `skip(…)`, `skip_all` or `fields(…)`";
                    return Err(Error::new(key.span(), expected));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(args)
    }
}

/// Parses `= …` up to the next comma.
fn value(input: ParseStream<'_>) -> Result<TokenStream> {
    input.parse::<Token![=]>()?;
    let mut value = TokenStream::new();
    let mut commas = Commas::default();
    while !input.is_empty() && !commas.is_separator(&input.fork().parse()?) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    Ok(value)
}

/// Returns a level that was written as it is, or as a text, such as `"debug"`.
fn level(value: TokenStream) -> Result<TokenStream> {
    let Ok(text) = syn::parse2::<LitStr>(value.clone()) else { return Ok(value) };
    let name = text.value().to_ascii_uppercase();
    if !["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&name.as_str()) {
        return Err(Error::new(text.span(), "expected a level: error, warn, info, debug or trace"));
    }
    let name = Ident::new(&name, text.span());
    Ok(quote!(::eventring::tracing::Level::#name))
}

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let args: ScopedArgs = syn::parse2(args)?;
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let not_a_function = || Error::new(Span::call_site(), "expected a function with a body");
    let at = tokens.iter().position(|token| is_word(token, "fn")).ok_or_else(not_a_function)?;
    if let Some(word) = tokens[..at].iter().find(|token| is_word(token, "async") || is_word(token, "const")) {
        let message = "a scope belongs to one thread, and to run time: give an async function a span instead \
                       (`#[tracing::instrument]`), and a const function none";
        return Err(Error::new(word.span(), message));
    }
    let Some(TokenTree::Ident(function)) = tokens.get(at + 1).cloned() else { return Err(not_a_function()) };
    let mut angles = Angles::default();
    let parameters = tokens[at..].iter().find_map(|token| {
        angles.pass(token);
        group(token, Delimiter::Parenthesis).filter(|_| angles.depth == 0)
    });
    let parameters = parameters.ok_or_else(not_a_function)?;
    let body = tokens.pop().and_then(|token| group(&token, Delimiter::Brace)).ok_or_else(not_a_function)?;
    let names = names_of(parameters.stream());
    if let Some(unknown) = args.skipped.iter().find(|name| *name != "self" && !names.contains(name)) {
        let message = format!("`{unknown}` is no argument that would be a field, so it cannot be skipped");
        return Err(Error::new(unknown.span(), message));
    }
    let mut fields = args.fields;
    let given: Vec<Ident> = commas::split(fields.clone()).into_iter().filter_map(field_name).collect();
    if !fields.is_empty() {
        fields = quote!(#fields,);
    }
    // A field that is given takes the place of an argument of its name.
    for name in names.iter().filter(|name| !args.skips_all && !args.skipped.contains(name) && !given.contains(name)) {
        let field = LitStr::new(&name.unraw().to_string(), name.span());
        // The use of an argument `_x` as a field is no mistake of the program, so it does not look as if the program
        // had written it.
        let used = if name.unraw().to_string().starts_with('_') { generated(name) } else { name.clone() };
        // If the type has no `Debug`, the compiler shows the argument.
        fields.extend(
            quote_spanned!(generated_at(name.span())=> #field = (&::eventring::__private::AnyOf(&#used)).__eventring_recorded(),),
        );
    }
    let name = args.name.unwrap_or_else(|| LitStr::new(&function.unraw().to_string(), function.span()));
    let target = args.target.unwrap_or_else(|| quote!(::core::module_path!()));
    let level = args.level.unwrap_or_else(|| quote!(::eventring::tracing::Level::INFO));
    let (attributes, statements) = inner_attributes(body.stream());
    // No name of the program is this one.
    let scope = Ident::new("__eventring_scope", Span::mixed_site());
    let scoped = quote! {
        #attributes
        let #scope = {
            use ::eventring::__private::{RecordedAsDebug as _, RecordedAsIs as _};
            ::eventring::scope!(target: #target, level: #level, #name, #fields)
        };
        #statements
    };
    let mut out: TokenStream = tokens.into_iter().collect();
    // The body is the program's, and with it the function: otherwise lints would leave the function alone.
    let mut scoped = Group::new(Delimiter::Brace, scoped);
    scoped.set_span(body.span());
    scoped.to_tokens(&mut out);
    Ok(out)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn is_joint(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.spacing() == Spacing::Joint)
}

/// Returns the group, if the token is one with this delimiter. What a macro has matched as a block lies in a group
/// without a delimiter.
fn group(token: &TokenTree, delimiter: Delimiter) -> Option<Group> {
    let TokenTree::Group(found) = token else { return None };
    match found.delimiter() {
        Delimiter::None => group(&found.stream().into_iter().next()?, delimiter),
        other => (other == delimiter).then(|| found.clone()),
    }
}

/// Splits the attributes of a body, `#![…]`, from its statements.
fn inner_attributes(body: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let is_attribute = |tokens: &[TokenTree]| is_sign(tokens.first(), '#') && is_sign(tokens.get(1), '!');
    let count = tokens.chunks(3).take_while(|tokens| is_attribute(tokens)).count();
    let (attributes, statements) = tokens.split_at((3 * count).min(tokens.len()));
    (attributes.iter().cloned().collect(), statements.iter().cloned().collect())
}

/// Counts the angle brackets around a place.
#[derive(Default)]
struct Angles {
    depth: u32,
    is_after_dash: bool,
}

impl Angles {
    fn pass(&mut self, token: &TokenTree) {
        if is_sign(Some(token), '<') {
            self.depth += 1;
        } else if is_sign(Some(token), '>') && !self.is_after_dash {
            // It is not that of an arrow.
            self.depth = self.depth.saturating_sub(1);
        }
        self.is_after_dash = is_sign(Some(token), '-');
    }
}

/// Returns the name of a field that was given as `name = …`, `name`, `?name` or `%name`.
fn field_name(field: TokenStream) -> Option<Ident> {
    let mut tokens = field.into_iter().skip_while(|token| is_sign(Some(token), '?') || is_sign(Some(token), '%'));
    let Some(TokenTree::Ident(name)) = tokens.next() else { return None };
    tokens.next().is_none_or(|token| is_sign(Some(&token), '=')).then_some(name)
}

/// Returns the names of the parameters that are plain variables. `self`, patterns and constants are no fields, nor what
/// has attributes: it may not be there.
fn names_of(parameters: TokenStream) -> Vec<Ident> {
    let tokens: Vec<TokenTree> = parameters.into_iter().collect();
    let (mut names, mut is_pattern, mut angles) = (Vec::new(), true, Angles::default());
    let mut has_attributes = false;
    for (at, token) in tokens.iter().enumerate() {
        angles.pass(token);
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let joins = |token| is_sign(token, ':') && is_joint(token);
        let is_of_path = joins(before) || joins(Some(token)) && is_sign(tokens.get(at + 1), ':');
        if is_sign(Some(token), ',') && angles.depth == 0 {
            (is_pattern, has_attributes) = (true, false);
        } else if is_sign(Some(token), '#') && is_pattern {
            has_attributes = true;
        } else if is_sign(Some(token), ':') && is_pattern && !is_of_path {
            is_pattern = false;
            names.extend(match before {
                Some(TokenTree::Ident(name)) if !has_attributes && is_variable(name) => Some(name.clone()),
                _ => None,
            });
        }
    }
    names
}

/// Returns true unless the name is `self`, `_`, or begins as those of constants do.
fn is_variable(name: &Ident) -> bool {
    name != "self" && name != "_" && !name.unraw().to_string().starts_with(char::is_uppercase)
}
