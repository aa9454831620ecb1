use super::condition::FieldCondition;
use super::limits::{CONDITIONS_MAX, DIRECTIVES_MAX, TEXT_BYTES_MAX};
use super::parse::parse_list;
use super::problem::{Problem, check_single_word};
use super::*;
use crate::schema::perf::{Cut, RawField, ValueType};
use crate::tracing::filter::filter::TargetFilter;
use proptest::prelude::*;

fn problem(directive: &str) -> Option<Problem> {
    parse_list(directive).err().map(|(_, problem)| problem)
}

#[test]
fn a_single_word_that_is_nearly_a_level_is_a_mistyped_level() {
    for (word, level) in
        [("inof", "info"), ("INFOO", "info"), ("debg", "debug"), ("trase", "trace"), ("Warning", "warn")]
    {
        let level = level.parse().unwrap();
        assert!(check_single_word(word) == Err(Problem::LooksLike(level)), "{word}");
    }
    for directive in ["", "info", "WARN", "3", "noisy", "hyper", "my_crate::db", "inof=trace", "hyper=2", "a-b.c/d"] {
        assert!(problem(directive).is_none(), "{directive}");
    }
    for directive in ["info;x=debug", "7", "setup=", "setup= ", "*=info", "a b", "a=b=info", "\u{fffd}=info"] {
        assert!(problem(directive).is_some(), "{directive}");
    }
    for (number, level) in ["off", "error", "warn", "info", "debug", "trace"].into_iter().enumerate() {
        assert_eq!(number.to_string().parse::<LevelFilter>().unwrap(), level.parse::<LevelFilter>().unwrap());
    }
    assert!(Problem::level("6").to_string().contains("a number from 0 (off) to 5 (trace)"));
}

