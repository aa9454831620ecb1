//! Parsing schema text. The text comes from a ring file, so nothing in it is trusted.

use std::collections::{HashMap, HashSet};

use super::schema::{EXT_WORD, FIRST_LINE, schema_text_hash};
use crate::layout::record_error::EVENT_TYPE as RECORD_ERROR_CODE;
use crate::layout::record_error::ErrorType;
use crate::schema::description::describe::Scalar;
use crate::schema::description::domain::{DOMAINS_MAX, DomainModel};
use crate::schema::description::ext_words::{ExtWord, ExtWordKind, ExtWords};
use crate::schema::dynamic::model::{
    CountModel, EnumModel, EventModel, FieldModel, MAX_DEPTH, MAX_FIELDS, MAX_NAME_BYTES, MAX_STRUCT_BYTES,
    MAX_TEXT_BYTES, SchemaModel, SchemaTextError, SchemaTextErrorKind as Kind, StructModel, TrailingModel, TypeModel,
};
use crate::schema::values::hex::read_hex;

impl SchemaModel {
    /// Reads schema text.
    ///
    /// Needs time and memory in proportion to the text's length. Checks everything that the decoder relies on. A type
    /// must be defined before it is used, so no type can contain itself.
    ///
    /// # Errors
    /// Returns an error if the text is not schema text, contradicts itself, or exceeds a limit. The error names the
    /// line.
    pub fn parse(text: &str) -> Result<Self, SchemaTextError> {
        if text.len() > MAX_TEXT_BYTES {
            let problem = format!("{} bytes, expected at most {MAX_TEXT_BYTES}", text.len());
            return Err(SchemaTextError { kind: Kind::TooLarge, line: 0, problem });
        }
        let mut parser = Parser::new(text);
        let mut number = 0;
        for line in text.split_terminator('\n') {
            number += 1;
            parser.line(line).map_err(|(kind, problem)| SchemaTextError { kind, line: number, problem })?;
        }
        parser.finish().map_err(|(kind, problem)| SchemaTextError { kind, line: number, problem })
    }
}

type Problem = (Kind, String);
type Parsed<T> = Result<T, Problem>;

fn syntax<T>(problem: impl Into<String>) -> Parsed<T> {
    Err((Kind::Syntax, problem.into()))
}

fn inconsistent<T>(problem: impl Into<String>) -> Parsed<T> {
    Err((Kind::Inconsistent, problem.into()))
}

fn too_large<T>(problem: impl Into<String>) -> Parsed<T> {
    Err((Kind::TooLarge, problem.into()))
}

/// The definition to which the next lines belong.
enum Open {
    Nothing,
    Content,
    Enum { name: String },
    Struct { name: String, field_names: HashSet<String> },
    Event { array_names: HashSet<String> },
}

struct Parser {
    model: SchemaModel,
    types: HashMap<String, TypeModel>,
    event_names: HashSet<String>,
    has_first_line: bool,
    has_content: bool,
    open: Open,
}

impl Parser {
    fn new(text: &str) -> Self {
        let model = SchemaModel {
            content_type: 0,
            name: String::new(),
            version: 0,
            schema_hash: schema_text_hash(text),
            states_hash: false,
            ext_words: ExtWords::NONE,
            domains: Vec::new(),
            structs: Vec::new(),
            enums: Vec::new(),
            events: Vec::new(),
        };
        let types =
            Scalar::ALL.into_iter().map(|scalar| (scalar.name().to_owned(), TypeModel::Scalar(scalar))).collect();
        Self {
            model,
            types,
            event_names: HashSet::new(),
            has_first_line: false,
            has_content: false,
            open: Open::Nothing,
        }
    }

    fn line(&mut self, line: &str) -> Parsed<()> {
        if !self.has_first_line {
            if line != FIRST_LINE {
                return Err((Kind::NotSchemaText, format!("expected `{FIRST_LINE}`")));
            }
            self.has_first_line = true;
            return Ok(());
        }
        if let Some(words) = line.strip_prefix(EXT_WORD) {
            self.ext_word(words);
            return Ok(());
        }
        if line.starts_with('#') {
            return Ok(());
        }
        let words: Vec<&str> = line.split(' ').collect();
        if !self.has_content && words[0] != "content" {
            return syntax("expected a `content` line");
        }
        match *words {
            ["content", code, name, version] => self.content(code, name, version),
            ["hash", hex] => self.published_hash(hex),
            ["enum", name, repr] => self.begin_enum(name, repr),
            ["value", value, name] => self.value(value, name),
            ["struct", name, bytes] => self.begin_struct(name, bytes),
            ["field", name, ty, offset, bytes] => self.field(name, ty, offset, bytes, false),
            ["field", name, ty, offset, bytes, "redacted"] => self.field(name, ty, offset, bytes, true),
            ["event", code, name] => self.event(code, name, None),
            ["event", code, name, payload] => self.event(code, name, Some(payload)),
            ["domain", number, name] => self.domain(number, name),
            ["trailing", name, element, count] => self.trailing(name, element, count),
            _ => syntax("not a line of this version of schema text"),
        }
    }

