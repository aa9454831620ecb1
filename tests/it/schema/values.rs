//! Values are encoded and decoded again, by their Rust types and by schema text alone.

use eventring::schema::exec::{Address, U256};
use eventring::schema::{
    DecodeErrorKind, EventPayload, EventType, MALFORMED, PayloadField, RecordError, SchemaModel, Utf8, Value,
    encode_array,
};
use proptest::prelude::*;

fn to_json(value: &Value<'_>) -> String {
    serde_json::to_string(value).unwrap()
}

#[derive(PayloadField, Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
enum Kind {
    BelowZero = -300,
    Second = 0,
    Third = 7,
}

#[derive(PayloadField, Clone, Copy, Debug, PartialEq)]
struct Celsius(f32);

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Part {
    is_live: bool,
    word: u16,
    kind: Kind,
    count: u8,
}

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Everything {
    byte: u8,
    large: u128,
    short: i16,
    numbers: [u32; 3],
    address: Address,
    double: f64,
    huge: U256,
    part: Part,
    parts: [Part; 2],
    negative: i128,
    temperature: Celsius,
    name: [Utf8; 5],
    long: i64,
    grid: [[u8; 2]; 3],
    #[event(redact)]
    key: [u8; 7],
    count: u32,
    tiny: i8,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 300, name = "SINK")]
#[repr(u16)]
enum Sink {
    #[event(payload = Everything, trailing(integers: i32 * count, live_parts: Part * part.count, note: Utf8))]
    Everything = 2,
    Nothing = 3,
    #[event(trailing(doubles: f64))]
    OnlyArray = 4,
}

fn any_part() -> impl Strategy<Value = Part> {
    let kind = prop_oneof![Just(Kind::BelowZero), Just(Kind::Second), Just(Kind::Third)];
    (any::<bool>(), any::<u16>(), kind, 0..4u8).prop_map(|(is_live, word, kind, count)| Part {
        is_live,
        word,
        kind,
        count,
    })
}

prop_compose! {
    fn any_everything()(
        (byte, large, short, numbers) in any::<(u8, u128, i16, [u32; 3])>(),
        (address, double, huge) in any::<([u8; 20], f64, [u64; 4])>(),
        part in any_part(),
        parts in [any_part(), any_part()],
        (negative, temperature, name, long) in (any::<i128>(), any::<f32>(), "[a-z]{0,5}", any::<i64>()),
        (grid, key, count, tiny) in (any::<[[u8; 2]; 3]>(), any::<[u8; 7]>(), 0..5u32, any::<i8>()),
    ) -> Everything {
        Everything {
            byte, large, short, numbers, address: Address(address), double, huge: U256::from_limbs(huge), part, parts, negative,
            temperature: Celsius(temperature), name: Utf8::padded(&name), long, grid, key, count, tiny,
        }
    }
}

fn model() -> SchemaModel {
    SchemaModel::parse(Sink::schema().text()).unwrap()
}

fn text(utf8: &[Utf8]) -> String {
    let bytes: Vec<u8> = utf8.iter().map(|byte| byte.0).collect();
    String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned()
}

fn part_value(part: &Part) -> Value<'static> {
    let name = match part.kind {
        Kind::BelowZero => "BELOW_ZERO",
        Kind::Second => "SECOND",
        Kind::Third => "THIRD",
    };
    Value::Struct(vec![
        ("is_live", Value::Bool(part.is_live)),
        ("word", Value::Uint(part.word.into())),
        ("kind", Value::Enum { name: Some(name), number: part.kind as i128 }),
        ("count", Value::Uint(part.count.into())),
    ])
}

