//! The parser of conditions. Its work is linear in the length of the expression, and its recursion is bounded.

use super::fault::ConditionError;
use super::node::{DEPTH_MAX, Node, TEXT_BYTES_MAX};
use super::pattern::NamePattern;
use super::possible::contradiction;
use super::subject::RateOf;
use super::term::WINDOW;
use super::term::{Compare, FieldLimit, LEVELS, NAMES, PHASES, RateUnit, TIMES_PARTS, Term};
use super::tokens::Tokens;
use eventring::now::TaskPhase;
use eventring::schema::perf::CallSiteLevel;
use std::time::Duration;

/// The characters at which the value of a term ends, besides spaces.
const VALUE_ENDS: [char; 2] = ['(', ')'];
/// The characters at which a pattern within the parentheses of a rate ends.
const ARGUMENT_ENDS: [char; 3] = ['(', ')', ','];
/// The word before the path of a field.
const FIELD: &str = "field.";
/// The words and signs of other languages, each with the word that stands for it here.
const OF_OTHER_LANGUAGES: [(&str, &str); 6] =
    [("&&", "and"), ("||", "or"), ("!", "not"), ("AND ", "and"), ("OR ", "or"), ("NOT ", "not")];
const A_TERM: &str = "span=NAME, dur>TIME, cpu>TIME, queue>TIME, sleep>TIME, open>TIME, level>=LEVEL, event=NAME, \
                      field.NAME=VALUE, target=NAME, thread=NAME, task=NAME, poll>TIME, woken>TIME, idle>TIME, \
                      rate(span=NAME)<10/s, p99(span=NAME)>TIME, death or signal";
/// The terms about single events, and those about what an event says by itself.
const AN_EVENT_TERM: &str = "span=NAME, dur>TIME, cpu>TIME, queue>TIME, sleep>TIME, level>=LEVEL, event=NAME, \
                             field.NAME=VALUE, target=NAME or thread=NAME";
const A_SEARCH_TERM: &str =
    "span=NAME, level>=LEVEL, event=NAME, NAME=VALUE (a field), field.NAME=VALUE, target=NAME or thread=NAME";
const A_TIME: &str = "a time like 500us, 50ms, 2s or 1m30s, at most 87600h";
/// The longest time that a term can have, ten years: times are counted in 64 bits of nanoseconds.
const TIME_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Parses an expression. One that waits for something must say what shall happen (`must_name`). With `has_bare_fields`,
/// other names are those of fields.
pub(super) fn parse(text: &str, must_name: bool, has_bare_fields: bool) -> Result<Node, ConditionError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the expression has {} bytes, expected at most {TEXT_BYTES_MAX}", text.len());
        return Err(ConditionError::new(text, 0, message));
    }
    let terms = match (must_name, has_bare_fields) {
        (true, _) => A_TERM,
        (false, false) => AN_EVENT_TERM,
        (false, true) => A_SEARCH_TERM,
    };
    let mut tokens = Tokens::new(text).with_terms(terms, has_bare_fields);
    let root = any(&mut tokens, 0)?;
    if !tokens.rest().is_empty() {
        return Err(tokens.expected("`and`, `or`, or the end of the expression"));
    }
    if must_name && !root.names_something(false) {
        let message = "the expression only says what shall not be, so it would always hold; say what shall happen, for example \
                       `span=*`, `level>=ERROR` or `dur>1s`";
        return Err(tokens.fault(0, message));
    }
    Ok(root)
}

fn any(tokens: &mut Tokens<'_>, depth: usize) -> Result<Node, ConditionError> {
    let mut parts = vec![all(tokens, depth)?];
    while tokens.take_name("or") {
        parts.push(all(tokens, depth)?);
    }
    Ok(one_or(parts, Node::Any))
}

fn all(tokens: &mut Tokens<'_>, depth: usize) -> Result<Node, ConditionError> {
    let (mut places, mut parts) = (vec![tokens.place()], vec![unary(tokens, depth)?]);
    loop {
        let has_and = tokens.take_name("and");
        let is_over = tokens.rest().is_empty() || tokens.rest().starts_with(')') || tokens.name() == "or";
        if is_over && !has_and {
            break;
        }
        places.push(tokens.place());
        parts.push(unary(tokens, depth)?);
    }
    if let Some((index, why)) = contradiction(&parts, tokens.has_bare_fields()) {
        return Err(tokens.fault(places[index], &why));
    }
    Ok(one_or(parts, Node::All))
}

fn one_or(mut parts: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    if parts.len() == 1 { parts.swap_remove(0) } else { several(parts) }
}

