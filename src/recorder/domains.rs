//! The domains of a recorder's events, and the settings that select the recorded domains.

use super::config::ContentDescription;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Name of the environment variable that says which domains are recorded (`EVENTRING_DOMAINS=orderbook,!prices`). The
/// text has the form that [`RecorderBuilder::domains`](super::RecorderBuilder::domains) describes. An empty text
/// counts as not set.
///
/// The variable is for all recorders of the process. An entry may name the schema before the domain
/// (`shop.orderbook`), and is then only for recorders of this schema. A recorder whose schema has no domains ignores
/// entries with names that it does not know.
///
/// The same functions that obey [`KEEP_VARIABLE`](super::KEEP_VARIABLE) obey this variable, except those of the perf
/// recorder.
pub const DOMAINS_VARIABLE: &str = "EVENTRING_DOMAINS";

/// The names of a recorder's domains, each with its bits in the word that says which domains are recorded.
#[derive(Debug)]
pub(super) struct DomainNames {
    content_name: String,
    domains: Vec<(u64, Cow<'static, str>)>,
}

impl DomainNames {
    /// Returns the domains of the description. If it has none, returns one domain that has all bits. Its name is the
    /// name of the content type, in small letters.
    pub(super) fn new(description: &ContentDescription) -> Self {
        let content_name = description.content_name().to_owned();
        let bit = |&(number, name): &(u8, &'static str)| {
            let bit = 1u64.checked_shl(u32::from(number).checked_sub(1)?)?;
            Some((bit, Cow::Borrowed(name)))
        };
        let mut domains: Vec<_> = description.domains.iter().filter_map(bit).collect();
        if domains.is_empty() {
            domains.push((u64::MAX, content_name.to_ascii_lowercase().into()));
        }
        Self { content_name, domains }
    }

    /// Returns the domains: their bits and names, by ascending number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.domains.iter().map(|(bits, name)| (*bits, &**name))
    }

    /// Returns the bits of all domains.
    pub(super) fn all(&self) -> u64 {
        self.iter().fold(0, |all, (bits, _)| all | bits)
    }

    /// Returns the bits of the domain of that name.
    pub(super) fn bits_of(&self, name: &str) -> Result<u64, UnknownDomain> {
        let found = self.iter().find(|(_, known)| *known == name);
        found.map(|(bits, _)| bits).ok_or_else(|| self.unknown(name))
    }

    #[cold]
    fn unknown(&self, name: &str) -> UnknownDomain {
        let known: Vec<&str> = self.iter().map(|(_, name)| name).collect();
        UnknownDomain { name: name.to_owned(), content_name: self.content_name.clone(), known: known.join(", ") }
    }
}

/// Error for a name that no domain of the recorder has.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownDomain {
    name: String,
    content_name: String,
    known: String,
}

impl fmt::Display for UnknownDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, content_name, known } = self;
        write!(f, "the events {content_name} have no domain {name:?}, expected one of: {known}")
    }
}

debug_as_displayed!(UnknownDomain);

impl std::error::Error for UnknownDomain {}

/// Text that says which domains a new recorder records.
#[derive(Clone, Debug)]
pub(super) struct DomainSettings {
    text: OsString,
    /// True if the text is for all recorders of the process, and not for one only.
    is_of_process: bool,
}

/// The domains that settings switch on, and those that they forbid, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DomainChoice {
    pub(super) configured: u64,
    pub(super) forbidden: u64,
}

impl DomainSettings {
    pub(super) fn new(text: &OsStr) -> Self {
        Self { text: text.to_owned(), is_of_process: false }
    }

    /// Returns the settings that the environment variable [`DOMAINS_VARIABLE`] has, or `None` if it has none.
    pub(super) fn from_env() -> Option<Self> {
        let text = std::env::var_os(DOMAINS_VARIABLE).filter(|text| !text.is_empty())?;
        Some(Self { text, is_of_process: true })
    }

    /// Returns the choice for a recorder with these domains.
    pub(super) fn choose(&self, names: &DomainNames) -> Result<DomainChoice, String> {
        let refused = |problem: &dyn fmt::Display| format!("cannot use the domains {:?}: {problem}", self.text);
        let text = self.text.to_str().ok_or_else(|| refused(&"not UTF-8"))?;
        let (mut configured, mut forbidden) = (None, 0);
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (is_forbidden, name) = entry.strip_prefix('!').map_or((false, entry), |name| (true, name));
            let Some(bits) = self.bits_of(name, names).map_err(|unknown| refused(&unknown))? else { continue };
            match (is_forbidden, bits) {
                (true, bits) => forbidden |= bits,
                // `none` takes back what the entries before it have switched on.
                (false, 0) => configured = Some(0),
                (false, bits) => configured = Some(configured.unwrap_or(0) | bits),
            }
        }
        Ok(DomainChoice { configured: configured.unwrap_or(names.all()), forbidden })
    }

    /// Returns the bits that an entry names, without its `!`. Returns `None` if the entry is for other recorders.
    fn bits_of(&self, name: &str, names: &DomainNames) -> Result<Option<u64>, UnknownDomain> {
        let own = match name.split_once('.') {
            Some((schema, own)) if schema.eq_ignore_ascii_case(&names.content_name) => own,
            Some(_) if self.is_of_process => return Ok(None),
            _ => name,
        };
        match own {
            "all" => Ok(Some(names.all())),
            "none" => Ok(Some(0)),
            own => match names.bits_of(own) {
                // The schema of this recorder has no domains, so the name may be a domain of another recorder.
                Err(_) if self.is_of_process && names.all() == u64::MAX && names.domains.len() == 1 => Ok(None),
                found => found.map(Some),
            },
        }
    }
}