/// Returns the value that decoding by schema text must give. It is written out by hand here.
fn everything_value<'a>(e: &'a Everything, integers: &[i32], live: &[Part], note: &'a str) -> Value<'a> {
    Value::Struct(vec![
        ("byte", Value::Uint(e.byte.into())),
        ("large", Value::Uint128(e.large)),
        ("short", Value::Int(e.short.into())),
        ("numbers", Value::List(e.numbers.map(|number| Value::Uint(number.into())).to_vec())),
        ("address", Value::Bytes(&e.address.0)),
        ("double", Value::F64(e.double)),
        ("huge", Value::Uint256(e.huge.limbs())),
        ("part", part_value(&e.part)),
        ("parts", Value::List(e.parts.iter().map(part_value).collect())),
        ("negative", Value::Int128(e.negative)),
        ("temperature", Value::F32(e.temperature.0)),
        ("name", Value::Text(text(&e.name).into())),
        ("long", Value::Int(e.long)),
        ("grid", Value::List(e.grid.iter().map(|row| Value::Bytes(row)).collect())),
        ("key", Value::Redacted),
        ("count", Value::Uint(e.count.into())),
        ("tiny", Value::Int(e.tiny.into())),
        ("integers", Value::List(integers.iter().map(|&integer| Value::Int(integer.into())).collect())),
        ("live_parts", Value::List(live.iter().map(part_value).collect())),
        ("note", Value::Text(note.into())),
    ])
}

fn payload(everything: &Everything, integers: &[i32], live: &[Part], note: &str) -> Vec<u8> {
    let fixed = everything.with_bytes(<[u8]>::to_vec);
    [fixed, encode_array(integers), encode_array(live), note.as_bytes().to_vec()].concat()
}

proptest! {
    #[test]
    fn typed_decoding_and_decoding_by_text_give_what_was_encoded(
        everything in any_everything(),
        integers in any::<[i32; 5]>(),
        live in [any_part(), any_part(), any_part()],
        note in "\\PC{0,20}",
    ) {
        let integers = &integers[..everything.count as usize];
        let live = &live[..everything.part.count as usize];
        let payload = payload(&everything, integers, live, &note);

        let view = EverythingView::decode(&payload).unwrap();
        prop_assert_eq!(view.fixed, Everything { key: [0; 7], ..everything });
        prop_assert_eq!(view.integers.to_vec().unwrap(), integers);
        prop_assert_eq!(view.live_parts.to_vec().unwrap(), live);
        prop_assert_eq!(view.note.to_text(), note.as_str());
        prop_assert_eq!(EverythingView::decode(&payload).unwrap(), view);

        let model = model();
        let value = model.decode(2, &payload);
        prop_assert_eq!(&value, &everything_value(&everything, integers, live, &note));
        let json: serde_json::Value = serde_json::to_value(&value).unwrap();
        prop_assert_eq!(json["huge"].as_str().unwrap(), everything.huge.to_string());
        prop_assert_eq!(json["note"].as_str().unwrap(), note);
        prop_assert_eq!(json["part"]["word"].as_u64().unwrap(), u64::from(everything.part.word));
        prop_assert!(json["key"].is_null());
    }

    #[test]
    fn encoding_overwrites_whatever_was_there(everything in any_everything(), dirt: u8) {
        let mut bytes = vec![dirt; Everything::WIRE_BYTES + 3];
        everything.encode_into(&mut bytes);
        prop_assert_eq!(&bytes[..Everything::WIRE_BYTES], everything.with_bytes(<[u8]>::to_vec));
        prop_assert_eq!(&bytes[Everything::WIRE_BYTES..], [dirt; 3]);
    }

    #[test]
    fn a_payload_that_is_cut_or_longer_is_an_error_with_the_rest(
        everything in any_everything(),
        integers in any::<[i32; 5]>(),
        cut: prop::sample::Index,
    ) {
        let payload = payload(&everything, &integers[..everything.count as usize], &[], "");
        prop_assume!(everything.part.count == 0);
        let cut = &payload[..cut.index(payload.len())];
        let model = model();
        let value = model.decode(2, cut);
        let Some(Value::Malformed { rest, .. }) = value.get(MALFORMED) else { panic!("{value}") };
        prop_assert!(cut.ends_with(rest));
        let fixed_is_there = cut.len() >= Everything::WIRE_BYTES;
        prop_assert_eq!(value.get("tiny").is_some(), fixed_is_there);
        prop_assert_eq!(Everything::decode(cut).is_ok(), fixed_is_there);
    }

    #[test]
    fn any_bytes_at_all_decode_to_something(code: u16, payload in prop::collection::vec(any::<u8>(), 0..600)) {
        let model = model();
        for code in [code, code % 6] {
            let value = model.decode(code, &payload);
            serde_json::to_string(&value).unwrap();
            prop_assert!(!value.to_string().contains('\n'));
        }
        let _ = Everything::decode(&payload);
    }
}

