//! Readers trust nothing in the schema text of a ring file. Parsing a text gives a schema or an error. Decoding a
//! payload with this schema gives a value.

use crate::fixtures::*;
use eventring::internal::MAX_TEXT_BYTES;
use eventring::schema::{EventType, SchemaModel, SchemaTextErrorKind as Kind};
use proptest::prelude::*;

/// Makes a text whose first two lines are right.
fn text(lines: &str) -> String {
    format!("schema-text 1\ncontent 300 X 1\n{lines}")
}

fn refused(lines: &str) -> (Kind, usize) {
    let error = SchemaModel::parse(&text(lines)).expect_err(lines);
    assert!(error.to_string().starts_with("schema text, line "), "{error}");
    (error.kind(), error.line())
}

#[test]
fn what_does_not_begin_as_schema_text_is_none() {
    for text in [
        "",
        "\n",
        "schema-text 2\n",
        "schema-text 1 \n",
        "SCHEMA-TEXT 1\n",
        "# schema-text 1\n",
        "\u{feff}schema-text 1\n",
    ] {
        assert_eq!(SchemaModel::parse(text).unwrap_err().kind(), Kind::NotSchemaText, "{text:?}");
    }
    assert_eq!(SchemaModel::parse("schema-text 1\n").unwrap_err().kind(), Kind::Syntax);
    assert_eq!(SchemaModel::parse(&text("")).unwrap().name(), "X");
    assert_eq!(SchemaModel::parse(text("").trim_end()).unwrap().name(), "X");
}

#[test]
fn lines_outside_the_grammar_are_refused() {
    for line in [
        "\n",
        " ",
        "struct",
        "struct S",
        "struct S 8 8",
        "struct  S 8",
        "struct S 8 ",
        " struct S 8",
        "struct S 8\r",
        "struct s 8",
        "struct _S 8",
        "struct S\u{301} 8",
        "struct S 08",
        "struct S +8",
        "struct S -8",
        "struct S 0x8",
        "struct S 18446744073709551616",
        "Struct S 8",
        "enum E",
        "event 2",
        "event 65536 E",
        "event -1 E",
        "event 2 E\tX",
        "event 2 2E",
        "hash abc",
        "hash 8933F907C432C98AC0C8DB62F9AA164C0C3F1672F41290E4EA3408DF6C6723F3",
    ] {
        assert_eq!(refused(line), (Kind::Syntax, 3), "{line:?}");
    }
    assert_eq!(refused("# comment\nstruct S 8\nfield a u8 0 1 secret"), (Kind::Syntax, 5));
    assert_eq!(refused("struct S 8\nfield a u8[1] 0 1"), (Kind::Syntax, 4));
    assert_eq!(refused("struct S 8\nfield a u16[1]] 0 2"), (Kind::Syntax, 4));
    assert_eq!(refused("struct S 8\nfield a u16[1 0 2"), (Kind::Syntax, 4));
    assert_eq!(refused("struct S 8\nfield a u16[] 0 2"), (Kind::Syntax, 4));
    assert_eq!(refused("struct S 8\nfield a bytes 0 2"), (Kind::Syntax, 4));
    assert_eq!(refused("struct S 8\nfield a bytes02 0 2"), (Kind::Syntax, 4));
}

