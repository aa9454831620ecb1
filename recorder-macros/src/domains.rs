//! The attributes `#[event(domains)]` of an enum and `#[event(domain = "…")]` of its variants.

use syn::{LitStr, Result};

use crate::attributes::word;
use crate::event::{Event, RECORD_ERROR_CODE};

/// The largest number of domains of a schema, and the largest number that a domain can have.
const MAX: usize = 64;

/// Names that have a meaning of their own in the settings of a recorder.
const RESERVED: [&str; 2] = ["all", "none"];

/// A domain of a schema.
#[derive(Clone)]
pub struct Domain {
    /// The number, from 1 to 64.
    pub number: u8,
    pub name: String,
}

/// Returns the domain of each event, or `None` for an event that belongs to no domain. The events must be sorted by
/// code. `is_in_code` says that the high byte of an event's code is the number of its domain.
pub fn domains_of(events: &[Event<'_>], is_in_code: bool) -> Result<Vec<Option<Domain>>> {
    if let Some(event) = events.iter().find(|event| event.code == RECORD_ERROR_CODE && event.domain.is_some()) {
        return Err(syn::Error::new(event.ident.span(), "RecordError belongs to no domain: leave `domain` out"));
    }
    if !is_in_code && events.iter().all(|event| event.domain.is_none()) {
        return Ok(events.iter().map(|_| None).collect());
    }
    let mut known: Vec<Domain> = Vec::new();
    for event in events {
        let number_in_code = if is_in_code { number_in_code(event)? } else { None };
        let Some(text) = &event.domain else { continue };
        let name = domain_name(text)?;
        let number = match (number_in_code, known.iter().find(|domain| domain.name == name)) {
            (Some(number), _) => number,
            (None, Some(domain)) => domain.number,
            (None, None) if known.len() < MAX => known.len() as u8 + 1,
            (None, None) => return Err(syn::Error::new(text.span(), "a schema has at most 64 domains")),
        };
        match known.iter().find(|domain| domain.number == number || domain.name == name) {
            Some(domain) if domain.number == number && domain.name == name => {}
            Some(domain) => {
                let Domain { number: other_number, name: other_name } = domain;
                let problem = format!(
                    "the high byte of this event's code is {number}, so its domain would be {number} `{name}`, but another event is in {other_number} `{other_name}`"
                );
                return Err(syn::Error::new(text.span(), problem));
            }
            None => known.push(Domain { number, name }),
        }
    }
    events.iter().map(|event| domain_of(event, is_in_code, &known)).collect()
}

fn domain_of(event: &Event<'_>, is_in_code: bool, known: &[Domain]) -> Result<Option<Domain>> {
    if event.code == RECORD_ERROR_CODE {
        return Ok(None);
    }
    let domain = known.iter().find(|domain| match is_in_code {
        true => u16::from(domain.number) == event.code >> 8,
        false => event.domain.as_ref().is_some_and(|text| text.value() == domain.name),
    });
    let problem = match is_in_code {
        true => "no event with this high byte names the domain: #[event(domain = \"…\")]",
        false => "the other events have domains: give this one a domain, too: #[event(domain = \"…\")]",
    };
    domain.cloned().map(Some).ok_or_else(|| syn::Error::new(event.ident.span(), problem))
}

/// Returns the number of the event's domain, which is the high byte of the event's code.
fn number_in_code(event: &Event<'_>) -> Result<Option<u8>> {
    let [number, _] = event.code.to_be_bytes();
    match number {
        _ if event.code == RECORD_ERROR_CODE => Ok(None),
        1..=64 => Ok(Some(number)),
        _ => Err(syn::Error::new(
            event.ident.span(),
            "with #[event(domains)], the high byte of an event's code is its domain, from 1 to 64: `= 0x0100` is the first event of domain 1",
        )),
    }
}

fn domain_name(text: &LitStr) -> Result<String> {
    let name = word(text)?;
    match RESERVED.contains(&name.as_str()) {
        true => Err(syn::Error::new(text.span(), "the settings of a recorder give `all` and `none` other meanings")),
        false => Ok(name),
    }
}
