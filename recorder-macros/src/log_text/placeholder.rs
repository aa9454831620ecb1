//! The placeholders of a format string.

/// An argument that a placeholder names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    Number(usize),
    Name(String),
}

/// A placeholder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Placeholder {
    pub(super) value: Argument,
    /// The width and the precision, if they are arguments.
    pub(super) width: Option<Argument>,
    pub(super) precision: Option<Argument>,
    /// Fill, alignment and flags; then the width and the precision if they are numbers; then the trait.
    flags: String,
    width_number: String,
    precision_number: String,
    how: String,
}

impl Placeholder {
    /// Returns a format string for the value alone. Its width and its precision are the arguments after it.
    pub(super) fn spec(&self) -> String {
        let width = if self.width.is_some() { "1$" } else { &self.width_number };
        let precision = match (&self.precision, &self.width) {
            (Some(_), Some(_)) => ".2$",
            (Some(_), None) => ".1$",
            (None, _) => &self.precision_number,
        };
        format!("{{:{}{width}{precision}{}}}", self.flags, self.how)
    }

    pub(super) fn is_pointer(&self) -> bool {
        self.how == "p"
    }
}

/// Returns the placeholders of a format string. If it is none, the result means nothing.
pub(super) fn placeholders(format: &str) -> Vec<Placeholder> {
    let (mut found, mut next, mut rest) = (Vec::new(), 0, format);
    while let Some(at) = rest.find(['{', '}']) {
        let inside = &rest[at + 1..];
        if inside.starts_with(&rest[at..=at]) {
            rest = &inside[1..];
            continue;
        }
        let Some(mut end) = inside.find('}') else { break };
        // `{:}>5}` fills with a brace.
        if inside[..end].ends_with(':') && inside[end + 1..].starts_with(['<', '^', '>']) {
            end += 1 + inside[end + 1..].find('}').unwrap_or(0);
        }
        found.push(placeholder(&inside[..end], &mut next));
        rest = &inside[end + 1..];
    }
    found
}

fn placeholder(text: &str, next: &mut usize) -> Placeholder {
    let (name, mut rest) = text.split_once(':').unwrap_or((text, ""));
    rest = rest.trim_end();
    let flags_end = flags(rest);
    let (flags, after) = rest.split_at(flags_end);
    let (width, width_number, after) = count(after);
    let (precision, precision_number, how) = match after.strip_prefix('.') {
        None => (None, String::new(), after),
        Some(after) => match after.strip_prefix('*') {
            // The precision comes before the value.
            Some(how) => (Some(take(next)), String::new(), how),
            None => {
                let (argument, number, how) = count(after);
                (argument, format!(".{number}"), how)
            }
        },
    };
    let value = match name.trim() {
        "" => take(next),
        name => argument(name),
    };
    let (flags, how) = (flags.to_owned(), how.to_owned());
    Placeholder { value, width, precision, flags, width_number, precision_number, how }
}

fn take(next: &mut usize) -> Argument {
    *next += 1;
    Argument::Number(*next - 1)
}

fn argument(name: &str) -> Argument {
    name.parse().map_or_else(|_| Argument::Name(name.to_owned()), Argument::Number)
}

/// Returns the bytes of fill, alignment and flags.
fn flags(text: &str) -> usize {
    let is_align = |c: Option<char>| matches!(c, Some('<' | '^' | '>'));
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let mut end = match () {
        () if is_align(second) => text.len() - chars.as_str().len(),
        () if is_align(first) => 1,
        () => 0,
    };
    for sign in ['+', '-', '#'] {
        end += usize::from(text[end..].starts_with(sign));
    }
    // In `0$`, the 0 is the number of an argument.
    end + usize::from(text[end..].starts_with('0') && !text[end..].starts_with("0$"))
}

/// Returns a width or precision: the argument or the number that it is, and what follows.
fn count(text: &str) -> (Option<Argument>, String, &str) {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    if let Some(rest) = text[end..].strip_prefix('$') {
        return (Some(argument(&text[..end])), String::new(), rest);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (None, text[..digits].to_owned(), &text[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_name_their_arguments_in_the_order_of_std() {
        let of = |format: &str| {
            let found = placeholders(format).into_iter();
            found.map(|it| (it.value.clone(), it.width.clone(), it.precision.clone(), it.spec())).collect::<Vec<_>>()
        };
        let (number, name) = (Argument::Number, |name: &str| Argument::Name(name.into()));
        assert_eq!(of("no {{placeholder}}"), []);
        assert_eq!(
            of("{} {1} {x}")[1..],
            [(number(1), None, None, "{:}".into()), (name("x"), None, None, "{:}".into())]
        );
        assert_eq!(
            of("{:.*} {}"),
            [(number(1), None, Some(number(0)), "{:.1$}".into()), (number(2), None, None, "{:}".into())]
        );
        assert_eq!(of("{x:*>+#010.3e}"), [(name("x"), None, None, "{:*>+#010.3e}".into())]);
        assert_eq!(of("{0:0w$.p$?}"), [(number(0), Some(name("w")), Some(name("p")), "{:01$.2$?}".into())]);
        assert_eq!(
            of("{:}>5}{:0$}"),
            [(number(0), None, None, "{:}>5}".into()), (number(1), Some(number(0)), None, "{:1$}".into())]
        );
    }
}