#[test]
fn every_byte_that_belongs_to_no_field_is_zero() {
    let ones = Everything {
        byte: !0,
        large: !0,
        short: !0,
        numbers: [!0; 3],
        address: Address([!0; 20]),
        double: f64::from_bits(!0),
        huge: U256::MAX,
        part: PART,
        parts: [PART; 2],
        negative: !0,
        temperature: Celsius(f32::from_bits(!0)),
        name: [Utf8(!0); 5],
        long: !0,
        grid: [[!0; 2]; 3],
        key: [!0; 7],
        count: !0,
        tiny: !0,
    };
    const PART: Part = Part { is_live: true, word: !0, kind: Kind::BelowZero, count: !0 };
    // The expected bytes, in this order: byte, padding to 16, large, short, padding to 4, numbers, address, padding
    // to 8, double, huge, part (1 + pad 1 + 2 + 2 + 1 + pad 1), parts, padding to 16, negative, temperature, name,
    // padding to 8, long, grid, key (redacted), padding to 4, count, tiny, padding to 16.
    let mut expected = Vec::new();
    let mut put = |bytes: &[u8], times: usize| (0..times).for_each(|_| expected.extend_from_slice(bytes));
    let part = [1, 0, 255, 255, 0xd4, 0xfe, 255, 0];
    put(&[255], 1);
    put(&[0], 15);
    put(&[255], 16 + 2);
    put(&[0], 2);
    put(&[255], 12 + 20);
    put(&[0], 4);
    put(&[255], 8 + 32);
    put(&part, 3);
    put(&[0], 8);
    put(&[255], 16 + 4 + 5);
    put(&[0], 7);
    put(&[255], 8 + 6);
    put(&[0], 7 + 3);
    put(&[255], 4 + 1);
    put(&[0], 3);
    assert_eq!(ones.with_bytes(<[u8]>::to_vec), expected);
}

#[test]
fn a_bool_or_enum_that_is_none_names_its_field() {
    let part = Part { is_live: true, word: 1, kind: Kind::Third, count: 0 };
    let good = part.with_bytes(<[u8]>::to_vec);
    let mut bad_bool = good.clone();
    bad_bool[0] = 2;
    let error = Part::decode(&bad_bool).unwrap_err();
    assert_eq!((error.kind(), error.owner(), error.field()), (DecodeErrorKind::InvalidBool, "Part", "is_live"));
    let mut bad_enum = good.clone();
    bad_enum[4] = 8;
    let error = Part::decode(&bad_enum).unwrap_err();
    assert_eq!((error.kind(), error.owner(), error.field()), (DecodeErrorKind::InvalidEnum, "Kind", "kind"));
    assert_eq!(
        error.to_string(),
        "8 is not a value of the enum Kind (field `kind`); was it written with another schema?"
    );
    let too_long = [&good[..], &[0]].concat();
    assert_eq!(Part::decode_exact(&too_long).unwrap_err().kind(), DecodeErrorKind::LeftOver);
    assert_eq!(Part::decode(&good[1..]).unwrap_err().kind(), DecodeErrorKind::TooShort);
}

#[test]
fn dirt_in_padding_does_not_matter() {
    let part = Part { is_live: true, word: 1, kind: Kind::Third, count: 0 };
    let mut bytes = part.with_bytes(<[u8]>::to_vec);
    bytes[1] = 77;
    bytes[7] = 77;
    assert_eq!(Part::decode_exact(&bytes).unwrap(), part);
}

#[test]
fn events_without_payload_have_no_bytes() {
    let model = model();
    assert_eq!(model.decode(3, &[]), Value::Struct(vec![]));
    assert_eq!(model.decode(3, &[1, 2]).to_string(), "$malformed=<2 bytes left over: 0x0102>");
    assert_eq!(model.decode(99, &[1, 2]).to_string(), "<event type 99 is not in schema SINK: 0x0102>");
    ().with_bytes(|bytes| assert!(bytes.is_empty()));
}