#[test]
fn every_part_of_a_directive_may_be_left_out() {
    let parsed = |text: &str| {
        let directives = parse_list(text).unwrap_or_else(|(directive, problem)| panic!("`{directive}` {problem}"));
        directives.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(parsed("info, a=debug ,b"), ["info", "a=debug", "b=trace"]);
    assert_eq!(parsed("a::db[query{user=7}]=trace,warn"), ["a::db[query{user=7}]=trace", "warn"]);
    assert_eq!(parsed("[query]=debug,[{user}]"), ["[query]=debug", "[{user}]=trace"]);
    assert_eq!(parsed("[ query { user = 7 , name } ] = 2"), ["[query{user=7,name}]=warn"]);
    assert_eq!(parsed(r#"[q{a="x,}]",b=1}]=info,c=info"#), [r#"[q{a="x,}]",b=1}]=info"#, "c=info"]);
    let quoted = r#"[q{"user id"=7,header."a,}=\"b\""="x,",r#type}]=info"#;
    assert_eq!(parsed(&format!("{quoted},c=info")), [&quoted.replace("header.\"a", "\"header.a"), "c=info"]);
    assert_eq!(parsed(r#"[{"user"=1}],[{content-type}]"#), ["[{user=1}]=trace", "[{content-type}]=trace"]);
    assert_eq!(parsed("[GET /a, b]=info,c"), ["[GET /a, b]=info", "c=trace"]);
    assert_eq!(parsed(r#"[{a=""}],[{b=x"y}]"#), [r#"[{a=""}]=trace"#, r#"[{b=x"y}]=trace"#]);
}

#[test]
fn limits_hold_for_the_text_the_list_and_the_fields() {
    assert!(problem(&"a,".repeat(DIRECTIVES_MAX)).is_none());
    assert!(problem(&"a,".repeat(DIRECTIVES_MAX + 1)) == Some(Problem::TooManyDirectives));
    assert!(problem(&"a".repeat(TEXT_BYTES_MAX)).is_none());
    assert!(problem(&"a".repeat(TEXT_BYTES_MAX + 1)) == Some(Problem::TooLong(TEXT_BYTES_MAX + 1)));
    let fields = |count| format!("[q{{{}}}]", vec!["a=1"; count].join(","));
    assert!(problem(&fields(CONDITIONS_MAX)).is_none());
    assert!(problem(&fields(CONDITIONS_MAX + 1)) == Some(Problem::TooManyFields));
    let long = TargetFilter::parse(&format!("[{}", "é".repeat(5000))).unwrap_err();
    assert!(long.to_string().len() < 600);
}

#[test]
fn a_value_meets_a_condition_as_documented() {
    let meets = |written: &str, ty: ValueType, value: &[u8]| {
        let field = RawField { index: 0, type_code: ty as u8, value, cut: None };
        assert!(!FieldCondition::new("x", Some(written)).is_met_by(&RawField { cut: Some(Cut::Failed), ..field }));
        FieldCondition::new("x", Some(written)).is_met_by(&field)
    };
    assert!(meets("7", ValueType::U64, &7u64.to_le_bytes()));
    assert!(meets("7", ValueType::I64, &7i64.to_le_bytes()));
    assert!(meets("-7", ValueType::I128, &(-7i128).to_le_bytes()));
    assert!(!meets("7.0", ValueType::U64, &7u64.to_le_bytes()));
    assert!(!meets("7", ValueType::F64, &7f64.to_le_bytes()));
    assert!(meets("7.0", ValueType::F64, &7f64.to_le_bytes()));
    assert!(meets("NaN", ValueType::F64, &f64::NAN.to_le_bytes()));
    assert!(meets("true", ValueType::Bool, &[1]));
    assert!(!meets("true", ValueType::Bool, &[0]));
    assert!(meets("7", ValueType::Str, b"7"));
    assert!(meets("alice", ValueType::Str, b"alice"));
    assert!(meets("\"alice\"", ValueType::Str, b"alice"));
    assert!(meets("alice", ValueType::Debug, b"\"alice\""));
    assert!(meets("Some(7)", ValueType::Debug, b"Some(7)"));
    assert!(!meets("alice", ValueType::Str, b"alice "));
    assert!(!meets("<redacted>", ValueType::NotFormatted, &[3]));
}

fn directive_text() -> impl Strategy<Value = String> {
    let value = prop_oneof!["[a-z0-9.-]{1,6}", r#""[a-z,}\]= ]{0,6}""#];
    let field = ("[a-z_]{1,5}", prop::option::of(value)).prop_map(|(name, value)| match value {
        Some(value) => format!("{name}={value}"),
        None => name,
    });
    let brackets = prop_oneof![
        "[a-z ,/]{0,3}[a-z]".prop_map(|name| format!("[{name}]")),
        ("[a-z]{0,3}", prop::collection::vec(field, 1..4))
            .prop_map(|(name, fields)| format!("[{name}{{{}}}]", fields.join(","))),
    ];
    // No word that begins with `z` is nearly a level. Such words alone are refused.
    ("(z[a-z](::[a-z]{2}){0,2})?", prop::option::of(brackets), prop::option::of("[0-5]|info|trace|WARN|off")).prop_map(
        |(target, brackets, level)| {
            let brackets = brackets.unwrap_or_default();
            match level {
                Some(level) if target.is_empty() && brackets.is_empty() => level,
                Some(level) => format!("{target}{brackets}={level}"),
                None => format!("{target}{brackets}"),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_a_filter_prints_parses_to_the_same_filter(directives in prop::collection::vec(directive_text(), 0..8)) {
        let text = directives.join(",");
        let filter = TargetFilter::parse(&text).unwrap();
        prop_assert_eq!(TargetFilter::parse(&filter.to_string()).unwrap(), filter, "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in r#"([\[\]{}=,"a1: ]|info|\PC){0,40}"#) {
        if let Ok(filter) = TargetFilter::parse(&text) {
            prop_assert_eq!(TargetFilter::parse(&filter.to_string()).unwrap(), filter, "{}", text);
        }
    }
}