#[test]
fn lines_that_contradict_others_are_refused() {
    for (lines, line) in [
        ("content 301 Y 1", 3),
        ("enum E u128", 3),
        ("enum E E", 3),
        ("value 1 ONE", 3),
        ("field a u8 0 1", 3),
        ("trailing a u8 *", 3),
        ("struct S 8\nvalue 1 ONE", 4),
        ("struct S 8\nfield a S 0 8", 4),
        ("struct S 8\nfield a T 0 8\nstruct T 8", 4),
        ("struct S 8\nfield a bool[2][2] 0 5", 4),
        ("struct S 8\nfield a u8 0 2", 4),
        ("struct S 8\nfield a u64 1 8", 4),
        ("struct S 8\nfield a u8 8 1", 4),
        ("struct S 8\nfield a u8 18446744073709551615 1", 4),
        ("struct S 8\nfield a u32 0 4\nfield b u32 3 4", 5),
        ("struct S 8\nfield a u32 4 4\nfield b u32 0 4", 5),
        ("struct S 8\nfield a u32 0 4\nfield a u32 4 4", 5),
        ("struct S 8\nstruct S 8", 4),
        ("enum S u8\nstruct S 8", 4),
        ("enum E u8\nvalue 1 A\nvalue 1 B\nevent 2 X", 6),
        ("event 0 NONE", 3),
        ("event 1 OTHER", 3),
        ("event 2 RECORD_ERROR", 3),
        ("event 3 A\nevent 2 B", 4),
        ("event 3 A\nevent 3 B", 4),
        ("event 3 A\nevent 4 A", 4),
        ("event 3 A S", 3),
        ("event 3 A u64", 3),
        ("enum E u8\nevent 3 A E", 4),
        ("event 3 A\nhash 8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3", 4),
        ("event 3 A\ntrailing a u8 *\ntrailing b u8 *", 5),
        ("event 3 A\ntrailing a bytes0 *", 4),
        ("event 3 A\ntrailing a u8 count", 4),
        ("struct S 8\nfield a u64 0 8\nevent 3 A S\ntrailing b u8 c", 6),
        ("struct S 8\nfield a u64 0 8\nevent 3 A S\ntrailing b u8 a.b", 6),
        ("struct S 8\nfield a u64 0 8\nevent 3 A S\ntrailing b u8 .a", 6),
        ("struct S 8\nfield a u64 0 8\nevent 3 A S\ntrailing a u8 a", 6),
        ("struct S 8\nfield a i64 0 8\nevent 3 A S\ntrailing b u8 a", 6),
        ("struct S 8\nfield a u64 0 8 redacted\nevent 3 A S\ntrailing b u8 a", 6),
        ("struct S 8\nfield a u64 0 8\nstruct T 8\nfield s S 0 8\nevent 3 A T\ntrailing b u8 s", 8),
        ("struct S 8\nfield a u64 0 8\nevent 3 A S\ntrailing b u8 a\ntrailing b u8 a", 7),
    ] {
        assert_eq!(refused(lines), (Kind::Inconsistent, line), "{lines}");
    }
}

#[test]
fn what_exceeds_a_limit_is_refused() {
    let nested: String = (1..40).map(|i| format!("struct S{i} 1\nfield a S{} 0 1\n", i - 1)).collect();
    let many_fields: String = (0..5000).map(|i| format!("field f{i} u8 {i} 1\n")).collect();
    let many_arrays: String = (0..5000).map(|i| format!("trailing f{i} u8 count\n")).collect();
    for lines in [
        "struct S 16777217".to_owned(),
        "struct S 8\nfield a u16[16777216] 0 2".to_owned(),
        "struct S 8\nfield a u64[18446744073709551615] 0 2".to_owned(),
        "struct S 0\nfield a bytes0[16777217] 0 0".to_owned(),
        "event 2 A\ntrailing a bytes16777217 *".to_owned(),
        format!("event 2 A\ntrailing a u16{} *", "[1]".repeat(40)),
        format!("event 2 {}", "A".repeat(257)),
        format!("struct S0 1\nfield a u8 0 1\n{nested}struct T 1\nfield a S39[1] 0 1"),
        format!("struct S 5000\n{many_fields}"),
        format!("struct S 8\nfield count u64 0 8\nevent 2 A S\n{many_arrays}"),
    ] {
        assert_eq!(refused(&lines).0, Kind::TooLarge, "{}", &lines[..lines.len().min(80)]);
    }
    let long = text(&format!("# {}\n", "x".repeat(MAX_TEXT_BYTES)));
    let error = SchemaModel::parse(&long).unwrap_err();
    assert_eq!((error.kind(), error.line()), (Kind::TooLarge, 0));
}

