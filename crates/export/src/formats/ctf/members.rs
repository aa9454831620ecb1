//! The fields of events. The number and types of some events' fields are known only when the event is written.
//!
//! Events whose fields have the same names and types have the same class. The metadata of the class is made from these
//! names and types.

use super::identifiers::Identifiers;
use super::metadata::put_text;
use crate::args::ArgValue;
use eventring::schema::perf::CallSiteLevel;

/// The byte that ends a name in a key. No text in UTF-8 has it.
const NAME_END: u8 = 0xff;

/// The types of members, as bytes of a key.
mod tag {
    pub(super) const UINT32: u8 = b'w';
    pub(super) const UINT64: u8 = b'u';
    pub(super) const INT64: u8 = b'i';
    pub(super) const FLOAT: u8 = b'f';
    pub(super) const BOOL: u8 = b'b';
    pub(super) const TEXT: u8 = b't';
    pub(super) const LEVEL: u8 = b'l';
    pub(super) const BEGIN: u8 = b'{';
    pub(super) const END: u8 = b'}';
}

/// The members of an event.
#[derive(Default)]
pub(super) struct Members {
    /// The event's name, and the types and names of its members.
    pub(super) key: Vec<u8>,
    /// The values of the members, as they stand in a packet.
    pub(super) values: Vec<u8>,
}

impl Members {
    pub(super) fn begin_event(&mut self, name: &str) {
        self.key.clear();
        self.values.clear();
        self.key.extend(name.as_bytes());
        self.key.push(NAME_END);
    }

    pub(super) fn uint32(&mut self, name: &str, value: u32) {
        self.declare(tag::UINT32, name);
        self.values.extend(value.to_le_bytes());
    }

    pub(super) fn uint64(&mut self, name: &str, value: u64) {
        self.declare(tag::UINT64, name);
        self.values.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.declare(tag::TEXT, name);
        put_text(&mut self.values, value);
    }

    pub(super) fn level(&mut self, name: &str, value: CallSiteLevel) {
        self.declare(tag::LEVEL, name);
        self.values.push(value as u8);
    }

    /// Adds the value of an argument. A number that is not known becomes the text `unknown`.
    pub(super) fn argument(&mut self, name: &str, value: &ArgValue) {
        match value {
            ArgValue::Int(value) => {
                self.declare(tag::INT64, name);
                self.values.extend(value.to_le_bytes());
            }
            ArgValue::Uint(value) => self.uint64(name, *value),
            ArgValue::Float(value) => {
                self.declare(tag::FLOAT, name);
                self.values.extend(value.to_le_bytes());
            }
            ArgValue::Bool(value) => {
                self.declare(tag::BOOL, name);
                self.values.push(u8::from(*value));
            }
            ArgValue::Text(text) => self.text(name, text),
            ArgValue::Unknown => self.text(name, "unknown"),
        }
    }

    /// Begins a struct. The members up to its end are in it.
    pub(super) fn begin(&mut self, name: &str) {
        self.declare(tag::BEGIN, name);
    }

    pub(super) fn end(&mut self) {
        self.key.push(tag::END);
    }

    fn declare(&mut self, tag: u8, name: &str) {
        self.key.push(tag);
        self.key.extend(name.as_bytes());
        self.key.push(NAME_END);
    }
}

/// Returns the declarations of the members that a key describes.
pub(super) fn declarations(key: &[u8]) -> String {
    let mut text = String::new();
    let mut scopes = vec![Identifiers::default()];
    let mut names = Vec::new();
    let name_bytes = key.iter().position(|byte| *byte == NAME_END).unwrap_or(key.len());
    let mut rest = key.get(name_bytes + 1..).unwrap_or_default();
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        if *tag == tag::END {
            scopes.pop();
            let (Some(name), Some(scope)) = (names.pop(), scopes.last_mut()) else { break };
            text.push_str(&format!("}} {}; ", scope.add(name)));
            continue;
        }
        let Some(end) = rest.iter().position(|byte| *byte == NAME_END) else { break };
        let name = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        rest = &rest[end + 1..];
        if *tag == tag::BEGIN {
            names.push(name);
            scopes.push(Identifiers::default());
            text.push_str("struct { ");
            continue;
        }
        let Some(scope) = scopes.last_mut() else { break };
        let ty = match *tag {
            tag::UINT32 => "uint32_t",
            tag::UINT64 => "uint64_t",
            tag::INT64 => "int64_t",
            tag::FLOAT => "float64_t",
            tag::BOOL => "uint8_t",
            tag::LEVEL => "level_t",
            _ => "string",
        };
        text.push_str(&format!("{ty} {}; ", scope.add(name)));
    }
    text
}