    fn content(&mut self, code: &str, content_name: &str, version: &str) -> Parsed<()> {
        if self.has_content {
            return inconsistent("a second `content` line");
        }
        self.model.content_type = number(code)?;
        self.model.name = name(content_name)?;
        self.model.version = number(version)?;
        self.has_content = true;
        self.open = Open::Content;
        Ok(())
    }

    /// Reads the name of an extension word, such as `1 order` or `0 block seqno`. Ignores text of another form,
    /// because a later version may write other comments here.
    fn ext_word(&mut self, words: &str) {
        let kinds = [(" seqno", ExtWordKind::Seqno), (" index", ExtWordKind::Index)];
        let with_kind = kinds.iter().find_map(|(end, kind)| Some((words.strip_suffix(end)?, *kind)));
        let (words, kind) = with_kind.unwrap_or((words, ExtWordKind::Number));
        let Some((index, text)) = words.split_once(' ') else { return };
        if let (Ok(index), Ok(name)) = (number(index), name(text)) {
            self.model.ext_words.add(index, ExtWord::of_text(name, kind));
        }
    }

    fn published_hash(&mut self, hex: &str) -> Parsed<()> {
        let is_first = matches!(self.open, Open::Content);
        if !is_first {
            return inconsistent("expected `hash` directly after `content`");
        }
        self.open = Open::Nothing;
        let is_lower = !hex.contains(|c: char| c.is_ascii_uppercase());
        let Some(()) = read_hex(hex, &mut self.model.schema_hash).filter(|()| is_lower) else {
            return syntax("expected 64 lower-case hex digits");
        };
        self.model.states_hash = true;
        Ok(())
    }

    fn begin_enum(&mut self, enum_name: &str, repr: &str) -> Parsed<()> {
        self.close()?;
        let name = self.new_type_name(enum_name)?;
        let Some(repr) = Scalar::from_name(repr).filter(|scalar| scalar.is_enum_repr()) else {
            return inconsistent("an enum is represented by an integer of 8 to 64 bits");
        };
        self.model.enums.push(EnumModel { repr, values: Vec::new(), is_added: false });
        self.open = Open::Enum { name };
        Ok(())
    }

    fn value(&mut self, value: &str, value_name: &str) -> Parsed<()> {
        let (Open::Enum { .. }, Some(open)) = (&self.open, self.model.enums.last_mut()) else {
            return inconsistent("a `value` outside an `enum`");
        };
        let value: i128 = number(value)?;
        open.values.push((value, name(value_name)?));
        Ok(())
    }

    fn begin_struct(&mut self, struct_name: &str, bytes: &str) -> Parsed<()> {
        self.close()?;
        let name = self.new_type_name(struct_name)?;
        let bytes: usize = number(bytes)?;
        if bytes > MAX_STRUCT_BYTES {
            return too_large(format!("a struct of {bytes} bytes, expected at most {MAX_STRUCT_BYTES}"));
        }
        self.model.structs.push(StructModel { bytes, depth: 0, fields: Vec::new() });
        self.open = Open::Struct { name, field_names: HashSet::new() };
        Ok(())
    }

    fn field(&mut self, field_name: &str, ty: &str, offset: &str, bytes: &str, redacted: bool) -> Parsed<()> {
        let ty = self.ty(ty)?;
        let (type_bytes, type_depth) = (self.model.bytes_of(&ty), self.model.depth_of(&ty));
        let (Open::Struct { field_names, .. }, Some(index)) = (&mut self.open, self.model.structs.len().checked_sub(1))
        else {
            return inconsistent("a `field` outside a `struct`");
        };
        let name = name(field_name)?;
        if !field_names.insert(name.clone()) {
            return inconsistent("a second field of this name");
        }
        if field_names.len() > MAX_FIELDS {
            return too_large(format!("more than {MAX_FIELDS} fields in a struct"));
        }
        let offset: usize = number(offset)?;
        if number::<usize>(bytes)? != type_bytes {
            return inconsistent(format!("the field's type has {type_bytes} bytes"));
        }
        let free_from =
            self.model.structs[index].fields.last().map_or(0, |last| last.offset + self.model.bytes_of(&last.ty));
        let open = &mut self.model.structs[index];
        if offset < free_from || offset > open.bytes || type_bytes > open.bytes - offset {
            return inconsistent(format!(
                "expected the field to lie between bytes {free_from} and {} of its struct",
                open.bytes
            ));
        }
        open.depth = open.depth.max(type_depth);
        open.fields.push(FieldModel { name, ty, offset, redacted });
        Ok(())
    }

