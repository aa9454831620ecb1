//! JSON text, written into a buffer member by member.

use crate::args::{Args, CUT, cut_value};
use eventring::schema::perf::{RawField, RawFields, ValueType};
use eventring::tracing::{CallSite, Fields, RawRecord, Thread, is_log_record};
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::{self, Write as _};

/// Text of JSON objects.
#[derive(Default)]
pub(crate) struct JsonText(pub(crate) Vec<u8>);

/// The number of fields up to which their names are compared with each other.
const FIELDS_FEW: usize = 16;

impl JsonText {
    pub(crate) fn begin(&mut self) {
        self.0.push(b'{');
    }

    pub(crate) fn end(&mut self) {
        self.0.push(b'}');
    }

    /// Adds a member with a text that needs no escaping, or with null.
    pub(crate) fn plain_member(&mut self, name: &str, text: Option<impl fmt::Display>) -> io::Result<()> {
        self.key(name);
        match text {
            Some(text) => write!(self.0, "\"{text}\""),
            None => write!(self.0, "null"),
        }
    }

    /// Begins a member. `name` needs no escaping.
    pub(crate) fn key(&mut self, name: &str) {
        self.comma();
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    /// Begins a member with any name.
    pub(crate) fn any_key(&mut self, name: &str) -> io::Result<()> {
        self.comma();
        self.value(name)?;
        self.0.push(b':');
        Ok(())
    }

    /// Writes the value of a member, or an element of an array.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.0, value)?)
    }

    /// Writes the text of a value as a string.
    pub(crate) fn display(&mut self, value: &impl fmt::Display) -> io::Result<()> {
        Ok(serde_json::Serializer::new(&mut self.0).collect_str(value)?)
    }

    pub(crate) fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.key(name);
        self.value(value)
    }

    /// Adds a member that is an object with one member.
    pub(crate) fn single(&mut self, name: &str, inner: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.key(name);
        self.begin();
        self.member(inner, value)?;
        self.end();
        Ok(())
    }

    /// Writes a text that is JSON already. If it holds members, it begins with their first name.
    pub(crate) fn raw(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    /// Writes members that are JSON text already.
    pub(crate) fn raw_members(&mut self, text: &[u8]) {
        self.comma();
        self.raw(text);
    }

    /// Writes a comma, unless the object or array has only begun.
    pub(crate) fn comma(&mut self) {
        if !matches!(self.0.last(), Some(b'{' | b'[') | None) {
            self.0.push(b',');
        }
    }

    /// Writes the values of the fields under `fields`, and the problems of incomplete values under `cut`. `eventring
    /// watch` uses the same form.
    pub(crate) fn fields(&mut self, fields: &Fields) -> io::Result<()> {
        self.key("fields");
        self.begin();
        for field in &fields.values {
            self.any_key(&field.name)?;
            self.value(&field.value)?;
        }
        self.end();
        let mut cuts = fields.values.iter().filter_map(|field| Some((&field.name, field.cut?))).peekable();
        if cuts.peek().is_some() {
            self.key(CUT);
            self.begin();
            for (name, cut) in cuts {
                self.any_key(name)?;
                self.value(&cut_value(cut))?;
            }
            self.end();
        }
        let mut problems = Args::default();
        problems.push_problems(fields.missing, fields.problem);
        for (name, value) in problems.values() {
            self.member(&name, &value)?;
        }
        Ok(())
    }

    /// Writes arguments as members. Returns false, and writes nothing, if a value is incomplete, or if a name may be
    /// there already.
    pub(crate) fn try_args(&mut self, args: &Args) -> io::Result<bool> {
        let start = self.0.len();
        if args.0.len() > FIELDS_FEW {
            return Ok(false);
        }
        for (index, arg) in args.0.iter().enumerate() {
            let at = self.0.len();
            self.any_key(&arg.name.in_chrome())?;
            // In JSON text, the quotation marks of a name stand only around the name of a member: those inside a string
            // have a backslash before them.
            let is_there = start > 0 && contains(&self.0[..start], &self.0[at + 1..]);
            if arg.cut.is_some() || is_there || args.0[..index].iter().any(|earlier| *earlier.name == *arg.name) {
                self.0.truncate(start);
                return Ok(false);
            }
            self.value(&arg.value)?;
        }
        Ok(true)
    }

    /// Writes the fields of a record like [`Self::fields`], directly from its payload. Returns false, and writes
    /// nothing, if a field is missing, incomplete or there twice.
    pub(crate) fn try_raw_fields(&mut self, record: &RawRecord<'_>, site: &SiteText) -> io::Result<bool> {
        let Some(payload) = record.payload.valid().filter(|_| record.ext.missing_fields == 0) else { return Ok(false) };
        let start = self.0.len();
        self.key("fields");
        self.begin();
        let (mut count, mut next_index) = (0, 0);
        for field in RawFields::new(payload) {
            let field = field.ok().filter(|field| field.cut.is_none() && usize::from(field.index) >= next_index);
            let Some((field, key)) = field.and_then(|field| Some((field, site.keys.get(usize::from(field.index))?)))
            else {
                self.0.truncate(start);
                return Ok(false);
            };
            self.raw_members(key);
            if !self.try_raw_value(&field, site)? {
                self.0.truncate(start);
                return Ok(false);
            }
            (count, next_index) = (count + 1, usize::from(field.index) + 1);
        }
        if count != record.ext.field_count {
            self.0.truncate(start);
            return Ok(false);
        }
        self.end();
        Ok(true)
    }

    /// Writes the value of a field. Returns false, and writes nothing, if it is not whole.
    fn try_raw_value(&mut self, field: &RawField<'_>, site: &SiteText) -> io::Result<bool> {
        match ValueType::from_code(field.type_code) {
            Some(ValueType::Str | ValueType::Error | ValueType::Debug) => match std::str::from_utf8(field.value) {
                Ok(text) => self.value(text),
                Err(_) => self.value(&field.to_value()),
            },
            Some(ValueType::Text) => match site.call_site.value_and_cut(field) {
                (value, None) => self.value(&value),
                (_, Some(_)) => return Ok(false),
            },
            _ => self.value(&field.to_value()),
        }?;
        Ok(true)
    }

    pub(crate) fn thread(&mut self, thread: &Thread) -> io::Result<()> {
        self.begin();
        self.member("id", &thread.id)?;
        self.member("tid", &thread.os_thread_id)?;
        self.member("name", &thread.name)?;
        self.end();
        Ok(())
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The JSON text that follows from the description of a call site.
pub(crate) struct SiteText {
    /// The members `name`, `target`, `level`, `file` and `line`.
    pub(crate) members: Vec<u8>,
    /// The name of each field, with the colon. There are none if the records of the call site are normalized.
    keys: Vec<Vec<u8>>,
    /// The call site, which makes the texts of log records.
    call_site: CallSite,
}

impl SiteText {
    pub(crate) fn new(call_site: &CallSite) -> io::Result<Self> {
        let mut text = JsonText::default();
        text.member("name", &call_site.name)?;
        text.member("target", &call_site.target)?;
        text.member("level", call_site.level.name().unwrap_or_default())?;
        text.member("file", &call_site.file)?;
        text.member("line", &call_site.line)?;
        let members = std::mem::take(&mut text.0);
        let names = &call_site.field_names;
        let mut keys = Vec::new();
        if !is_log_record(call_site) {
            for name in names {
                text.any_key(name)?;
                keys.push(std::mem::take(&mut text.0));
            }
        }
        Ok(Self { members, keys, call_site: call_site.clone() })
    }
}
