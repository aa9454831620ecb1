//! Fields that must not be recorded. No part of their values is in the rings, whatever type they have and in
//! whichever way they are recorded.

use crate::fixtures::*;
use eventring::schema::perf::{FieldValue, NotFormatted};
use eventring::tracing::{PerfReader, RecorderLayer, SpanTree};
use eventring_stress::reference;
use std::fmt;
use tracing::field::Empty;
use tracing_subscriber::prelude::*;

/// Value of the redacted fields, which no other field has.
const SECRET: &str = "hunter2-hunter2";
const SECRET_NUMBER: u64 = 0x5ec2_e7b1_7ea5_0001;

/// A value that must not be formatted.
struct Untouchable;

impl fmt::Debug for Untouchable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("formatted");
    }
}

fn work() {
    let error = std::io::Error::other(SECRET);
    let error = &error as &(dyn std::error::Error + 'static);
    let span = info_span!(
        "login",
        user.name = "kim",
        user.password = SECRET,
        token = SECRET_NUMBER,
        http.cookie = ?Untouchable,
        late.token = Empty,
        tokens = 3u64,
    );
    span.record("late.token", format!("{SECRET}{}", "x".repeat(2000)));
    span.in_scope(|| {
        info!(error, Token = true, password = SECRET.as_bytes(), attempt = 2u64, "signed in");
    });
}

fn recorder(place: &Path) -> PerfRecorder {
    spans_in(place)
        .shifts(15, 21)
        .tables_shift(16)
        .redact_fields(["password", "cookie"])
        .redact_fields(["TOKEN", "error"])
        .build()
        .unwrap()
}

#[test]
fn nothing_of_a_redacted_field_is_in_the_rings_and_the_reader_knows_that_it_was_left_out() {
    // The rings describe the call sites of other tests in this process, too.
    alone!();
    let directory = directory();
    for kind in ["subscriber", "layer"] {
        let place = directory.path().join(kind);
        let recorder = recorder(&place);
        let dispatch = match kind {
            "subscriber" => Dispatch::new(RecorderSubscriber::new(recorder.clone())),
            _ => Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()))),
        };
        dispatcher::with_default(&dispatch, work);

        let image = fs::read(&place).unwrap();
        let holds = |bytes: &[u8]| image.windows(bytes.len()).any(|window| window == bytes);
        assert!(!holds(&SECRET.as_bytes()[..8]) && !holds(&SECRET_NUMBER.to_le_bytes()), "{kind}");
        assert!(holds(b"signed in"));

        let records = reference::records(&mut PerfReader::open(&place).unwrap());
        let tree = SpanTree::from_records(&records);
        let span = tree.iter().next().unwrap();
        let redacted = FieldValue::NotFormatted(NotFormatted::Redacted);
        for name in ["user.password", "token", "http.cookie", "late.token"] {
            assert_eq!(span.fields.get(name), Some(&redacted), "{name}");
        }
        assert_eq!(span.fields.get("user.name"), Some(&FieldValue::Str("kim".into())));
        assert_eq!(span.fields.get("tokens"), Some(&FieldValue::U64(3)));
        assert!(span.fields.is_complete());

        let shown = run!("watch", &place, "--from", "oldest", "--count", "8", "--json", "--quiet").json_lines();
        let event = shown.iter().find(|line| line["name"] == "EVENT").unwrap();
        let fields = &event["payload"]["fields"];
        for name in ["error", "Token", "password"] {
            assert_eq!(fields[name], "<redacted>", "{fields}");
        }
        assert_eq!((&fields["attempt"], &fields["message"]), (&2.into(), &"signed in".into()));
    }
}