#[test]
fn types_that_multiply_are_decoded_up_to_a_limit() {
    // Each struct holds the struct before it a thousand times, and has a size of 0 bytes. So a value without any
    // bytes would have 1000^8 parts.
    let structs: String = (1..9).map(|i| format!("struct S{i} 0\nfield a S{}[1000] 0 0\n", i - 1)).collect();
    let model = SchemaModel::parse(&text(&format!("struct S0 0\n{structs}event 2 BOMB S8\n"))).unwrap();
    let value = model.decode(2, &[]);
    assert!(value.has_malformed());
    assert!(format!("{value:#}").len() < 64 << 20);

    // The payload's field `count` claims 2^64 - 1 elements of 0 bytes each. They would fit any payload, but the
    // decoder must refuse so many.
    let lines = "struct E 0\nstruct S 8\nfield count u64 0 8\nevent 2 BOMB S\ntrailing a E count\n";
    let model = SchemaModel::parse(&text(lines)).unwrap();
    assert!(model.decode(2, &[0xff; 8]).has_malformed());
}

proptest! {
    #[test]
    fn any_text_is_a_schema_or_an_error(text in "\\PC{0,300}") {
        let _ = SchemaModel::parse(&text);
    }

    /// Damages a real schema text: swaps lines, removes lines, or replaces words by other words of the text or by
    /// extreme numbers. Then parses the text, and decodes a payload with it.
    #[test]
    fn a_damaged_schema_text_is_a_schema_or_an_error(
        changes in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index, u8)>(), 1..6),
        payload in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        const EXTREMES: [&str; 8] = ["0", "1", "255", "65535", "4294967295", "18446744073709551615", "u64[1000]", "*"];
        const WORDS: &str = "#ext 0 block seqno\n#ext 1 txn index\n#ext 2 account\n#ext 3 span\n";
        let canonical = format!("{}{}", ExecEvent::schema().canonical_text(), WORDS.repeat(50));
        let mut lines: Vec<Vec<&str>> = canonical.lines().map(|line| line.split(' ').collect()).collect();
        for (place, source, how) in changes {
            let line = place.index(lines.len());
            let other = source.index(lines.len());
            match how % 4 {
                0 => lines.swap(line, other),
                1 => { lines.remove(line); }
                2 => {
                    let word = source.index(lines[line].len());
                    lines[line][word] = EXTREMES[usize::from(how / 4) % EXTREMES.len()];
                }
                _ => {
                    let word = source.index(lines[line].len());
                    lines[line][word] = lines[other].last().unwrap();
                }
            }
        }
        let text: String = lines.iter().map(|words| words.join(" ") + "\n").collect();
        if let Ok(model) = SchemaModel::parse(&text) {
            let words = model.ext_words();
            prop_assert!(words.iter().all(|(index, word)| words.index_of(word.name()) == Some(index)));
            for event in model.events() {
                let value = model.decode(event.code(), &payload);
                let _ = (value.to_string(), format!("{value:#}"));
            }
        }
    }
}

#[test]
fn long_names_in_nested_structs_do_not_multiply_a_payload() {
    let name = "a".repeat(256);
    let mut text = format!("schema-text 1\ncontent 300 SHOP 1\nstruct S0 1\nfield {name} u8 0 1\n");
    for depth in 1..=20 {
        let (bytes, inner) = (1 << depth, depth - 1);
        text += &format!(
            "struct S{depth} {bytes}\nfield {name} S{inner} 0 {0}\nfield b{1} S{inner} {0} {0}\n",
            bytes / 2,
            &name[1..]
        );
    }
    text += "event 2 NESTED S20\n";
    let model = SchemaModel::parse(&text).unwrap();
    let text = format!("{:#}", model.decode(2, &vec![0; 1 << 20]));
    assert!(text.len() < 64 << 20, "{} bytes", text.len());
    assert!(text.contains("too many values to show"));
}
