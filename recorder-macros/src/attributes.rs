//! Parsing the attributes `#[event(...)]` and `#[repr(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, LitInt, LitStr, Path, Result, Token, Type, parenthesized, token};

use crate::evolution::{self, Evolution};
use crate::names::{self, checked_name};

/// The key that allows an enum to have a content type below 256. Only the schemas of `eventring` itself have this key,
/// so error messages do not list it among the allowed keys.
pub const OWN_SCHEMA: &str = "own_schema";

/// The keys that the `#[event(...)]` attributes of one item, field or variant set. Which keys are allowed differs
/// between items, fields and variants.
#[derive(Default)]
pub struct EventAttributes {
    pub content_type: Option<LitInt>,
    pub name: Option<LitStr>,
    pub version: Option<LitInt>,
    pub schema_hash: Option<LitStr>,
    pub recorder: Option<Path>,
    pub krate: Option<Path>,
    pub payload: Option<Type>,
    pub view: Option<Ident>,
    pub trailing: Option<Vec<Trailing>>,
    /// The extension words that an enum of events names.
    pub ext: Option<Vec<ExtWord>>,
    /// The names of the extension words that the events of this variant carry.
    pub carried: Option<Vec<Ident>>,
    pub payloads: Option<Payloads>,
    /// The name of the domain to which the events of this variant belong.
    pub domain: Option<LitStr>,
    /// True if the high byte of an event's code is the number of its domain.
    pub domains: bool,
    /// Earlier names, and the value for rings without the field.
    pub evolution: Evolution,
    pub redact: bool,
    pub no_span: bool,
    pub no_views: bool,
    pub own_schema: bool,
}

/// The name of an extension word. It is written `INDEX = NAME` or `INDEX = NAME: KIND`.
pub struct ExtWord {
    pub index: LitInt,
    pub name: Ident,
    pub kind: Option<Ident>,
}

/// A trailing array of a payload, written `NAME: TYPE * COUNT`. Without `* COUNT`, the array takes the rest of the
/// payload. `#[event(alias = "…", default)]` may stand before the name.
pub struct Trailing {
    pub evolution: Evolution,
    pub name: Ident,
    pub element: Type,
    pub count: Option<CountPath>,
}

/// The path to the field that holds an array's count, for example `topic_count` or `txn_header.data_length`.
pub struct CountPath {
    pub text: String,
    pub span: Span,
}

impl Parse for ExtWord {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let index = input.parse()?;
        input.parse::<Token![=]>()?;
        let name = input.parse()?;
        let kind = if input.parse::<Option<Token![:]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { index, name, kind })
    }
}

impl Parse for Trailing {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let evolution = evolution_of_array(&input.call(Attribute::parse_outer)?)?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let element = input.parse()?;
        let count = if input.parse::<Option<Token![*]>>()?.is_some() {
            let segments = Punctuated::<Ident, Token![.]>::parse_separated_nonempty(input)?;
            let span = segments[0].span();
            let names: Vec<String> = segments.iter().map(crate::names::plain).collect::<Result<_>>()?;
            Some(CountPath { text: names.join("."), span })
        } else {
            None
        };
        Ok(Self { evolution, name, element, count })
    }
}

impl EventAttributes {
    /// Reads every `#[event(...)]` among `attributes`. Returns an error for a key that is not in `allowed`: such a key
    /// is not permitted at this place. If `allowed` is empty, even an attribute without keys is an error.
    pub fn read(attributes: &[Attribute], allowed: &[&str]) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| read.one(&meta, allowed))?;
            if allowed.is_empty() {
                return Err(syn::Error::new_spanned(attribute, NOTHING_ALLOWED));
            }
        }
        Ok(read)
    }

    fn one(&mut self, meta: &ParseNestedMeta<'_>, allowed: &[&str]) -> Result<()> {
        let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        if !allowed.contains(&key.as_str()) {
            return Err(meta.error(not_allowed(&key, allowed)));
        }
        match key.as_str() {
            "content_type" => once(meta, &mut self.content_type),
            "name" => once(meta, &mut self.name),
            "version" => once(meta, &mut self.version),
            "schema_hash" => once(meta, &mut self.schema_hash),
            "recorder" => once(meta, &mut self.recorder),
            "crate" => once(meta, &mut self.krate),
            "payload" => once(meta, &mut self.payload),
            "view" => once(meta, &mut self.view),
            "trailing" => list(meta, &mut self.trailing),
            "payloads" => {
                let content;
                parenthesized!(content in meta.input);
                set(meta, &mut self.payloads, content.parse()?)
            }
            "ext" => list(meta, &mut self.ext),
            "carries" => list(meta, &mut self.carried),
            "domain" => once(meta, &mut self.domain),
            "domains" => switch(meta, &mut self.domains),
            "alias" => {
                self.evolution.aliases.push(meta.value()?.parse()?);
                Ok(())
            }
            "default" => {
                let value = meta.input.peek(Token![=]).then(|| evolution::value(meta.value()?)).transpose()?;
                set(meta, &mut self.evolution.default, value)
            }
            "redact" => switch(meta, &mut self.redact),
            "no_span" => switch(meta, &mut self.no_span),
            "no_views" => switch(meta, &mut self.no_views),
            OWN_SCHEMA => switch(meta, &mut self.own_schema),
            _ => Err(meta.error("unknown key")),
        }
    }

    /// Returns the path of the crate `eventring`.
    pub fn krate(&self) -> TokenStream {
        match &self.krate {
            Some(path) => quote!(#path),
            None => quote!(::eventring),
        }
    }
}