#[test]
fn a_payload_that_is_too_short_says_in_a_sentence_what_is_missing() {
    let model = model();
    let fixed = Everything::WIRE_BYTES;
    let mut bytes = vec![0; fixed];
    let count = Everything::FIELDS.iter().find(|field| field.name == "count").unwrap().offset;
    let mut problem = |count_value: u8, payload_bytes: usize| {
        bytes[count] = count_value;
        bytes.resize(payload_bytes, 0);
        let value = model.decode(2, &bytes);
        let Some(Value::Malformed { problem, .. }) = value.get(MALFORMED) else { panic!("{value}") };
        problem.clone()
    };
    assert_eq!(problem(2, fixed + 1), "1 byte left, array `integers` of 2 elements needs 8 bytes");
    assert_eq!(problem(1, fixed + 2), "2 bytes left, array `integers` of 1 element needs 4 bytes");
    assert_eq!(problem(0, 1), format!("1 byte, event EVERYTHING has at least {fixed} bytes"));
}

#[test]
fn an_error_event_decodes_in_every_schema() {
    let model = model();
    let error = RecordError {
        error_type: 2,
        dropped_event_type: 3,
        truncated_payload_size: 2,
        requested_payload_size: 1 << 33,
    };
    let payload = [error.with_bytes(<[u8]>::to_vec), vec![0xab, 0xcd]].concat();
    assert_eq!(
        model.decode(1, &payload).to_string(),
        "error_type=OVERFLOW_EXPIRE dropped_event_type=NOTHING truncated_payload_size=2 requested_payload_size=8589934592 truncated_payload=0xabcd"
    );
    // A RECORD_ERROR has no payload if the writer found no payload memory for it.
    assert_eq!(model.decode(1, &[]), Value::Struct(vec![]));
}

#[test]
fn an_array_that_takes_the_rest_leaves_what_is_no_whole_element() {
    let model = model();
    let bytes = encode_array(&[1.5f64, f64::NAN, f64::INFINITY]);
    assert_eq!(to_json(&model.decode(4, &bytes)), r#"{"doubles":[1.5,null,null]}"#);
    assert_eq!(model.decode(4, &bytes[..17]).to_string(), "doubles=[1.5, NaN] $malformed=<1 byte left over: 0x00>");
}

#[test]
fn people_see_short_values_and_programs_see_everything() {
    let model = SchemaModel::parse(
        "schema-text 1\ncontent 300 LONG 1\nevent 2 LONG\ntrailing data u8 *\nevent 3 MANY\ntrailing numbers u16 *\nevent 4 TEXT\ntrailing text utf8 *\n",
    )
    .unwrap();
    let bytes = [0xab; 40];
    assert_eq!(model.decode(2, &bytes[..32]).to_string(), format!("data=0x{}", "ab".repeat(32)));
    assert_eq!(model.decode(2, &bytes).to_string(), format!("data=0x{}…(40 bytes)", "ab".repeat(16)));
    assert_eq!(format!("{:#}", model.decode(2, &bytes)), format!("data=0x{}", "ab".repeat(40)));
    assert_eq!(to_json(&model.decode(2, &bytes)), format!(r#"{{"data":"0x{}"}}"#, "ab".repeat(40)));

    let numbers: Vec<u16> = (0..10).collect();
    let bytes = encode_array(&numbers);
    assert_eq!(model.decode(3, &bytes).to_string(), "numbers=[0, 1, 2, 3, 4, 5, 6, 7, … 2 more]");
    assert_eq!(format!("{:#}", model.decode(3, &bytes)), "numbers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");

    let hostile = b"a\x1b[2J\"\\\n\xff";
    assert_eq!(model.decode(4, hostile).to_string(), r#"text="a\u{1b}[2J\"\\\n�""#);
    assert_eq!(to_json(&model.decode(4, hostile)), r#"{"text":"a\u001b[2J\"\\\n�"}"#);
}

#[test]
fn a_payload_of_millions_of_values_is_not_taken_apart_into_all_of_them() {
    let model =
        SchemaModel::parse("schema-text 1\ncontent 300 BOOLS 1\nevent 2 BOOLS\ntrailing bools bool *\n").unwrap();
    let payload = vec![1; 3 << 20];
    let value = model.decode(2, &payload);
    let Some(Value::List(bools)) = value.get("bools") else { panic!() };
    assert_eq!(bools.len(), (1 << 20) + 1);
    let Some(Value::Malformed { rest, .. }) = bools.last() else { panic!() };
    assert_eq!(rest.len(), 2 << 20);
}