fn unary(tokens: &mut Tokens<'_>, depth: usize) -> Result<Node, ConditionError> {
    if depth == DEPTH_MAX {
        return Err(
            tokens.fault(tokens.place(), &format!("expected at most {DEPTH_MAX} parentheses and `not` in each other"))
        );
    }
    if tokens.take_name("not") {
        return Ok(match unary(tokens, depth + 1)? {
            Node::Not(inner) => *inner,
            inner => Node::Not(Box::new(inner)),
        });
    }
    if tokens.take("(") {
        let inner = any(tokens, depth + 1)?;
        return if tokens.take(")") { Ok(inner) } else { Err(tokens.expected("`)`, `and` or `or`")) };
    }
    let rest = tokens.rest();
    if let Some((_, word)) = OF_OTHER_LANGUAGES.iter().find(|(other, _)| rest.starts_with(other)) {
        return Err(tokens.expected(&format!("`{word}`")));
    }
    term(tokens).map(Node::Term)
}

fn term(tokens: &mut Tokens<'_>) -> Result<Term, ConditionError> {
    let name = tokens.name();
    let start = tokens.place();
    let is_field = name.starts_with(FIELD) && (name != FIELD || tokens.has_quoted_name());
    if is_field || (tokens.has_bare_fields() && tokens.has_quoted_name()) {
        let path = tokens.path(if is_field { FIELD } else { "" })?;
        return if path.is_empty() { Err(tokens.expected_at(start, tokens.terms())) } else { field(tokens, &path) };
    }
    if let Some(percent) = name.strip_prefix('p').and_then(|number| number.parse::<f64>().ok()) {
        if !(0.0..=100.0).contains(&percent) {
            return Err(tokens.expected("a percentile from p0 to p100"));
        }
        tokens.take(name);
        let (of, window) = argument(tokens, false)?;
        let compare = compare(tokens)?;
        return Ok(Term::Percentile { percent, of, window, compare, nanos: time(tokens)? });
    }
    if !tokens.take_name(name) {
        return Err(tokens.expected(tokens.terms()));
    }
    if let Some((_, kind)) = NAMES.into_iter().find(|(known, _)| *known == name) {
        return pattern(tokens).map(|(is, pattern)| Term::Name { kind, is, pattern });
    }
    // Where fields stand by their names, there are no times of spans, and `queue` is a name of fields.
    if !tokens.has_bare_fields()
        && let Some((_, part)) = TIMES_PARTS.into_iter().find(|(known, _)| *known == name)
    {
        return Ok(Term::Times { part, compare: compare(tokens)?, nanos: time(tokens)? });
    }
    match name {
        "dur" => Ok(Term::Duration { compare: compare(tokens)?, nanos: time(tokens)? }),
        "task" => pattern(tokens).map(|(is, pattern)| Term::Task { is, pattern }),
        "open" => {
            let (compare, nanos) = age(tokens, "`>` or `>=`, because the age of an open span grows")?;
            Ok(Term::OpenAge { compare, nanos })
        }
        "poll" | "woken" | "idle" => {
            let state = PHASES.iter().find(|(known, _)| *known == name).map_or(TaskPhase::Idle, |(_, state)| *state);
            let (compare, nanos) = age(tokens, "`>` or `>=`, because the time for which a task does something grows")?;
            Ok(Term::Phase { state, compare, nanos })
        }
        "level" => {
            let compare = compare(tokens)?;
            let expected = "a level: ERROR, WARN, INFO, DEBUG or TRACE";
            let word = tokens.word(&VALUE_ENDS, expected)?;
            let is_named =
                |level: &CallSiteLevel| level.name().is_some_and(|name| name.eq_ignore_ascii_case(&word.text));
            let level = LEVELS.into_iter().find(is_named);
            Ok(Term::Level { compare, level: level.ok_or_else(|| tokens.expected_at(word.place, expected))? })
        }
        "rate" => {
            let (of, window) = argument(tokens, true)?;
            let compare = compare(tokens)?;
            let (count, unit) = rate(tokens)?;
            Ok(Term::Rate { of, window, compare, count, unit })
        }
        "death" => Ok(Term::Death),
        "signal" => Ok(Term::Signal),
        path if tokens.has_bare_fields() && !path.is_empty() => field(tokens, path),
        _ => Err(tokens.expected_at(start, tokens.terms())),
    }
}

/// Parses a time that grows.
fn age(tokens: &mut Tokens<'_>, expected: &str) -> Result<(Compare, u64), ConditionError> {
    let place = tokens.place();
    let compare = compare(tokens)?;
    if !matches!(compare, Compare::Greater | Compare::GreaterOrEqual) {
        return Err(tokens.expected_at(place, expected));
    }
    Ok((compare, time(tokens)?))
}

fn compare(tokens: &mut Tokens<'_>) -> Result<Compare, ConditionError> {
    let found = tokens.take_one_of(&Compare::SIGNS);
    found.map(Compare::of_index).ok_or_else(|| tokens.expected("one of = != < <= > >="))
}

