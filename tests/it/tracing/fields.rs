//! Field values of every type are read back as they were recorded. Values that were cut or left out are marked.

use crate::fixtures::*;
use eventring::schema::perf::{Cut, FieldValue, NotFormatted, flags};
use eventring::tracing::{Fields, PerfRecorderBuilder};
use std::fmt;
use tracing::field::Empty;

/// Runs `program` twice, because a thread's first event takes another path through the code than its later events.
fn record_with(builder: PerfRecorderBuilder, program: impl Fn()) -> Vec<PerfRecord> {
    let recorder = builder.build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        program();
        reference::ask_the_time_often();
        program();
    });
    records(&recorder)
}

fn recorded(program: impl Fn()) -> Vec<PerfRecord> {
    record_with(small(), program)
}

/// Returns the fields and the flags of the program's only span or event. The program has run twice, and both runs
/// must agree.
fn only_fields(records: &[PerfRecord]) -> (Fields, u16) {
    let mut found = records.iter().filter_map(|record| match &record.content {
        PerfContent::SpanNew { fields, flags, .. } => Some((fields.clone(), *flags)),
        PerfContent::Event { fields, .. } => Some((fields.clone(), 0)),
        _ => None,
    });
    let fields = found.next().unwrap();
    assert_eq!(found.next().as_ref(), Some(&fields));
    assert!(found.next().is_none());
    fields
}

#[derive(Debug)]
struct Inner;

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is full")
    }
}

impl std::error::Error for Inner {}

#[derive(Debug)]
struct Outer(Inner);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot save")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn every_type_of_value_comes_back() {
    let error = Outer(Inner);
    let records = recorded(|| {
        let error = &error as &(dyn std::error::Error + 'static);
        let bytes: &[u8] = &[0, 255, 16];
        let _span = tracing::info_span!(
            "all",
            small = -5i8,
            big = u64::MAX,
            negative = i64::MIN,
            wide = u128::MAX,
            wide_negative = i128::MIN,
            float = 2.5f32,
            double = -0.1,
            yes = true,
            text = "grüße",
            owned = String::from("owned"),
            bytes,
            error,
            debug = ?Some(3),
            display = %Inner,
            none = Empty,
            absent = None::<u64>,
            present = Some(7u8),
        );
    });
    let (fields, flags) = only_fields(&records);
    let expected = [
        ("small", FieldValue::I64(-5)),
        ("big", FieldValue::U64(u64::MAX)),
        ("negative", FieldValue::I64(i64::MIN)),
        ("wide", FieldValue::U128(u128::MAX)),
        ("wide_negative", FieldValue::I128(i128::MIN)),
        ("float", FieldValue::F64(2.5)),
        ("double", FieldValue::F64(-0.1)),
        ("yes", FieldValue::Bool(true)),
        ("text", FieldValue::Str("grüße".into())),
        ("owned", FieldValue::Str("owned".into())),
        ("bytes", FieldValue::Bytes(vec![0, 255, 16])),
        ("error", FieldValue::Error("cannot save: the disk is full".into())),
        ("debug", FieldValue::Debug("Some(3)".into())),
        ("display", FieldValue::Debug("the disk is full".into())),
        ("present", FieldValue::U64(7)),
    ];
    let found: Vec<(&str, FieldValue)> =
        fields.values.iter().map(|field| (&*field.name, field.value.clone())).collect();
    assert_eq!(found, expected);
    assert!(fields.is_complete());
    assert_eq!(flags, 0);
}

#[test]
fn a_long_debug_value_is_cut_between_characters_and_marked() {
    let value = "é".repeat(1000);
    let records = record_with(small().debug_bytes_max(101), || {
        tracing::info!(after = 1u64, %value, before = true);
    });
    let (fields, _) = only_fields(&records);
    assert_eq!(fields.get("value"), Some(&FieldValue::Debug("é".repeat(50))));
    assert_eq!((fields.get("after"), fields.get("before")), (Some(&FieldValue::U64(1)), Some(&FieldValue::Bool(true))));
    let cut = fields.values.iter().find(|field| &*field.name == "value").unwrap();
    assert_eq!(cut.cut, Some(Cut::Limit { original_bytes: None }));
    assert!(!fields.is_complete());
}

#[test]
fn a_message_and_an_error_have_a_limit_of_their_own() {
    let records = record_with(small().debug_bytes_max(4).text_bytes_max(10), || {
        let error = &Outer(Inner) as &(dyn std::error::Error + 'static);
        tracing::info!(error, value = ?"abcdefgh", "0123456789");
    });
    let (fields, _) = only_fields(&records);
    assert_eq!(fields.get("message"), Some(&FieldValue::Debug("0123456789".into())));
    assert_eq!(fields.get("error"), Some(&FieldValue::Error("cannot sav".into())));
    assert_eq!(fields.get("value"), Some(&FieldValue::Debug("\"abc".into())));
    let whole = fields.values.iter().filter(|field| field.cut.is_none());
    assert_eq!(whole.map(|field| &*field.name).collect::<Vec<_>>(), ["message"]);
}

#[test]
fn formatting_can_be_switched_off_and_then_nothing_is_formatted_but_messages() {
    struct Untouchable;
    impl fmt::Debug for Untouchable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("formatted");
        }
    }
    let records = record_with(small().debug_bytes_max(0), || {
        tracing::info!(value = ?Untouchable, typed = 1u64, "message {}", 1);
    });
    let (fields, _) = only_fields(&records);
    assert_eq!(fields.get("value"), Some(&FieldValue::NotFormatted(NotFormatted::SwitchedOff)));
    assert_eq!(fields.get("typed"), Some(&FieldValue::U64(1)));
    assert_eq!(fields.get("message"), Some(&FieldValue::Debug("message 1".into())));
}

