//! Tests that readers format values like `format!`: with each format spec of a table, and for random values.

use super::text;
use crate::tracing::record::fields::args::{ArgSink, LogValue};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fmt;

/// Bytes as the recorder encodes them.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl ArgSink for Bytes {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn put_text(&mut self, kind: u8, text: &str) {
        self.0.push(kind);
        self.0.extend((text.len() as u16).to_le_bytes());
        self.0.extend(text.as_bytes());
    }

    fn put_formatted(&mut self, write: &mut dyn FnMut(&mut dyn fmt::Write) -> fmt::Result) {
        let mut text = String::new();
        write(&mut text).unwrap();
        self.put_text(16, &text);
    }
}

fn encoded(value: &(impl LogValue + ?Sized)) -> Vec<u8> {
    let mut bytes = Bytes::default();
    value.put(&mut bytes);
    bytes.0
}

/// A format string, and what `format!` makes of a value with it.
type Case = (&'static str, String);

/// Lists a value's cases: all combinations of alignment, flags, width and precision, for each trait.
macro_rules! cases {
    ($value:expr; $($how:literal)*) => {{
        let mut all: Vec<Case> = Vec::new();
        $(cases!(@align all, $value, $how; "" "<" "*^" "é>");)*
        all
    }};
    (@align $all:ident, $value:expr, $how:literal; $($align:literal)*) => {
        $(cases!(@flags $all, $value, $how, $align; "" "+" "#" "0" "+#0");)*
    };
    (@flags $all:ident, $value:expr, $how:literal, $align:literal; $($flags:literal)*) => {
        $(cases!(@size $all, $value, $how, $align, $flags; "" "9" ".2" "11.3");)*
    };
    (@size $all:ident, $value:expr, $how:literal, $align:literal, $flags:literal; $($size:literal)*) => {
        $($all.push((
            concat!("a {:", $align, $flags, $size, $how, "} b"),
            format!(concat!("a {:", $align, $flags, $size, $how, "} b"), $value),
        ));)*
    };
}

fn of_number<T>(value: T) -> Vec<Case>
where
    T: fmt::Display + fmt::Debug + fmt::LowerHex + fmt::UpperHex + fmt::Octal + fmt::Binary + fmt::LowerExp,
{
    cases!(value; "" "?" "x?" "x" "X" "o" "b" "e")
}

fn of_float<T: fmt::Display + fmt::Debug + fmt::LowerExp + fmt::UpperExp>(value: T) -> Vec<Case> {
    cases!(value; "" "?" "e" "E")
}

fn of_text<T: fmt::Display + fmt::Debug>(value: T) -> Vec<Case> {
    cases!(value; "" "?")
}

fn of_debug<T: fmt::Debug>(value: T) -> Vec<Case> {
    cases!(value; "?" "x?")
}

/// Compares all cases of a value. Returns their number.
fn compare(value: &(impl LogValue + ?Sized), cases: Vec<Case>) -> Result<usize, TestCaseError> {
    let bytes = encoded(value);
    for (format, expected) in &cases {
        prop_assert_eq!(&text(format, &bytes, false).0, expected, "{}", format);
    }
    Ok(cases.len())
}

#[test]
fn the_text_of_each_value_and_spec_is_that_of_format() {
    // EVENTRING_TEXTS says how many rounds there are; 700 compare more than 10^6 argument sets.
    let rounds = std::env::var("EVENTRING_TEXTS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(rounds) });
    let compared = std::cell::Cell::new(0);
    let numbers = (any::<i8>(), any::<i64>(), any::<u16>(), any::<u128>(), any::<f32>(), any::<f64>());
    let texts = (any::<bool>(), any::<char>(), ".{0,12}", proptest::option::of(any::<i32>()));
    let lists = (proptest::collection::vec(proptest::option::of(".{0,3}"), 0..4), any::<[u8; 3]>());
    runner
        .run(&(numbers, texts, lists), |((a, b, c, d, e, f), (bool, char, string, option), (list, array))| {
            let counts = [
                compare(&a, of_number(a))?,
                compare(&(b as isize), of_number(b as isize))?,
                compare(&c, of_number(c))?,
                compare(&d, of_number(d))?,
                compare(&e, of_float(e))?,
                compare(&f, of_float(f))?,
                compare(&bool, of_text(bool))?,
                compare(&char, of_text(char))?,
                compare(&string, of_text(&string))?,
                compare(&option, of_debug(option))?,
                compare(&list, of_debug(&list))?,
                compare(&array, of_debug(array))?,
            ];
            compared.set(compared.get() + counts.iter().sum::<usize>());
            Ok(())
        })
        .unwrap();
    assert!(compared.get() > 2_000 * rounds as usize, "{}", compared.get());
}

#[test]
fn a_spec_that_is_applied_wrongly_is_found() {
    let bytes = encoded(&-5_i32);
    assert_eq!(text("{:+05}", &bytes, false).0, format!("{:+05}", -5));
    // The control: another spec has another text.
    assert_ne!(text("{:+06}", &bytes, false).0, format!("{:+05}", -5));
    assert_ne!(text("{:*>5}", &bytes, false).0, format!("{:*<5}", -5));
}

#[test]
fn widths_and_precisions_come_before_their_values() {
    let mut bytes = Bytes::default();
    7_usize.put(&mut bytes);
    2_usize.put(&mut bytes);
    1.5_f64.put(&mut bytes);
    "x".put(&mut bytes);
    assert_eq!(text("{:w$.p$}|{}", &bytes.0, false).0, format!("{:7.2}|x", 1.5));
}

proptest! {
    #[test]
    fn no_bytes_and_no_format_string_make_a_panic_or_a_large_text(format in ".{0,60}", braces in "[{}:#?0-9$.*<>^+xe]{0,40}", bytes: Vec<u8>) {
        for format in [&format, &braces] {
            prop_assert!(text(format, &bytes, false).0.len() <= 70_000 * 4);
        }
    }
}

#[test]
fn what_is_missing_or_made_to_harm_is_bounded() {
    assert_eq!(text("{} and {}", &encoded(&1_u8), false).0, "1 and <damaged>");
    let widths = "{:65535}".repeat(1000);
    let (wide, is_cut) = text(&widths, &encoded(&1_u8).repeat(1000), false);
    assert!(wide.len() <= 1 << 16 && is_cut);
    // The control: a text that just fits is whole.
    let (fits, is_cut) = text("{:65535}", &encoded(&1_u8), false);
    assert_eq!((fits.len(), is_cut), (65_535, false));
    let nested = [vec![18; 100_000], encoded(&1_u8)].concat();
    assert_eq!(text("{:?}", &nested, false).0, "<damaged>");
    assert!(text("{:99999999999}", &encoded(&1_u8), false).0.len() < 1 << 17);
}
