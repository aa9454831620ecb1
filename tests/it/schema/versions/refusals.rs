//! What is not compatible, and what the errors say.

use super::*;
use eventring::reader::ReaderErrorKind;

#[test]
fn each_difference_that_is_not_compatible_is_named_with_what_to_do() {
    for (changes, expected) in [
        (&[("content 300 SHOP 1", "content 300 SHOP 2")][..], "the schema has version 2 in the ring and 1 here"),
        (
            &[("content 300 SHOP 1", "content 300 STORE 1")],
            "the ring has STORE events (content type 300), expected SHOP",
        ),
        (
            &[("event 3 CLOSED", "event 4 CLOSED")],
            "DAY_ENDED has code 4 in the ring and 3 here: an event keeps its code",
        ),
        (&[("event 3 CLOSED", "event 3 OPENED")], "code 3 is OPENED in the ring and DAY_ENDED here"),
        (
            &[("event 3 CLOSED", "event 3 OPENED")],
            "say #[event(alias = \"OPENED\")]; otherwise give DAY_ENDED a code of its own",
        ),
        (&[("field id u64 8 8", "field id i64 8 8")], "ORDER_PLACED.id is i64 in the ring and u64 here"),
        (&[("field id u64 8 8", "field id bytes8 8 8")], "ORDER_PLACED.id is bytes8 in the ring and u64 here"),
        (&[("field id u64 8 8", "field order u64 8 8")], "ORDER_PLACED.id is not in the ring: say #[event(default)]"),
        (&[("field id u64 8 8", "field id u64 8 8 redacted")], "ORDER_PLACED.id is redacted in the ring"),
        (&[("field weight u16 0 2", "field height u16 0 2")], "ORDER_PLACED.part.weight is not in the ring"),
        (&[("value 1 CARD", "value 1 CASH")], "ORDER_PLACED.payment: 1 is CASH in the ring and CARD here"),
        (&[("value 1 CARD", "value 3 CARD")], "ORDER_PLACED.payment: CARD is 3 in the ring and 1 here"),
        (
            &[("enum Payment u8", "enum Payment u16"), ("Payment 4 1", "Payment 4 2")],
            "ORDER_PLACED.payment is an enum of u16 in the ring and an enum of u8 here",
        ),
        (&[("field payment Payment 4 1", "field payment u8 4 1")], "ORDER_PLACED.payment is u8 in the ring"),
        (&[("trailing items Part *\n", "")], "ORDER_PLACED.parts is not in the ring"),
        (
            &[("trailing items Part *", "trailing items u16 *")],
            "ORDER_PLACED.parts is u16 in the ring and a struct here",
        ),
        (
            &[("field cost u32 0 4", "field cost u32 0 4\nstruct Empty 0"), ("items Part *", "items Empty cost")],
            "ORDER_PLACED.parts has elements of 0 bytes in the ring",
        ),
        (
            &[("trailing items Part *", "trailing note utf8 *")],
            "ORDER_PLACED.note is counted by note_bytes here, and in another way in the ring",
        ),
        (
            &[
                ("bytes4 16 4 redacted", "bytes4 16 4\nfield note_bytes u16 20 2\nfield count u16 22 2"),
                ("trailing items", "trailing note utf8 count\ntrailing items"),
            ],
            "ORDER_PLACED.note is counted by note_bytes here, and in another way in the ring",
        ),
        (
            &[("bytes4 16 4 redacted", "bytes4 16 4 redacted\nfield note_bytes u16 20 2")],
            "ORDER_PLACED.note is not in the ring, and its count note_bytes is",
        ),
    ] {
        // A struct of 0 bytes must stand before the struct that is changed.
        let text = changed(changes).replace("field cost u32 0 4\nstruct Empty 0", "field cost u32 0 4");
        let text = match text.contains("Empty") {
            true => text.replace("struct Part", "struct Empty 0\nstruct Part"),
            false => text,
        };
        let refusal = refusal(&text);
        assert!(refusal.contains(expected), "{refusal}\n{text}");
    }
}

#[test]
fn an_error_has_all_differences_and_says_first_what_is_not_compatible() {
    let text = changed(&[("field id u64 8 8", "field order i64 8 8"), ("value 2 BILL", "value 2 BILL\nvalue 9 CASH")]);
    let error = open(&ring(&text), &compatible()).unwrap_err();
    assert!(matches!(error.kind(), ReaderErrorKind::WrongSchema { .. }));
    insta::assert_snapshot!("refusal", hashless(&error.to_string()));
    let lines = error.differences().iter().map(|found| match found.is_compatible() {
        true => format!("compatible: {found}\n"),
        false => format!("not compatible: {found}\n"),
    });
    insta::assert_snapshot!("differences", lines.collect::<String>());
}

#[test]
fn without_the_option_the_error_says_what_differs_and_names_the_option() {
    let exact = Reader::options().expect_events::<Shop>();
    let error = open(&ring(OLDEST), &exact).unwrap_err();
    insta::assert_snapshot!("exact_refusal", hashless(&error.to_string()));
    assert!(error.differences().iter().all(|found| found.is_compatible()));

    let later = Reader::options().open_fd(ring(OLDEST).as_fd()).unwrap().check_events::<Shop>().unwrap_err();
    assert_eq!(later.differences(), error.differences());

    let text = changed(&[("field id u64 8 8", "field id i64 8 8")]);
    let error = open(&ring(&text), &exact).unwrap_err().to_string();
    assert!(error.contains("u64 here") && !error.contains("compatible::<"), "{error}");

    // Only a name that no event depends on differs.
    let text = Shop::schema().canonical_text().replace("Order ", "Bestellung ").replace("Order\n", "Bestellung\n");
    let error = open(&ring(&text), &exact).unwrap_err();
    assert!(error.to_string().contains("only the order of fields, or names of types and domains, differ"), "{error}");
    assert_eq!(error.differences(), []);
    open(&ring(&text), &compatible()).unwrap();
}

#[test]
fn a_ring_without_a_usable_schema_text_is_refused_and_the_error_says_so() {
    for text in ["", "schema-text 2\n"] {
        let refusal = refusal(text);
        assert!(refusal.contains("what differs cannot be told (schema text"), "{refusal}");
    }
}

#[test]
fn a_text_with_very_many_differences_is_refused_in_a_short_message() {
    let events: String = (10..20_000).map(|code| format!("event {code} E{code}\n")).collect();
    let values: String = (10..255).map(|number| format!("value {number} V{number}\n")).collect();
    let text = changed(&[("field id u64", "field order u64"), ("value 2 BILL\n", &format!("value 2 BILL\n{values}"))]);
    let error = open(&ring(&format!("{text}{events}")), &compatible()).unwrap_err();
    assert!(error.to_string().len() < 1000, "{error}");
    assert_eq!(error.differences().len(), 101);
}

/// Replaces the hashes of the schemas.
fn hashless(error: &str) -> String {
    let words = error.split(' ').map(|word| match word.trim_end_matches([',', ':']).len() {
        64 => word.replace(|c: char| c.is_ascii_hexdigit(), "").replace([',', ':'], "HASH"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