    fn event(&mut self, code: &str, event_name: &str, payload: Option<&str>) -> Parsed<()> {
        self.close()?;
        let code: u16 = number(code)?;
        let name = name(event_name)?;
        if code == 0 {
            return inconsistent("event code 0 means no event");
        }
        if (code == RECORD_ERROR_CODE) != (name == "RECORD_ERROR") {
            return inconsistent("event code 1 is RECORD_ERROR in every schema, and no other is");
        }
        if self.model.events.last().is_some_and(|last| last.code >= code) {
            return inconsistent("expected events by ascending code");
        }
        if !self.event_names.insert(name.clone()) {
            return inconsistent("a second event of this name");
        }
        let payload = match payload.map(|payload| self.types.get(payload)) {
            None => None,
            Some(Some(TypeModel::Struct(index))) => Some(*index),
            Some(_) => return inconsistent("the payload is not a struct that was defined before"),
        };
        self.model.events.push(EventModel { code, name, domain: None, payload, trailing: Vec::new() });
        self.open = Open::Event { array_names: HashSet::new() };
        Ok(())
    }

    fn domain(&mut self, domain_number: &str, domain_name: &str) -> Parsed<()> {
        let domain = DomainModel::new(number(domain_number)?, name(domain_name)?);
        let event = match (&self.open, self.model.events.last_mut()) {
            (Open::Event { .. }, Some(event)) if event.domain.is_none() && event.trailing.is_empty() => event,
            _ => return inconsistent("expected `domain` directly after `event`"),
        };
        if event.code == RECORD_ERROR_CODE {
            return inconsistent("RECORD_ERROR belongs to no domain");
        }
        if !(1..=DOMAINS_MAX).contains(&domain.number()) {
            return too_large(format!("domain {}, expected a number from 1 to {DOMAINS_MAX}", domain.number()));
        }
        event.domain = Some(domain.number());
        let is_same = |other: &DomainModel| other.number() == domain.number() || other.name() == domain.name();
        match self.model.domains.iter().find(|other| is_same(other)) {
            Some(other) if *other == domain => {}
            Some(_) => return inconsistent("a second domain of this number or name"),
            None => {
                let at = self.model.domains.partition_point(|other| other.number() < domain.number());
                self.model.domains.insert(at, domain);
            }
        }
        Ok(())
    }

    fn trailing(&mut self, array_name: &str, element: &str, count: &str) -> Parsed<()> {
        let element = self.ty(element)?;
        let element_bytes = self.model.bytes_of(&element);
        let (Open::Event { array_names }, Some(event)) = (&mut self.open, self.model.events.last_mut()) else {
            return inconsistent("a `trailing` outside an `event`");
        };
        let name = name(array_name)?;
        let fixed = event.payload.map(|index| &self.model.structs[index]);
        let is_field = fixed.is_some_and(|fixed| fixed.fields.iter().any(|field| field.name == name));
        if is_field || !array_names.insert(name.clone()) {
            return inconsistent("a second field or array of this name");
        }
        if array_names.len() > MAX_FIELDS {
            return too_large(format!("more than {MAX_FIELDS} arrays in an event"));
        }
        if event.trailing.last().is_some_and(|last| last.count == CountModel::Rest) {
            return inconsistent("the array before this one takes the rest of the payload");
        }
        let count = if count == "*" {
            if element_bytes == 0 {
                return inconsistent("the rest of a payload cannot be divided into elements of 0 bytes");
            }
            CountModel::Rest
        } else {
            let Some(fixed) = fixed else {
                return inconsistent("the event has no payload struct that could hold the count");
            };
            count_at(&self.model.structs, fixed, count)?
        };
        event.trailing.push(TrailingModel { name, element, count });
        Ok(())
    }

