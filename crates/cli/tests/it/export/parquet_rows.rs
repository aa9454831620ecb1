//! DuckDB, pyarrow and polars find in the Parquet files what the JSON lines of the same capture say, row for row.

use crate::consumers;
use crate::every_kind;
use crate::fixtures::*;

/// Exports a capture as lines and as Parquet files, and has the readers compare them. Returns what they have found, or
/// `None` if they are missing.
fn compared(capture: &str, dir: &Path) -> Option<Value> {
    let (files, lines) = (dir.join("files"), dir.join("lines"));
    let [files, lines] = [&files, &lines].map(|path| path.to_str().unwrap());
    let counts = run!("export", capture, "--format", "parquet", "-o", files, "--force", "--json").json();
    let of_lines = run!("export", capture, "--format", "jsonl", "-o", lines, "--force", "--json").json();
    for name in ["spans", "open_spans", "lost_ends", "events", "typed_events", "counters", "markers", "lost"] {
        assert_eq!(counts[name], of_lines[name], "{name}");
    }
    consumers::read_files("parquet_rows.py", &[Path::new(files), Path::new(lines)])
}

#[test]
fn every_type_of_field_and_payload_is_in_its_column() {
    let dir = tempfile::tempdir().unwrap();
    let Some(found) = compared(&every_kind::capture_everything(dir.path()), dir.path()) else { return };
    let expected = json!({
        "counters": 4, "markers": 2, "events-EVERYTHING": 8, "events-NOTHING": 16, "events-ONLY_ARRAY": 8,
        "events-PART": 24, "events-event_77": 8, "logs": 4, "losses": 0, "rings": 3, "spans": 4,
    });
    assert_eq!((&found["differences"], &found["rows"]), (&json!([]), &expected));
    // The control: the comparison finds values that differ, and a name.
    let [files, lines] = ["files", "lines"].map(|name| dir.path().join(name));
    let mut text = fs::read_to_string(&lines).unwrap();
    for (from, to) in [
        ("\"short\":-300", "\"short\":-301"),
        ("\"parent\":null", "\"parent\":7"),
        ("\"float\":0.25", "\"floats\":0.25"),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    fs::write(&lines, text).unwrap();
    let found = consumers::read_files("parquet_rows.py", &[&files, &lines]).unwrap()["differences"].to_string();
    for differs in ["-301", "parent", "floats"] {
        assert!(found.contains(differs), "{differs}: {found}");
    }
}

#[test]
fn losses_are_rows_and_events_without_their_payload_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let Some(found) = compared(&every_kind::ring_with_losses(dir.path()), dir.path()) else { return };
    assert_eq!(found["differences"], json!([]));
    assert!(found["rows"]["losses"].number() > 0, "{found}");
}

/// Captures 32,000 spans and as many log records. Each quarter has a thread, a call site and a field of its own, so the
/// row groups differ in all their dictionaries. A span stays open through the quarters.
fn capture_many(dir: &Path) -> String {
    let [ring, capture] = ["many", "many.evc"].map(|name| dir.join(name).to_str().unwrap().to_owned());
    let recorder = spans_in(&ring).shifts(19, 26).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let whole = dispatcher::with_default(&dispatch, || info_span!("whole", of = "all quarters"));
    whole.in_scope(|| ());
    macro_rules! quarter {
        ($name:literal, $field:ident) => {
            let record = || {
                for number in 0..8_000_u32 {
                    let text = format!("{number} {}", "of many ".repeat(12));
                    info_span!(parent: &whole, $name, number, text, $field = number % 7)
                        .in_scope(|| info!(number = i64::from(number) - 7_000, "{}", "a record ".repeat(9)));
                }
            };
            thread::scope(|scope| {
                let on_thread = || dispatcher::with_default(&dispatch, record);
                thread::Builder::new().name($name.to_owned()).spawn_scoped(scope, on_thread).unwrap();
            });
        };
    }
    quarter!("first", spring);
    quarter!("second", summer);
    quarter!("third", autumn);
    quarter!("fourth", winter);
    run!("capture", &ring, "-o", &capture, "--now", "--json").json();
    capture
}

#[test]
fn each_of_many_row_groups_has_its_rows_in_order_and_true_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let Some(found) = compared(&capture_many(dir.path()), dir.path()) else { return };
    assert_eq!(found["differences"], json!([]));
    assert_eq!((&found["rows"]["spans"], &found["rows"]["logs"]), (&json!(32_001), &json!(32_000)));
    for name in ["spans", "logs"] {
        // More would make a file large, and fewer would make a query for a short time slow.
        let row_groups = found["row_groups"][name].number();
        assert!((2..=6).contains(&row_groups), "{name}: {row_groups}");
    }
}

#[test]
fn rings_of_a_filtered_capture_name_their_host_and_filter() {
    let dir = tempfile::tempdir().unwrap();
    every_kind::capture_everything(dir.path());
    let [ring, file] = ["shop", "sampled.evc"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    run!("capture", &ring, "-o", &file, "--sample", "1/4", "--json").json();
    let Some(found) = compared(&file, dir.path()) else { return };
    assert_eq!(found["differences"], json!([]));
    let lines = fs::read_to_string(dir.path().join("lines")).unwrap();
    assert!(lines.contains(r#""host":""#) && lines.contains(r#""sampled_per_million":250000"#));
}

#[test]
fn a_real_block_has_the_same_rows_as_lines() {
    let dir = tempfile::tempdir().unwrap();
    let snapshots = [Some(program::KEPT.into()), real_data::path("emn-1b-15m.snapshot")];
    for snapshot in snapshots.into_iter().flatten() {
        let Some(found) = compared(snapshot.to_str().unwrap(), dir.path()) else { return };
        assert_eq!(found["differences"], json!([]));
        assert!(found["rows"]["events-TXN_LOG"].number() > 0, "{found}");
    }
}
