//! The parser of filter directives.
//!
//! A list has at most [`TEXT_BYTES_MAX`] bytes and [`DIRECTIVES_MAX`] directives, and a directive has at most
//! [`CONDITIONS_MAX`] fields. The time for parsing grows linearly with the length.

use super::limits::{CONDITIONS_MAX, DIRECTIVES_MAX, TEXT_BYTES_MAX};
use super::problem::{Problem, check_single_word, check_target};
use super::{Directive, FieldCondition};
use crate::tracing::filter::field_name::take_field_name;
use crate::tracing::filter::quoted::take_quoted;
use tracing_core::LevelFilter;

/// Length to which a directive is cut in an error, in bytes.
const SHOWN_BYTES_MAX: usize = 200;

/// Parses a list of directives, which are separated by commas. Commas within brackets do not separate. Empty
/// directives count as none.
///
/// # Errors
/// Returns the first invalid directive, and its fault.
pub(in crate::tracing) fn parse_list(text: &str) -> Result<Vec<Directive>, (String, Problem)> {
    let faulty =
        |directive: &str, problem| (directive[..directive.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned(), problem);
    if text.len() > TEXT_BYTES_MAX {
        return Err(faulty(text, Problem::TooLong(text.len())));
    }
    let mut directives = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (first, others) = rest.split_at(end_of_directive(rest));
        rest = others.strip_prefix(',').unwrap_or(others);
        let first = first.trim();
        if first.is_empty() {
            continue;
        }
        if directives.len() == DIRECTIVES_MAX {
            return Err(faulty(first, Problem::TooManyDirectives));
        }
        directives.push(parse_directive(first).map_err(|problem| faulty(first, problem))?);
    }
    Ok(directives)
}

/// Returns the length of the first directive of the list.
fn end_of_directive(list: &str) -> usize {
    let Some(end) = list.find([',', '[']) else { return list.len() };
    if list[end..].starts_with(',') {
        return end;
    }
    // The name of a span may have commas; quoted values of fields may also have closing brackets.
    let brackets = &list[end..];
    let Some(name_end) = brackets.find([']', '{']) else { return list.len() };
    let closed = match brackets[name_end..].starts_with('{') {
        true => find_unquoted(&brackets[name_end..], &['}']).map(|braces_end| name_end + braces_end),
        false => Some(name_end),
    };
    let Some(closed) = closed else { return list.len() };
    let after = end + closed;
    list[after..].find(',').map_or(list.len(), |comma| after + comma)
}

/// Returns the index of the first of the characters `wanted` that is not in quotes. A quote counts in a name, and as
/// the first character of a value, after `=`.
fn find_unquoted(text: &str, wanted: &[char]) -> Option<usize> {
    let (mut index, mut is_name, mut is_value_next) = (0, true, false);
    while let Some(c) = text[index..].chars().next() {
        let rest = &text[index..];
        let quoted_bytes = match c {
            '"' if is_name => Some(rest.len() - take_quoted(rest)?.1.len()),
            '"' if is_value_next => Some(rest[1..].find('"')? + 2),
            _ => None,
        };
        match c {
            _ if quoted_bytes.is_some() => is_value_next = false,
            c if wanted.contains(&c) => return Some(index),
            '=' => (is_name, is_value_next) = (false, true),
            ',' => (is_name, is_value_next) = (true, false),
            c if c.is_whitespace() => {}
            _ => is_value_next = false,
        }
        index += quoted_bytes.unwrap_or(c.len_utf8());
    }
    None
}

fn parse_directive(text: &str) -> Result<Directive, Problem> {
    match text.split_once('[') {
        Some((target, rest)) if !target.contains('=') => parse_span_directive(target, rest),
        _ => parse_target_directive(text),
    }
}

