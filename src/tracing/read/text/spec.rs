//! Parsing a format string of `std::fmt`. The parser ignores the name or index of a placeholder's argument, because the
//! recorder encodes the arguments in the order of the placeholders.

/// The largest width or precision that is taken from a format string or an argument. `std` has the same limit.
const COUNT_MAX: usize = u16::MAX as usize;

/// A piece of a format string.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Piece<'f> {
    Text(&'f str),
    Placeholder(Spec),
}

/// A width or a precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Count {
    #[default]
    None,
    Is(usize),
    /// It is an argument.
    Argument,
}

impl Count {
    pub(super) fn get(self) -> Option<usize> {
        match self {
            Self::Is(count) => Some(count.min(COUNT_MAX)),
            Self::None | Self::Argument => None,
        }
    }
}

impl From<Option<usize>> for Count {
    fn from(count: Option<usize>) -> Self {
        count.map_or(Self::None, Self::Is)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// How a value is formatted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Trait {
    #[default]
    Display,
    Debug,
    DebugLowerHex,
    DebugUpperHex,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
    LowerExp,
    UpperExp,
}

/// What stands between the braces, after the colon.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Spec {
    /// The fill, and the alignment that must come with it.
    pub(super) fill: Option<char>,
    pub(super) align: Option<Align>,
    pub(super) has_plus: bool,
    pub(super) is_alternate: bool,
    pub(super) has_zero: bool,
    pub(super) width: Count,
    pub(super) precision: Count,
    pub(super) how: Trait,
}

/// The pieces of a format string. What is no format string comes as text.
pub(super) struct Pieces<'f>(&'f str);

impl<'f> Pieces<'f> {
    pub(super) fn new(format: &'f str) -> Self {
        Self(format)
    }
}

impl<'f> Iterator for Pieces<'f> {
    type Item = Piece<'f>;

    fn next(&mut self) -> Option<Piece<'f>> {
        let text = self.0;
        let brace = text.find(['{', '}']).unwrap_or(text.len());
        if brace > 0 {
            self.0 = &text[brace..];
            return Some(Piece::Text(&text[..brace]));
        }
        if text.starts_with("{{") || text.starts_with("}}") {
            self.0 = &text[2..];
            return Some(Piece::Text(&text[..1]));
        }
        let inside = text.strip_prefix('{')?;
        let Some((placeholder, rest)) = inside.split_once('}') else {
            self.0 = "";
            return Some(Piece::Text(text));
        };
        // `{:}>5}` fills with a brace.
        let (placeholder, rest) = match placeholder.ends_with(':') && rest.starts_with(['<', '^', '>']) {
            true => {
                let end = rest.find('}').unwrap_or(rest.len());
                let after = rest.get(end + 1..).unwrap_or_default();
                (&inside[..placeholder.len() + 1 + end], after)
            }
            false => (placeholder, rest),
        };
        self.0 = rest;
        Some(Piece::Placeholder(spec(placeholder)))
    }
}

fn spec(placeholder: &str) -> Spec {
    let mut spec = Spec::default();
    let Some((_, text)) = placeholder.split_once(':') else { return spec };
    let mut rest = text.trim_end();
    let align = |sign: Option<char>| match sign {
        Some('<') => Some(Align::Left),
        Some('^') => Some(Align::Center),
        Some('>') => Some(Align::Right),
        _ => None,
    };
    let mut chars = rest.chars();
    let (first, second) = (chars.next(), chars.next());
    if align(second).is_some() {
        (spec.fill, spec.align) = (first, align(second));
        rest = chars.as_str();
    } else if align(first).is_some() {
        spec.align = align(first);
        rest = &rest[1..];
    }
    let take = |rest: &mut &str, sign: char| match rest.strip_prefix(sign) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    };
    spec.has_plus = take(&mut rest, '+');
    take(&mut rest, '-');
    spec.is_alternate = take(&mut rest, '#');
    // In `0$`, the 0 is the number of an argument.
    if rest.starts_with('0') && !rest.starts_with("0$") {
        spec.has_zero = take(&mut rest, '0');
    }
    spec.width = count(&mut rest);
    if take(&mut rest, '.') {
        spec.precision = if take(&mut rest, '*') { Count::Argument } else { count(&mut rest) };
    }
    spec.how = match rest {
        "?" => Trait::Debug,
        "x?" => Trait::DebugLowerHex,
        "X?" => Trait::DebugUpperHex,
        "x" => Trait::LowerHex,
        "X" => Trait::UpperHex,
        "o" => Trait::Octal,
        "b" => Trait::Binary,
        "e" => Trait::LowerExp,
        "E" => Trait::UpperExp,
        _ => Trait::Display,
    };
    spec
}

/// Takes a width or precision from the front.
fn count(rest: &mut &str) -> Count {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    if rest[end..].starts_with('$') {
        *rest = &rest[end + 1..];
        return Count::Argument;
    }
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(count) = rest[..digits].parse() else { return Count::None };
    *rest = &rest[digits..];
    Count::Is(count)
}