#[test]
fn fields_larger_than_the_small_buffer_come_back_whole() {
    for bytes in [900, 1010, 1011, 1012, 1016, 1020, 1024, 2000, 8100] {
        let text = "x".repeat(bytes);
        let records = recorded(|| {
            let _span = tracing::info_span!("big", first = 1u64, text = text, last = ?text.get(..3));
        });
        let (fields, _) = only_fields(&records);
        assert!(fields.is_complete(), "{bytes}: {:?} {:?}", fields.missing, fields.problem);
        assert_eq!(fields.get("text"), Some(&FieldValue::Str(text)), "{bytes}");
        assert_eq!(fields.get("last"), Some(&FieldValue::Debug("Some(\"xxx\")".into())), "{bytes}");
    }
}

#[test]
fn values_that_do_not_fit_are_cut_or_counted_as_missing() {
    let text = "é".repeat(50);
    let records = record_with(small().fields_bytes_max(64), || {
        let _span = tracing::info_span!("tight", number = 1u64, text, other = 2u64, more = "m", flag = true);
    });
    let (fields, flags) = only_fields(&records);
    // The number takes 12 of the 64 bytes. The text takes 8 bytes in addition to its letters. The remaining 44 bytes
    // hold 22 letters `é` of 2 bytes each.
    assert_eq!(fields.get("text"), Some(&FieldValue::Str("é".repeat((64 - 12 - 8) / 2))));
    assert_eq!(fields.values[1].cut, Some(Cut::Limit { original_bytes: Some(100) }));
    assert_eq!((fields.values.len(), fields.missing), (2, 3));
    assert_eq!(flags, flags::TRUNCATED | flags::FIELDS_MISSING);
}

#[test]
fn the_largest_limit_is_that_of_the_large_buffer() {
    let text = "x".repeat(100_000);
    let records = record_with(small().fields_bytes_max(usize::MAX), || tracing::info!(text));
    let (fields, _) = only_fields(&records);
    assert_eq!(fields.get("text"), Some(&FieldValue::Str("x".repeat((1 << 15) - 8))));
    assert_eq!(fields.values[0].cut, Some(Cut::Limit { original_bytes: Some(100_000) }));
}

#[test]
fn late_fields_replace_and_add() {
    let records = recorded(|| {
        let span = tracing::info_span!("late", status = Empty, rows = 1u64);
        span.record("rows", 2u64);
        span.record("status", "ok");
        span.record("rows", 3u64);
    });
    let tree = eventring::tracing::SpanTree::from_records(&records);
    let span = tree.iter().next().unwrap();
    let found: Vec<String> = span.fields.values.iter().map(|field| format!("{}={}", field.name, field.value)).collect();
    assert_eq!(found, ["rows=3", "status=ok"]);
}

#[test]
fn a_debug_implementation_that_fails_is_told_from_one_that_is_cut() {
    struct Failing;
    impl fmt::Debug for Failing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("half")?;
            Err(fmt::Error)
        }
    }
    let records = recorded(|| tracing::info!(value = ?Failing, after = 1u64));
    let (fields, _) = only_fields(&records);
    assert_eq!(fields.get("value"), Some(&FieldValue::Debug("half".into())));
    assert_eq!(fields.values[0].cut, Some(Cut::Failed));
    assert_eq!(fields.get("after"), Some(&FieldValue::U64(1)));
}

#[test]
fn a_value_is_formatted_once_and_once_more_if_the_fields_need_the_large_buffer() {
    struct Counting<'c>(&'c Cell<u32>);
    impl fmt::Debug for Counting<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str("counted")
        }
    }
    for (bytes, expected) in [(1, 1), (2_000, 2)] {
        let text = "x".repeat(bytes);
        let formatted = Cell::new(0);
        recorded(|| {
            formatted.set(0);
            tracing::info!(value = ?Counting(&formatted), text);
            assert_eq!(formatted.take(), expected, "log record with {bytes} bytes");
            // These open spans take more cells of the span slab than the thread keeps free for itself.
            let spans: Vec<_> = (0..300)
                .map(|_| {
                    let span = tracing::info_span!("counting", value = ?Counting(&formatted), text);
                    assert_eq!(formatted.take(), expected, "span with {bytes} bytes");
                    span
                })
                .collect();
            drop(spans);
        });
    }
}