    /// Ends the definition of the struct or enum that is open. The lines from here on may use its type.
    fn close(&mut self) -> Parsed<()> {
        let (name, ty) = match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Enum { name } => {
                let index = self.model.enums.len() - 1;
                // The values are sorted, because the decoder finds a value by binary search. This search is fast even
                // in an enum with very many values.
                let values = &mut self.model.enums[index].values;
                values.sort();
                if values.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return inconsistent(format!("two values of the enum {name} are the same number"));
                }
                (name, TypeModel::Enum(index))
            }
            Open::Struct { name, .. } => (name, TypeModel::Struct(self.model.structs.len() - 1)),
            Open::Nothing | Open::Content | Open::Event { .. } => return Ok(()),
        };
        self.types.insert(name, ty);
        Ok(())
    }

    fn new_type_name(&self, text: &str) -> Parsed<String> {
        let name = name(text)?;
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return syntax("expected the name of a struct or enum to begin with a capital letter");
        }
        if self.types.contains_key(&name) {
            return inconsistent("a second type of this name");
        }
        Ok(name)
    }

    /// Parses a type: `u32`, `Name`, `bytes20`, or an array of these. `u32[4][2]` is an array of two elements of the
    /// type `u32[4]`.
    fn ty(&self, text: &str) -> Parsed<TypeModel> {
        let (base, mut lengths) = text.split_at(text.find('[').unwrap_or(text.len()));
        let mut ty = match (base.strip_prefix("bytes"), self.types.get(base)) {
            (Some(len), _) => self.array(TypeModel::Scalar(Scalar::U8), number(len)?)?,
            (None, Some(ty)) => ty.clone(),
            (None, None) => return inconsistent("a type that was not defined before"),
        };
        while let Some((len, rest)) = lengths.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if ty == TypeModel::Scalar(Scalar::U8) {
                return syntax("expected `bytesN` for an array of u8");
            }
            ty = self.array(ty, number(len)?)?;
            lengths = rest;
        }
        if lengths.is_empty() { Ok(ty) } else { syntax("expected lengths of arrays as `[N]`") }
    }

    fn array(&self, element: TypeModel, len: usize) -> Parsed<TypeModel> {
        let bytes = self.model.bytes_of(&element).checked_mul(len);
        if len > MAX_STRUCT_BYTES || bytes.is_none_or(|bytes| bytes > MAX_STRUCT_BYTES) {
            return too_large(format!("an array of more than {MAX_STRUCT_BYTES} bytes"));
        }
        let ty = TypeModel::Array { element: Box::new(element), len };
        if self.model.depth_of(&ty) > MAX_DEPTH {
            return too_large(format!("types nested deeper than {MAX_DEPTH}"));
        }
        Ok(ty)
    }

    fn finish(mut self) -> Parsed<SchemaModel> {
        self.close()?;
        if !self.has_first_line {
            return Err((Kind::NotSchemaText, format!("expected `{FIRST_LINE}`")));
        }
        if !self.has_content {
            return syntax("the `content` line is missing");
        }
        self.model.name_record_error();
        Ok(self.model)
    }
}

impl SchemaModel {
    /// Makes enums of the reason in a RECORD_ERROR and of the event that was not recorded, which are numbers in the
    /// text of every schema. So all outputs have their names.
    fn name_record_error(&mut self) {
        let Some(index) = self.event(RECORD_ERROR_CODE).and_then(|event| event.payload) else { return };
        for field in &mut self.structs[index].fields {
            let TypeModel::Scalar(repr @ Scalar::U16) = field.ty else { continue };
            let values: Vec<(i128, String)> = match &*field.name {
                "error_type" => ErrorType::ALL.map(|it| (it as i128, it.name().to_owned())).into(),
                "dropped_event_type" => {
                    self.events.iter().map(|event| (event.code.into(), event.name.clone())).collect()
                }
                _ => continue,
            };
            field.ty = TypeModel::Enum(self.enums.len());
            self.enums.push(EnumModel { repr, values, is_added: true });
        }
    }
}

/// Finds the field that holds the number of elements of a trailing array. `path` is the dotted path of this field from
/// the struct `fixed`.
fn count_at(structs: &[StructModel], fixed: &StructModel, path: &str) -> Parsed<CountModel> {
    let (mut offset, mut inside) = (0, fixed);
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let Some(field) = inside.fields.iter().find(|field| field.name == segment) else {
            break;
        };
        offset += field.offset;
        match (&field.ty, segments.peek()) {
            (TypeModel::Struct(index), Some(_)) => inside = &structs[*index],
            (TypeModel::Scalar(scalar), None) if scalar.is_count() && !field.redacted => {
                return Ok(CountModel::At(offset, *scalar));
            }
            _ => break,
        }
    }
    inconsistent("the count is not an unsigned integer of the payload struct")
}

/// Parses a decimal number. Accepts only one form of each number: without `+`, and without leading zeros.
fn number<T: std::str::FromStr + ToString>(text: &str) -> Parsed<T> {
    match text.parse::<T>() {
        Ok(number) if number.to_string() == text => Ok(number),
        _ => syntax("expected a decimal number in its range"),
    }
}

fn name(text: &str) -> Parsed<String> {
    if text.len() > MAX_NAME_BYTES {
        return too_large(format!("a name of {} bytes, expected at most {MAX_NAME_BYTES}", text.len()));
    }
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        syntax("expected a name of ASCII letters, digits and `_`")
    }
}
