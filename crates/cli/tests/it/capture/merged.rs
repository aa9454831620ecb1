//! Several captures on the command line of `export`, `summary` and `watch` become one.

use crate::broker::forged;
use crate::fixtures::*;

/// Records spans into a ring of this name, and captures it.
fn capture(directory: &TempDir, name: &str, spans: u64) -> String {
    let ring = place(directory, name);
    let builder = spans_in(&ring).shifts(15, 21).tables_shift(16).keep(true);
    in_recorder(builder.build().unwrap(), || {
        (0..spans).for_each(|number| info_span!("work", number).in_scope(|| ()));
    });
    let path = argument(&place(directory, &format!("{name}.evc"))).to_owned();
    run!("capture", &ring, "--now", "-o", &path).ends(0);
    path
}

#[test]
fn captures_of_two_programs_become_one_trace_in_which_they_stay_apart() {
    let directory = directory();
    let (a, b) = (capture(&directory, "a", 3), capture(&directory, "b", 5));
    let lines = run!("export", &b, &a, "--format", "jsonl").json_lines();
    let rings = lines[0]["rings"].list();
    let shown: Vec<_> = rings.iter().map(|ring| (ring["name"].text(), ring["process"].number())).collect();
    assert_eq!(shown, [("b", 0), ("a", 1)]);
    let spans_of = |process: u64| {
        let is_it = |line: &&Value| line["type"] == "span" && line["process"] == process;
        lines.iter().filter(is_it).map(|line| line["id"].number()).collect::<Vec<_>>()
    };
    assert_eq!((spans_of(0).len(), spans_of(1).len()), (5, 3));
    assert_eq!(run!("summary", &a, &b, "--json").json()["spans"][0]["count"], 8);
    assert_eq!(run!("summary", &a, &b, "--json", "--ring", "b").json()["spans"][0]["count"], 5);
    let trace = place(&directory, "both.perfetto-trace");
    let exported = run!("export", &a, &b, "--json", "-o", &trace).json();
    assert_eq!((&exported["spans"], &exported["slices"]), (&Value::from(8), &Value::from(8)));
}

#[test]
fn one_ring_in_two_captures_is_refused() {
    let directory = directory();
    let a = capture(&directory, "a", 3);
    let again = argument(&place(&directory, "again.evc")).to_owned();
    run!("capture", &place(&directory, "a"), "--now", "-o", &again).ends(0);
    let refused = run!("summary", &a, &again).fails(2, "again.evc: it has the ring a of process ");
    assert!(refused.err.ends_with("name one of the two\n"), "{refused:?}");
}

#[test]
fn files_of_a_rotated_capture_may_be_among_other_captures() {
    let directory = directory();
    let (a, ring) = (capture(&directory, "a", 3), place(&directory, "many"));
    let builder = spans_in(&ring).shifts(17, 27).tables_shift(16).keep(true);
    in_recorder(builder.build().unwrap(), || {
        (0..20_000_u64).for_each(|number| info_span!("work", number).in_scope(|| ()));
    });
    let row = argument(&place(&directory, "row.evc")).to_owned();
    let made = run!("capture", &ring, "--now", "-o", &row, "--rotate-size", "20k", "--json").json();
    let mut files: Vec<String> = made["files"].list().iter().map(|it| it.text().into()).collect();
    assert!(files.len() > 2, "{files:?}");
    files.insert(1, a);
    files.reverse();
    let arguments: Vec<&str> = ["summary", "--json"].into_iter().chain(files.iter().map(String::as_str)).collect();
    assert_eq!(run(&arguments).json()["spans"][0]["count"], 20_003);
}

#[test]
fn problems_name_the_capture_that_has_them() {
    let directory = directory();
    let (a, b) = (capture(&directory, "a", 3), capture(&directory, "b", 5));
    let bytes = fs::read(&b).unwrap();
    fs::write(&b, &bytes[..bytes.len() - 1]).unwrap();
    let shown = run!("summary", &a, &b).shows(" 8 ");
    assert!(shown.err.contains(&format!(" {b}: truncated: ")) && !shown.err.contains(&a), "{shown:?}");
}

#[test]
fn rings_of_another_version_are_left_out_by_name_and_the_others_are_read() {
    let directory = directory();
    let (good, other) = (capture(&directory, "a", 3), capture(&directory, "b", 5));
    let of_other_version = |ring: &mut Vec<u8>| ring[16..48].fill(9);
    let forged = forged::batch(&fs::read(&other).unwrap(), "h", of_other_version, |_| ());
    fs::write(&other, forged).unwrap();
    // The same as rings: they have no spans of this version, or those of the capture.
    let (ring, of_version) = (place(&directory, "a"), place(&directory, "of-version"));
    let builder = Recorder::builder(ContentDescription::new(3, "PERF").schema_hash([9; 32])).config(&of_version);
    drop(builder.shifts(16, 27).prefault(false).keep(true).build().unwrap());
    let (ring, of_version) = (argument(&ring), argument(&of_version));
    for (good, other) in [(good.as_str(), other.as_str()), (ring, of_version)] {
        let said = |run: &program::Run| run.err.contains("left out: ") && run.err.contains("0909090909090909");
        for names in [[good, other], [other, good]] {
            let shown = run!("summary", "--json", &names);
            assert!(said(&shown) && shown.json()["spans"][0]["count"] == 3, "{shown:?}");
            let shown = run!("export", "--format", "jsonl", &names);
            let spans = shown.json_lines().iter().filter(|line| line["type"] == "span").count();
            assert!(said(&shown) && shown.code == Some(0) && spans == 3, "{shown:?}");
            let shown = run!("open", "--json", &names);
            assert!(said(&shown) && shown.code == Some(0), "{shown:?}");
        }
        for verb in [&["summary"][..], &["export", "--format", "jsonl"], &["open"]] {
            run!(verb, other).ends(9);
        }
    }
    let chosen = run!("summary", "--json", "--ring", "a", &good, &other);
    assert!(chosen.err.is_empty() && chosen.json()["spans"][0]["count"] == 3, "{chosen:?}");
    // The file lacks a ring that was asked for: the others are there, and the exit code says it.
    let both = argument(&place(&directory, "both.evc")).to_owned();
    for names in [[ring, of_version], [of_version, ring]] {
        run!("capture", "--now", "--force", "-o", &both, &names).fails(9, "0909090909090909");
        assert_eq!(run!("summary", "--json", &both).json()["spans"][0]["count"], 3);
    }
}
