//! The macros of `eventring::log`: what readers show is what `format!` makes.

use crate::fixtures::*;
use eventring::log;
use eventring::tracing::try_init_with;
use std::fmt;
use std::num::{NonZero, Wrapping};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn small() -> eventring::tracing::PerfRecorderBuilder {
    PerfRecorder::builder().anonymous().shards(1).shifts(16, 22).tables_shift(16).prefault(false)
}

/// Returns the fields of each log record, and the name of its span.
fn recorded() -> Vec<String> {
    let records = records(PERF.installed().unwrap());
    let fields = |content: PerfContent| match content {
        PerfContent::Event { fields, .. } => {
            let fields = fields.values.iter().map(|field| format!("{}={}", field.name, field.value));
            Some(fields.collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    records.into_iter().filter_map(|record| fields(record.content)).collect()
}

#[derive(Debug)]
struct Point {
    #[expect(dead_code, reason = "its `Debug` shows it")]
    x: i32,
}

struct Shown(&'static str);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

struct Named(u8);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", self.0)
    }
}

impl Named {
    /// `self` in a text is the variable.
    fn log(&self) -> Option<String> {
        log::info!("{self} {self:>3} {}", self.0);
        Some(format!("message={self} {self:>3} {}", self.0))
    }
}

/// Records each text by a macro, and keeps what `format!` makes of it.
macro_rules! both {
    ($expected:ident: $($format:literal $(, $arg:expr)*;)*) => {
        $(
            log::info!($format $(, $arg)*);
            $expected.push(format!("message={}", format!($format $(, $arg)*)));
        )*
    };
}

#[test]
fn the_text_that_readers_show_is_that_of_format() {
    alone!();
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    let mut expected = Vec::new();
    let (width, name, precision) = (9, "ada", 2);
    let words = vec!["one".to_owned(), "two".to_owned()];
    let (r#type, r#fn) = (3, 6);
    both! { expected:
        "plain {{braces}}";
        "{} {} {}", 1_u8, -2_i64, "text";
        "{name} {width:>5} {name:?}";
        "{0:#x} {0:08b} {1:e} {1:+.3}", 255_u32, 1234.5_f64;
        "{:.*} {:<width$.precision$}|", 3, 1.0_f64, 2.0_f32;
        "{:>1$} {}|", 7, 6_usize;
        "{:*^9} {:#?}", 'x', Some(3);
        "{:?} {:#x?} {:5?}", words, [1_u8, 255], (1, 2);
        "{:?} {:>9} {:p}", Point { x: 1 }, Shown("shown"), std::ptr::null::<u8>();
        "{}{}{}", true, u128::MAX, f32::NAN;
        "{:?} {:?} {:?}", None::<u8>, Some("x"), &[Some(1.5)][..];
        "{}", String::new();
        "{:}>5}|", 1;
        "{:-^width$}", "é";
        "{type} {:fn$} {:?}", 1, Ok::<u8, u8>(3);
        "{} {}", std::collections::HashMap::<u32, u64>::new().len(), <Vec<(u8, u8)> as Default>::default().len();
        "{} {}", std::sync::Arc::new(std::sync::Mutex::new(4)).lock().unwrap(), std::cell::RefCell::new(5).borrow();
    }
    log::info!("{:?} {n}", &<BTreeMap<u8, u8>>::new(), n = <BTreeMap<u8, u8>>::new().len());
    expected.push("message={} 0".to_owned());
    expected.extend(Named(6).log());
    assert_eq!(recorded(), expected);
}

/// Nests a value in as many options as there are dots.
macro_rules! nested {
    ($value:expr;) => { $value };
    ($value:expr; . $($rest:tt)*) => { Some(nested!($value; $($rest)*)) };
}

#[test]
fn a_value_is_shown_however_deep_it_is_nested() {
    alone!();
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    let mut expected = Vec::new();
    let deep = nested!(7; . . . . . . . . . . . . . . . .);
    let deeper = Some(deep);
    let list = nested!([1]; . . . . . . . . . . . . . . .);
    let lists = nested!(vec![1]; . . . . . . . . . . . . . . . .);
    let none = Some(Some(&deep)).filter(|_| false);
    both! { expected:
        "16: {deep:?} end {}", 5;
        "17: {deeper:?} end {}", 5;
        "{deeper:#?} {0:1$?} {0:.1$?}", deeper, 9;
        "{list:?} {lists:?} {:?} {:?}", &[&deeper][..], "end";
        "{none:?} {:?}", Some(&mut "end");
    }
    assert_eq!(recorded(), expected);
}

#[test]
fn an_argument_may_consume_its_value_and_is_formatted_at_most_twice() {
    alone!();
    struct Counted<'c>(&'c Cell<u32>);
    impl fmt::Display for Counted<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str("counted")
        }
    }
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    let (text, handle) = ("ab".to_owned(), std::thread::spawn(|| 3));
    let (iter, once): (_, Box<dyn FnOnce() -> u8>) = (0..4, Box::new(|| 5));
    log::info!("{} {:?}", text.into_bytes().len(), handle.join().unwrap());
    log::info!("{iter} {}", once(), iter = iter.count());
    let [short, long] = [Cell::new(0), Cell::new(0)];
    log::info!("{}", Counted(&short));
    log::info!("{} {}", Counted(&long), "p".repeat(1200));
    assert_eq!((short.get(), long.get()), (1, 2));
    let expected = ["2 3", "4 5", "counted", &format!("counted {}", "p".repeat(1200))];
    assert_eq!(recorded(), expected.map(|text| format!("message={text}")));
}