/// Parses a directive without brackets.
fn parse_target_directive(text: &str) -> Result<Directive, Problem> {
    let (target, level) = match text.split_once('=') {
        Some((target, level)) => (target.trim(), Some(level.trim())),
        None => (text, None),
    };
    check_target(target)?;
    let Some(level) = level else {
        check_single_word(text)?;
        return Ok(match text.parse() {
            Ok(level) => Directive::of_level(level),
            Err(_) => Directive { target: Some(text.into()), ..Directive::of_level(LevelFilter::TRACE) },
        });
    };
    if target.is_empty() {
        return Err(Problem::NoTarget);
    }
    Ok(Directive { target: Some(target.into()), ..Directive::of_level(parse_level(level)?) })
}

/// Parses a directive with brackets. `rest` is the text after the opening bracket.
fn parse_span_directive(target: &str, rest: &str) -> Result<Directive, Problem> {
    let target = target.trim();
    check_target(target)?;
    let expected = "`]` after the name of a span, such as `[query]`";
    let name_end = rest.find(['[', ']', '{', '}']).ok_or_else(|| Problem::expected(expected, ""))?;
    let (name, rest) = rest.split_at(name_end);
    let name = name.trim();
    if let Some(found) = name.chars().find(|c| c.is_control()) {
        return Err(Problem::expected("a name of a span without control characters", found.encode_utf8(&mut [0; 4])));
    }
    let (fields, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_fields(rest)?,
        None => (Vec::new(), rest),
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(']').ok_or_else(|| Problem::expected(expected, rest))?.trim_start();
    if name.is_empty() && fields.is_empty() {
        return Err(Problem::expected("the name of a span or of a field in the brackets", "]"));
    }
    let level = match rest.strip_prefix('=') {
        Some(level) => parse_level(level.trim())?,
        None if rest.is_empty() => LevelFilter::TRACE,
        None => return Err(Problem::expected("`=` and a level after `]`", rest)),
    };
    let some = |text: &str| Some(text).filter(|text| !text.is_empty()).map(Into::into);
    Ok(Directive { target: some(target), span: some(name), fields, level })
}

/// Parses the conditions after an opening brace. Returns them and the text after the closing brace.
fn parse_fields(mut rest: &str) -> Result<(Vec<FieldCondition>, &str), Problem> {
    let mut conditions = Vec::new();
    loop {
        let end = find_unquoted(rest, &[',', '}'])
            .ok_or_else(|| Problem::expected("`}` after the fields, such as `[query{user=7}]`", ""))?;
        let (condition, others) = rest.split_at(end);
        if conditions.len() == CONDITIONS_MAX {
            return Err(Problem::TooManyFields);
        }
        conditions.push(parse_condition(condition.trim())?);
        match others.strip_prefix(',') {
            Some(others) => rest = others,
            None => return Ok((conditions, others.strip_prefix('}').unwrap_or(others))),
        }
    }
}

fn parse_condition(text: &str) -> Result<FieldCondition, Problem> {
    let wrong = || {
        let found = text.split('=').next().unwrap_or(text).trim_end();
        Problem::expected("the name of a field, such as `user`, `user.id` or `\"user id\"`", found)
    };
    let (name, rest) = take_field_name(text).ok_or_else(wrong)?;
    let value = match rest.strip_prefix('=') {
        Some(value) => Some(value.trim_start()),
        None if rest.is_empty() => None,
        None => return Err(wrong()),
    };
    match value {
        Some("") => Err(Problem::expected("a value after `=`, or the field's name alone", "")),
        Some(value) if value.chars().any(char::is_control) => {
            Err(Problem::expected("a value without control characters", value))
        }
        // A quote that opens a value must close it.
        Some(value) if value.starts_with('"') && value[1..].find('"') != Some(value.len().saturating_sub(2)) => {
            Err(Problem::expected("a quoted value that ends with its closing quote", value))
        }
        value => Ok(FieldCondition::new(&name, value)),
    }
}

fn parse_level(level: &str) -> Result<LevelFilter, Problem> {
    // The empty word also parses as a level.
    let parsed = Some(level).filter(|level| !level.is_empty()).and_then(|level| level.parse().ok());
    parsed.ok_or_else(|| Problem::level(level))
}
