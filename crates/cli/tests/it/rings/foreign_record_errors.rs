//! Events of type 1 in a ring with an unknown schema. If the payload is a well-formed RECORD_ERROR, it is shown as
//! one. Any other payload is shown as bytes, because the unknown schema may use type 1 for something else.

use crate::fixtures::*;

#[test]
fn event_1_of_an_unknown_schema_is_a_record_error_only_if_it_is_that_as_a_whole() {
    let (directory, [path]) = places(["ring"]);
    let builder = Recorder::builder(ContentDescription::new(300, "X")).config(&path).prefault(false).keep(true);
    let recorder = builder.build().unwrap();
    let error = |kind: u16, rest: u32| {
        let words = [&kind.to_le_bytes()[..], &[7, 0], &rest.to_le_bytes(), &9u64.to_le_bytes(), b"abc"];
        words.concat()
    };
    let payloads = [error(1, 3), b"a text, and not even a short one".to_vec(), error(1, 2), error(0, 3), b"x".to_vec()];
    payloads.iter().for_each(|payload| assert_ne!(recorder.record(1, [0; 4], payload), 0));
    drop(recorder);
    let whole = json!({
        "error_type": "OVERFLOW_4GB", "dropped_event_type": 7, "truncated_payload_size": 3, "requested_payload_size": 9,
        "truncated_payload": "0x616263",
    });
    let hex = |bytes: &[u8]| Value::from(bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")));
    let expected: Vec<Value> = [whole].into_iter().chain(payloads[1..].iter().map(|bytes| hex(bytes))).collect();

    let shown = |lines: Vec<Value>| -> Vec<Value> { lines.iter().map(|line| line["payload"].clone()).collect() };
    let lines = run!("watch", &path, "--json").json_lines();
    // The schema is not known, so nobody knows what its type 1 is called.
    assert!(lines.iter().all(|line| line["name"].is_null()), "{lines:?}");
    assert_eq!(shown(lines), expected);
    assert!(!run(&["info", argument(&path)]).out.contains("RECORD_ERROR"));
    let lines = exported(&path);
    assert_eq!(shown(lines.into_iter().filter(|line| line["type"] == "typed_event").collect()), expected);
    let chrome = place(&directory, "trace.json");
    run!("export", &path, "--format", "chrome", "-o", &chrome).ends(0);
    let trace: Value = serde_json::from_slice(&fs::read(chrome).unwrap()).unwrap();
    let args: Vec<&Value> =
        trace["traceEvents"].list().iter().filter(|event| event["ph"] == "i").map(|it| &it["args"]).collect();
    assert_eq!((&args[0]["dropped_event_type"], args[0].get("payload")), (&json!("7"), None));
    assert!(args[1..].iter().all(|args| args["payload"].is_string() && args.get("error_type").is_none()), "{args:?}");
}