// The names of variables in the macros are no names of the program.
#[expect(dead_code, non_upper_case_globals, reason = "the names are those that macros like to use")]
mod names {
    pub(super) const site: u8 = 1;
    pub(super) static args: u8 = 2;
    pub(super) static f: u8 = 3;
    pub(super) static text: u8 = 4;
}

#[test]
fn fields_targets_and_levels_are_those_of_tracing() {
    #[expect(unused_imports, reason = "the macros must not find them")]
    use names::{args, f, site, text};
    alone!();
    try_init_with(small(), "info,quiet=off".parse().unwrap()).unwrap();
    let (bytes, point) = (17_u32, Point { x: 1 });
    log::warn!(bytes, ?point, rate = 0.5, of.whole = %1, "fields and {}", "text");
    let r#type = 7_u8;
    log::error!(only = "fields", r#type, r#fn = 8_u8);
    log::debug!("not wanted {}", bytes);
    log::info!(target: "quiet", "not wanted");
    log::info!(target: "loud", "wanted",);
    let _scope = eventring::scope!("scope");
    log::info!("in a scope");
    let last = &mut 9_u8;
    log::info!(last, wrapped = Wrapping(-1), more = NonZero::new(2_u16), bytes = b"ab");
    let expected = [
        "message=fields and text bytes=17 point=Point { x: 1 } rate=0.5 of.whole=1",
        "only=fields type=7 fn=8",
        "message=wanted",
        "message=in a scope",
        "last=9 wrapped=-1 more=2 bytes=0x6162",
    ];
    assert_eq!(recorded(), expected);
}

#[test]
fn what_is_off_is_not_evaluated_and_each_argument_is_evaluated_once() {
    alone!();
    let count = Cell::new(0);
    let next = || {
        count.set(count.get() + 1);
        count.get()
    };
    let log = || log::info!(field = next(), "{0} {0:?} {value}", next(), value = next());
    log();
    assert_eq!(count.get(), 0);
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    log();
    log();
    PERF.set_enabled(false);
    log();
    assert_eq!(count.get(), 6);
    assert_eq!(recorded(), ["message=1 1 2 field=3", "message=4 4 5 field=6"]);
}

#[test]
fn long_texts_are_cut_redacted_fields_are_left_out_and_values_may_record_fail_and_panic() {
    alone!();
    struct Odd(u32);
    impl fmt::Display for Odd {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.0 > 0 {
                f.write_str("half")?;
            }
            match self.0 {
                0 => log::info!("inside"),
                1 => return Err(fmt::Error),
                _ => panic!("in Display"),
            }
            f.write_str("shown")
        }
    }
    try_init_with(small().redact_fields(["secret"]), "info".parse().unwrap()).unwrap();
    log::info!(secret = "s", open = "o", "{} and {}", 1, 2);
    log::info!("{}|{}", "x".repeat(1500), Shown("after"));
    log::info!("{}", "y".repeat(100_000));
    log::info!("{:?}", vec![7_u8; 100_000]);
    let redacted = recorded();
    assert_eq!(redacted[0], "message=1 and 2 secret=<redacted> open=o");
    assert_eq!(redacted[1], format!("message={}|after", "x".repeat(1500)));
    assert_eq!(redacted[2].len(), "message=".len() + 2048);
    assert_eq!(redacted[3].len(), "message=".len() + 2048);
    assert!(redacted[3].starts_with("message=[7, 7, "), "{}", redacted[3]);
    log::info!("before {} after", Odd(0));
    log::info!("failed {} after {}", Odd(1), 8);
    let panics = || log::info!("panicked {} {} after", 7, Odd(2));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    log::info!("at the end");
    let after = recorded().split_off(4);
    assert_eq!(after[0], "message=inside");
    assert_eq!(after[1], "message=before shown after");
    assert_eq!(after[2..4], ["message=failed half", "message=panicked 7 half"]);
    assert_eq!(after.last().unwrap(), "message=at the end");
}

/// Returns the fields of the first log record, each with `…` if it is cut, and the number of those that are missing.
fn first() -> (Vec<String>, u64) {
    let records = records(PERF.installed().unwrap());
    let fields = records.into_iter().find_map(|record| match record.content {
        PerfContent::Event { fields, .. } => Some(fields),
        _ => None,
    });
    let fields = fields.unwrap();
    let shown = fields.values.iter().map(|field| {
        let mark = if field.cut.is_some() { "…" } else { "" };
        format!("{}={}{mark}", field.name, field.value)
    });
    (shown.collect(), fields.missing.into())
}

#[test]
fn a_text_that_no_buffer_holds_is_cut_and_marked() {
    alone!();
    try_init_with(small().fields_bytes_max(1024), "info".parse().unwrap()).unwrap();
    log::info!(after = 1, "lost {}", "x".repeat(1500));
    assert_eq!(first(), (vec![format!("message=lost {}…", "x".repeat(1024 - 8 - 5))], 1));
}

#[test]
fn a_text_has_the_limit_of_texts_also_if_its_arguments_are_short() {
    alone!();
    try_init_with(small().text_bytes_max(100), "info".parse().unwrap()).unwrap();
    log::info!(after = 1, "{}", "x".repeat(200));
    assert_eq!(first(), (vec![format!("message={}…", "x".repeat(100)), "after=1".to_owned()], 0));
}

#[test]
fn a_text_whose_limit_is_0_is_not_formatted() {
    alone!();
    struct Untouchable;
    impl fmt::Display for Untouchable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("formatted");
        }
    }
    try_init_with(small().text_bytes_max(0), "info".parse().unwrap()).unwrap();
    log::info!(after = 1, "{}", Untouchable);
    assert_eq!(first(), (vec!["message=<not formatted>".to_owned(), "after=1".to_owned()], 0));
}