/// Parses `=PATTERN` or `!=PATTERN`. Returns false with the pattern in the second case.
fn pattern(tokens: &mut Tokens<'_>) -> Result<(bool, NamePattern), ConditionError> {
    let is = match tokens.take_one_of(&["!=", "="]) {
        Some(index) => index == 1,
        None => return Err(tokens.expected("`=` or `!=`, and a name, in which * stands for any characters")),
    };
    Ok((is, name_pattern(tokens, &VALUE_ENDS)?))
}

fn name_pattern(tokens: &mut Tokens<'_>, ends: &[char]) -> Result<NamePattern, ConditionError> {
    let word = tokens.word(ends, "a name, in which * stands for any characters")?;
    Ok(NamePattern::new(word.text))
}

fn field(tokens: &mut Tokens<'_>, path: &str) -> Result<Term, ConditionError> {
    let rest = tokens.rest();
    let compare = compare(tokens).map_err(|error| {
        let more = rest.split(|c: char| c.is_whitespace() || "=!<>()\"".contains(c)).next().unwrap_or_default();
        let name = format!("{path}{more}");
        match more.is_empty() {
            true => error,
            false => tokens
                .expected(&format!("one of = != < <= > >=; a name with other characters is quoted: {FIELD}{name:?}")),
        }
    })?;
    let word = tokens.word(&VALUE_ENDS, "a value: a number, true, false, a word or a quoted text")?;
    let value = match (word.is_quoted, compare.is_equality()) {
        (true, true) => FieldLimit::Pattern(NamePattern::new(&*word.text)),
        (true, false) => FieldLimit::Text(word.text.into_owned()),
        (false, _) => FieldLimit::unquoted(&word.text),
    };
    if matches!(value, FieldLimit::Bool(_) | FieldLimit::Pattern(_) | FieldLimit::NotFinite(_))
        && !compare.is_equality()
    {
        let expected = "a number or a quoted text, because only these are less or greater than others";
        return Err(tokens.expected_at(word.place, expected));
    }
    Ok(Term::Field { path: path.to_owned(), compare, value })
}

fn time(tokens: &mut Tokens<'_>) -> Result<u64, ConditionError> {
    let word = tokens.word(&ARGUMENT_ENDS, A_TIME)?;
    time_nanos(&word.text).ok_or_else(|| tokens.expected_at(word.place, A_TIME))
}

/// Parses a time like `50ms` or `1m30s`. Returns it in nanoseconds.
pub fn time_nanos(text: &str) -> Option<u64> {
    let time: Option<jiff::SignedDuration> = text.parse().ok();
    let time = time.and_then(|time| Duration::try_from(time).ok()).filter(|time| *time <= TIME_MAX);
    time.map(|time| time.as_nanos() as u64)
}

/// Parses `(span=PATTERN)` or `(span=PATTERN,TIME)`.
fn argument(tokens: &mut Tokens<'_>, allows_events: bool) -> Result<(RateOf, Duration), ConditionError> {
    let expected = match allows_events {
        true => "(span=NAME), (event=NAME), or the same with a time: (span=NAME,10s)",
        false => "(span=NAME), or (span=NAME,10s)",
    };
    if !tokens.take("(") {
        return Err(tokens.expected(expected));
    }
    let is_spans = tokens.take_name("span");
    if !(is_spans || allows_events && tokens.take_name("event")) || !tokens.take("=") {
        return Err(tokens.expected(expected));
    }
    let place = tokens.place();
    let pattern = name_pattern(tokens, &ARGUMENT_ENDS)?;
    if !is_spans && pattern.code().is_some() {
        return Err(tokens.expected_at(place, "the name of an event: rates are counted by names, not by codes"));
    }
    let of = if is_spans { RateOf::Spans(pattern) } else { RateOf::Events(pattern) };
    let window = if tokens.take(",") {
        let place = tokens.place();
        let window = Duration::from_nanos(time(tokens)?);
        let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
        if !allowed.contains(&window) {
            return Err(tokens.expected_at(place, "a time from 1s to 1h"));
        }
        window
    } else {
        WINDOW
    };
    if tokens.take(")") { Ok((of, window)) } else { Err(tokens.expected("`,` and a time, or `)`")) }
}

/// Parses `10/s`.
fn rate(tokens: &mut Tokens<'_>) -> Result<(f64, RateUnit), ConditionError> {
    let expected = "a rate like 10/s, 100/m or 5/h";
    let word = tokens.word(&VALUE_ENDS, expected)?;
    let parsed = word.text.split_once('/').and_then(|(count, unit)| {
        let count = count.parse::<f64>().ok().filter(|count| count.is_finite() && *count >= 0.0)?;
        let (_, unit) = RateUnit::NAMES.into_iter().find(|(name, _)| *name == unit)?;
        Some((count, unit))
    });
    parsed.ok_or_else(|| tokens.expected_at(word.place, expected))
}
