//! The description of a call site. It is the payload of CALL_SITE, and the body of an entry in the table of call
//! sites.

use crate::schema::error::DecodeError;
use crate::schema::fields::field::PayloadField;
use crate::schema::fields::trailing::{expect_end, split_bytes};
use crate::schema::payload::EventPayload;
use std::borrow::Cow;

/// The kind of a call site's records.
#[derive(PayloadField, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum CallSiteKind {
    /// Spans.
    Span = 1,
    /// Log records.
    Event = 2,
    /// Samples of a counter.
    Counter = 3,
    /// Marks in time.
    Marker = 4,
}

/// The level of a call site's spans or events.
#[derive(PayloadField, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum CallSiteLevel {
    /// Counters and markers have no level.
    #[default]
    None = 0,
    /// Something failed.
    Error = 1,
    /// Something looks wrong.
    Warn = 2,
    /// For operators.
    Info = 3,
    /// For developers.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

impl CallSiteLevel {
    /// Returns the name of the level, or `None` for [`CallSiteLevel::None`].
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Error => Some("ERROR"),
            Self::Warn => Some("WARN"),
            Self::Info => Some("INFO"),
            Self::Debug => Some("DEBUG"),
            Self::Trace => Some("TRACE"),
        }
    }
}

/// A call site; name, target, module, file and the names of its fields follow.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[event(name = "CallSite")]
pub struct CallSiteHeader {
    /// The kind of the call site's records.
    pub kind: CallSiteKind,
    /// The level of the call site's records.
    pub level: CallSiteLevel,
    /// Number of fields that the call site declares.
    pub field_count: u16,
    /// Line in the source file, from 1; 0 if it is not known.
    pub line: u32,
    /// Bytes of the name.
    pub name_bytes: u16,
    /// Bytes of the target.
    pub target_bytes: u16,
    /// Bytes of the module path, 0 if it is not known.
    pub module_bytes: u16,
    /// Bytes of the source file's name, 0 if it is not known.
    pub file_bytes: u16,
    /// Bytes of the names of the fields, each of which ends with a line feed.
    pub field_names_bytes: u32,
}

/// A call site, decoded from a payload or from a table. Invalid UTF-8 in its texts is replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallSiteView<'a> {
    /// The kind of the call site's records.
    pub kind: CallSiteKind,
    /// The level of the call site's records.
    pub level: CallSiteLevel,
    /// Name of the span, event, counter or marker, and the format string
    /// ([`name_and_format`](Self::name_and_format)).
    pub name: Cow<'a, str>,
    /// The target. It is the module path, unless the program gives another target.
    pub target: Cow<'a, str>,
    /// Module path, empty if it is not known.
    pub module: Cow<'a, str>,
    /// Source file, empty if it is not known.
    pub file: Cow<'a, str>,
    /// Line in the source file, from 1; 0 if it is not known.
    pub line: u32,
    /// The names of the call site's fields, in the order of their indices. There are 256 at most, because an index is
    /// one byte.
    pub field_names: Vec<Cow<'a, str>>,
}

/// The largest number of field names. A field's index is one byte, so no more fields can have an index.
const FIELD_NAMES_MAX: usize = 1 << 8;

/// The longest text that an entry holds whole, in bytes.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

impl<'a> CallSiteView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Returns an error if the payload does not have the length that its header states, or if its kind or level is
    /// unknown.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "CALL_SITE";
        let (header, rest) = CallSiteHeader::decode(payload)?;
        let (name, rest) = split_bytes(OWNER, "name", rest, header.name_bytes.into())?;
        let (target, rest) = split_bytes(OWNER, "target", rest, header.target_bytes.into())?;
        let (module, rest) = split_bytes(OWNER, "module", rest, header.module_bytes.into())?;
        let (file, rest) = split_bytes(OWNER, "file", rest, header.file_bytes.into())?;
        let (names, rest) = split_bytes(OWNER, "field_names", rest, header.field_names_bytes.into())?;
        expect_end(OWNER, rest)?;
        let names = names.strip_suffix(b"\n").map(|names| names.split(|byte| *byte == b'\n'));
        Ok(Self {
            kind: header.kind,
            level: header.level,
            name: String::from_utf8_lossy(name),
            target: String::from_utf8_lossy(target),
            module: String::from_utf8_lossy(module),
            file: String::from_utf8_lossy(file),
            line: header.line,
            field_names: names.into_iter().flatten().take(FIELD_NAMES_MAX).map(String::from_utf8_lossy).collect(),
        })
    }

    /// Returns the description of a call site with this format string for the texts of its log records. The format
    /// string follows the name, after a zero byte.
    #[must_use]
    pub fn with_format(self, format: &str) -> Self {
        Self { name: format!("{}\0{format}", self.name.replace('\0', " ")).into(), ..self }
    }

    /// Returns the name, and the format string if there is one.
    #[must_use]
    pub fn name_and_format(&self) -> (&str, Option<&str>) {
        match self.name.split_once('\0') {
            Some((name, format)) => (name, Some(format)),
            None => (&self.name, None),
        }
    }

    /// Encodes the call site for a payload or a table entry. Cuts texts of more than 65,535 bytes. Replaces each line
    /// feed in the name of a field by a space.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let texts = [&self.name, &self.target, &self.module, &self.file]
            .map(|text| &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
        let mut names = String::new();
        for name in &self.field_names {
            names.push_str(&name.replace('\n', " "));
            names.push('\n');
        }
        let header = CallSiteHeader {
            kind: self.kind,
            level: self.level,
            field_count: self.field_names.len().min(u16::MAX.into()) as u16,
            line: self.line,
            name_bytes: texts[0].len() as u16,
            target_bytes: texts[1].len() as u16,
            module_bytes: texts[2].len() as u16,
            file_bytes: texts[3].len() as u16,
            field_names_bytes: names.len() as u32,
        };
        let texts = texts.concat();
        header.with_bytes(|fixed| [fixed, &texts, names.as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> CallSiteView<'static> {
        CallSiteView {
            kind: CallSiteKind::Span,
            level: CallSiteLevel::Debug,
            name: "query".into(),
            target: "shop::db".into(),
            module: "".into(),
            file: "src/db.rs".into(),
            line: 17,
            field_names: vec!["rows".into(), "sql".into()],
        }
    }

    #[test]
    fn a_call_site_comes_back_and_every_shortened_one_is_refused() {
        let bytes = view().encode();
        assert_eq!(CallSiteView::decode(&bytes).unwrap(), view());
        let none = CallSiteView { field_names: Vec::new(), ..view() };
        assert_eq!(CallSiteView::decode(&none.encode()).unwrap(), none);
        for end in 0..bytes.len() {
            assert!(CallSiteView::decode(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn names_that_no_index_can_mean_are_left_out() {
        let many = CallSiteView { field_names: vec!["".into(); 1000], ..view() };
        assert_eq!(CallSiteView::decode(&many.encode()).unwrap().field_names.len(), 256);
    }

    #[test]
    fn texts_that_do_not_fit_are_cut_and_a_line_feed_cannot_shift_the_names() {
        let odd =
            CallSiteView { name: "é".repeat(40_000).into(), field_names: vec!["a\nb".into(), "c".into()], ..view() };
        let bytes = odd.encode();
        let back = CallSiteView::decode(&bytes).unwrap();
        assert_eq!(back.name.len(), 65_534);
        assert_eq!(back.field_names, ["a b", "c"]);
    }
}
