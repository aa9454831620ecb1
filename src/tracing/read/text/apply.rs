//! Formatting one argument by its placeholder.

use super::spec::{Align, Spec, Trait};
use super::value::Value;
use std::fmt::{self, Write as _};

/// Appends a value.
pub(super) fn apply(out: &mut String, spec: &Spec, value: &Value<'_>) {
    if let Value::Formatted(text) = value {
        return out.push_str(text);
    }
    // `std` has no way to set a fill at run time. So what a program aligns explicitly is padded here.
    let Some(align) = spec.align else { return natural(out, spec, value) };
    let padded = Padded { spec: &Spec { align: None, ..*spec }, fill: spec.fill.unwrap_or(' '), align };
    match value {
        Value::Option(Some(value)) => nested(out, spec, &Some(Element(&padded, value))),
        Value::Slice(values) => {
            let elements: Vec<Element<'_>> = values.iter().map(|value| Element(&padded, value)).collect();
            nested(out, spec, &elements);
        }
        value => _ = padded.write(out, value),
    }
}

/// The padding that a program asks for.
struct Padded<'s> {
    spec: &'s Spec,
    fill: char,
    align: Align,
}

impl Padded<'_> {
    fn write(&self, out: &mut impl fmt::Write, value: &Value<'_>) -> fmt::Result {
        let mut text = String::new();
        let is_debug = matches!(self.spec.how, Trait::Debug | Trait::DebugLowerHex | Trait::DebugUpperHex);
        // Zeros before a number know no alignment, and a text or `None` that is quoted by `Debug` knows no width.
        if (self.spec.has_zero && value.is_number())
            || (is_debug && matches!(value, Value::Char(_) | Value::Str(_) | Value::Option(None)))
        {
            natural(&mut text, self.spec, value);
            return out.write_str(&text);
        }
        natural(&mut text, &Spec { width: None.into(), ..*self.spec }, value);
        let missing = self.spec.width.get().unwrap_or(0).saturating_sub(text.chars().count());
        let before = match self.align {
            Align::Left => 0,
            Align::Center => missing / 2,
            Align::Right => missing,
        };
        (0..before).try_for_each(|_| out.write_char(self.fill))?;
        out.write_str(&text)?;
        (before..missing).try_for_each(|_| out.write_char(self.fill))
    }
}

/// A value in an option or slice. It is padded, not the whole.
struct Element<'e>(&'e Padded<'e>, &'e Value<'e>);

impl fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Value::Option(Some(value)) => Some(Element(self.0, value)).fmt(f),
            Value::Slice(values) => f.debug_list().entries(values.iter().map(|value| Element(self.0, value))).finish(),
            value => self.0.write(f, value),
        }
    }
}

fn nested(out: &mut String, spec: &Spec, value: &dyn fmt::Debug) {
    _ = if spec.is_alternate { write!(out, "{value:#?}") } else { write!(out, "{value:?}") };
}

/// Formats a value by one trait, with all flags, width and precision.
macro_rules! by_trait {
    ($out:ident, $spec:ident, $value:ident, $how:literal) => {{
        let (w, p) = ($spec.width.get().unwrap_or(0), $spec.precision.get().unwrap_or(0));
        match ($spec.has_plus, $spec.is_alternate, $spec.has_zero, $spec.precision.get().is_some()) {
            (false, false, false, false) => write!($out, concat!("{:1$", $how, "}"), $value, w),
            (false, false, true, false) => write!($out, concat!("{:01$", $how, "}"), $value, w),
            (false, true, false, false) => write!($out, concat!("{:#1$", $how, "}"), $value, w),
            (false, true, true, false) => write!($out, concat!("{:#01$", $how, "}"), $value, w),
            (true, false, false, false) => write!($out, concat!("{:+1$", $how, "}"), $value, w),
            (true, false, true, false) => write!($out, concat!("{:+01$", $how, "}"), $value, w),
            (true, true, false, false) => write!($out, concat!("{:+#1$", $how, "}"), $value, w),
            (true, true, true, false) => write!($out, concat!("{:+#01$", $how, "}"), $value, w),
            (false, false, false, true) => write!($out, concat!("{:1$.2$", $how, "}"), $value, w, p),
            (false, false, true, true) => write!($out, concat!("{:01$.2$", $how, "}"), $value, w, p),
            (false, true, false, true) => write!($out, concat!("{:#1$.2$", $how, "}"), $value, w, p),
            (false, true, true, true) => write!($out, concat!("{:#01$.2$", $how, "}"), $value, w, p),
            (true, false, false, true) => write!($out, concat!("{:+1$.2$", $how, "}"), $value, w, p),
            (true, false, true, true) => write!($out, concat!("{:+01$.2$", $how, "}"), $value, w, p),
            (true, true, false, true) => write!($out, concat!("{:+#1$.2$", $how, "}"), $value, w, p),
            (true, true, true, true) => write!($out, concat!("{:+#01$.2$", $how, "}"), $value, w, p),
        }
    }};
}

/// Formats a value as `std` does without an alignment.
fn natural(out: &mut String, spec: &Spec, value: &Value<'_>) {
    // A `String` takes everything.
    _ = match spec.how {
        Trait::Display => by_trait!(out, spec, value, ""),
        Trait::Debug => by_trait!(out, spec, value, "?"),
        Trait::DebugLowerHex => by_trait!(out, spec, value, "x?"),
        Trait::DebugUpperHex => by_trait!(out, spec, value, "X?"),
        Trait::LowerHex => by_trait!(out, spec, value, "x"),
        Trait::UpperHex => by_trait!(out, spec, value, "X"),
        Trait::Octal => by_trait!(out, spec, value, "o"),
        Trait::Binary => by_trait!(out, spec, value, "b"),
        Trait::LowerExp => by_trait!(out, spec, value, "e"),
        Trait::UpperExp => by_trait!(out, spec, value, "E"),
    };
}