const NOTHING_ALLOWED: &str = "#[event(…)] has no effect here: leave it out";

/// Returns the message for a key that is not in `allowed`.
fn not_allowed(key: &str, allowed: &[&str]) -> String {
    // A user who writes `redact` in the wrong place must learn the right place. Otherwise the secret may be recorded.
    if key == "redact" {
        return "`redact` has no effect here: in structs with #[derive(EventPayload)], put it on each field that has this type or holds the secret"
            .to_owned();
    }
    let listed: Vec<&str> = allowed.iter().copied().filter(|key| *key != OWN_SCHEMA).collect();
    match listed.is_empty() {
        true => NOTHING_ALLOWED.to_owned(),
        false => format!("unknown key, expected one of: {}", listed.join(", ")),
    }
}

fn once<T: Parse>(meta: &ParseNestedMeta<'_>, slot: &mut Option<T>) -> Result<()> {
    let value = meta.value()?.parse()?;
    set(meta, slot, value)
}

/// Reads `(ITEM, …)`.
fn list<T: Parse>(meta: &ParseNestedMeta<'_>, slot: &mut Option<Vec<T>>) -> Result<()> {
    let content;
    parenthesized!(content in meta.input);
    let items = content.parse_terminated(T::parse, Token![,])?;
    set(meta, slot, items.into_iter().collect())
}

fn set<T>(meta: &ParseNestedMeta<'_>, slot: &mut Option<T>, value: T) -> Result<()> {
    if slot.replace(value).is_some() { Err(meta.error("given twice")) } else { Ok(()) }
}

/// Reads a key that has no value, and sets `on` to true. Returns an error if the key has a value or is given twice.
fn switch(meta: &ParseNestedMeta<'_>, on: &mut bool) -> Result<()> {
    if meta.input.peek(Token![=]) || meta.input.peek(token::Paren) {
        let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        return Err(meta.input.error(format!("`{key}` takes no value: write #[event({key})]")));
    }
    if std::mem::replace(on, true) { Err(meta.error("given twice")) } else { Ok(()) }
}

/// Checks the name of a schema, an event or a domain, as [`checked_name`] does.
pub fn word(text: &LitStr) -> Result<String> {
    checked_name(text, char::is_ascii_alphabetic, "a name of ASCII letters, digits and `_` that begins with a letter")
}

/// Returns the name of a schema or event: the name from `#[event(name = "…")]`, or else the identifier in capitals.
pub fn screaming_name(name: Option<&LitStr>, ident: &Ident) -> Result<String> {
    match name {
        Some(text) => word(text),
        None => names::screaming(ident),
    }
}

/// Returns the name of a type in schema text: the name from `#[event(name = "…")]`, or else the identifier.
pub fn type_name(name: Option<&LitStr>, ident: &Ident) -> Result<String> {
    match name {
        Some(text) => checked_name(
            text,
            char::is_ascii_uppercase,
            "a name of ASCII letters, digits and `_` that begins with a capital letter",
        ),
        None => names::type_name(ident),
    }
}

/// Refuses `#[repr(packed)]`, and points the error to the attribute. The generated code borrows fields to encode them,
/// and packed fields cannot be borrowed.
pub fn refuse_packed(attributes: &[Attribute]) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        for repr in attribute.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated)? {
            if repr.path().is_ident("packed") {
                return Err(syn::Error::new_spanned(
                    repr,
                    "a payload is not packed: in the ring its fields stand in order, each at a multiple of its alignment, however \
                     the struct lies in memory; leave `packed` out, and order the fields by size if you want no padding",
                ));
            }
        }
    }
    Ok(())
}

/// Returns the integer type of `#[repr(...)]`.
pub fn repr_integer(attributes: &[Attribute]) -> Result<Option<Ident>> {
    const INTEGERS: [&str; 8] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
    let mut integer = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        for repr in attribute.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated)? {
            if let Some(ident) = repr.path().get_ident().filter(|ident| INTEGERS.iter().any(|integer| ident == integer))
            {
                integer = Some(ident.clone());
            }
        }
    }
    Ok(integer)
}

/// The attribute `payloads`: the name of the enum, and its derives.
pub struct Payloads {
    pub name: Ident,
    pub derives: Vec<Path>,
}

impl Parse for Payloads {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let derives = if input.parse::<Option<Token![:]>>()?.is_some() {
            Punctuated::<Path, Token![,]>::parse_terminated(input)?.into_iter().collect()
        } else {
            Vec::new()
        };
        Ok(Self { name, derives })
    }
}

/// Reads the attributes before the name of a trailing array.
fn evolution_of_array(attributes: &[Attribute]) -> Result<Evolution> {
    if let Some(other) = attributes.iter().find(|attribute| !attribute.path().is_ident("event")) {
        return Err(syn::Error::new_spanned(other, "only #[event(alias = \"…\", default)] has an effect here"));
    }
    let evolution = EventAttributes::read(attributes, &["alias", "default"])?.evolution;
    match &evolution.default {
        Some(Some(value)) => {
            Err(syn::Error::new_spanned(value, "an array that a ring lacks is empty: write `default` alone"))
        }
        _ => Ok(evolution),
    }
}
