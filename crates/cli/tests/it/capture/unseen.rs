//! Names that nothing had are said at the end.

use crate::fixtures::*;

/// Records a request with a query in it, on a thread of a name.
fn record(ring: &Path) {
    let recorder = spans_in(ring).shifts(15, 21).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let request = move || {
        dispatcher::with_default(&dispatch, || {
            let _request = info_span!(target: "shop::web", "request").entered();
            info_span!(target: "shop::db", "query", rows = u128::MAX).in_scope(|| info!("found"));
        });
    };
    thread::Builder::new().name("worker".into()).spawn(request).unwrap().join().unwrap();
}

#[test]
fn a_name_that_nothing_had_is_said_at_the_end_and_one_that_something_had_is_not() {
    let (dir, [ring, file]) = places(["shop", "shop.evc"]);
    record(&ring);
    let ring = argument(&ring);
    let capture = ["capture", ring, "-f", "-o", argument(&file)];
    let on = place(&dir, "on-{n}.evc");
    let triggers = ["capture", ring, "-o", argument(&on)];
    // As a live ring.
    let watch = ["watch", ring, "--last", "1000000"];
    let saved = place(&dir, "saved.evc");
    run!("capture", ring, "--now", "-o", &saved).ends(0);
    let watch_file = ["watch", argument(&saved)];
    let (export, summary) = (["export", argument(&saved), "--format", "jsonl"], ["summary", argument(&saved)]);
    let unseen = |what: &str| format!("no {what} `nobody` was seen");
    for (verb, options, what, seen) in [
        (&capture[..], ["--where", "span=nobody"], "span", "span=query"),
        (&capture, ["--where", "span=query or thread=nobody"], "thread", "span=query or thread=worker"),
        (&capture, ["--where", "span=query or target=nobody"], "target", "span=query or target=shop::*"),
        (&capture, ["--span", "nobody"], "span", "shop::db::query"),
        (&triggers, ["--on", "span=nobody"], "span", "span=query"),
        (&triggers, ["--on", "rate(span=nobody)>5/s"], "span", "rate(span=quer*)>5/s"),
        (&watch, ["--where", "span=nobody"], "span", "span=query"),
        (&watch, ["--span", "nobody"], "span", "query"),
        (&watch, ["--thread", "nobody"], "thread", "worker"),
        (&watch, ["--target", "nobody"], "target", "shop::*"),
        (&watch_file, ["--target", "nobody"], "target", "shop::web"),
        (&watch_file, ["--where", "span=query or span=nobody"], "span", "span=query or thread=worker"),
        (&export, ["--where", "span=query or event=nobody"], "event", "span=query or event=*unseen.rs*"),
        (&summary, ["--where", "span=query or target=nobody"], "target", "span=query or target=shop::*"),
    ] {
        run!(verb, &options).ends(0).warns(unseen(what));
        let asked = run!(verb, options[0], seen);
        assert!(asked.code == Some(0) && !asked.err.contains("was seen"), "{seen}: {asked:?}");
    }
    // A program may still record a field as long as it runs. At its end nothing has had it.
    let ring_of_program = place(&dir, "example");
    let program = Path::new(PROGRAM).with_file_name("examples").join("http_service");
    for (option, output) in [("--where", &file), ("--on", &on)] {
        for (condition, is_there) in [("field.nosuch=1", false), ("field.customer=1", true)] {
            let words = ["capture", argument(&ring_of_program), "-f", "-o", argument(output), option, condition];
            let asked = run!(&words, "--", &program, "--requests", "20", "--ring", &ring_of_program);
            let told = format!("{option} '{condition}': no event has a field");
            assert!(asked.code == Some(0) && asked.err.contains(&told) != is_there, "{told}: {asked:?}");
        }
    }
    // A name that only a ring before the last restart had.
    let again = place(&dir, "again");
    let mut reopened = live!("watch", &again, "--reopen", "--from", "oldest", "--json", "--span", "query");
    record(&again);
    (0..5).for_each(|_| drop(reopened.json_line()));
    fs::remove_file(&again).unwrap();
    drop(spans_in(&again).shifts(15, 21).keep(true).build().unwrap());
    assert!(reopened.json_line()["made_anew"].is_object());
    reopened.interrupt();
    let reopened = reopened.end();
    assert!(reopened.code == Some(0) && !reopened.err.contains("was seen"), "{reopened:?}");
    run!(&capture, "--where", "span=nobody").warns("was seen; there are ");
    // A message is short, whatever the name.
    let long = "n".repeat(3000);
    for options in [
        [&watch[..], &["--where", &format!("span={long}")]].concat(),
        [&watch[..], &["--span", &long]].concat(),
        [&capture[..], &["--where", &format!("span={long}")]].concat(),
        ["watch", argument(&file), "--where", &format!("span={long}")].to_vec(),
        ["watch", argument(&file), "--where", &format!("field.{long}=1")].to_vec(),
        ["watch", argument(&file), "--type", &long].to_vec(),
        ["diff", argument(&file), argument(&file), "--fail-if", &format!("count({long})>+1")].to_vec(),
    ] {
        let asked = run(&options);
        assert!(asked.err.contains(&"n".repeat(80)) && asked.err.len() < 2000, "{}: {asked:?}", options[0]);
    }
}

#[test]
fn numbers_beyond_128_bits_are_compared_and_never_silently_unequal() {
    let (_dir, [ring, file]) = places(["shop", "shop.evc"]);
    record(&ring);
    run!("capture", &ring, "-o", &file).ends(0);
    let largest = u128::MAX.to_string();
    for (condition, holds) in [
        (format!("field.rows={largest}"), true),
        (format!("field.rows>={largest}"), true),
        (format!("field.rows={}", i128::MAX), false),
        (format!("field.rows>{}", i128::MAX), true),
        ("field.rows<340282366920938463463374607431768211456".to_owned(), true),
        ("field.rows=340282366920938463463374607431768211456".to_owned(), false),
        (format!("field.rows<{largest}0000000000000000000000000000000000000000000"), true),
        (format!("field.rows>-{largest}"), true),
    ] {
        let found = run!("summary", &file, "--where", &condition, "--json");
        let shown = run!("watch", &ring, "--from", "oldest", "--json", "--where", &condition);
        assert_eq!((found.code == Some(0), !shown.out.is_empty()), (holds, holds), "{condition}: {found:?}");
    }
}

#[test]
fn a_summary_counts_the_log_records_of_what_is_selected() {
    let (dir, [ring, file]) = places(["shop", "shop.evc"]);
    record(&ring);
    record(&place(&dir, "other"));
    run!("capture", &ring, &place(&dir, "other"), "-o", &file).ends(0);
    let count = |options: &[&str]| {
        let summary = [&["summary", argument(&file)], options].concat();
        let shown = run(&summary);
        let records = run!(&summary, "--json").json()["log_records"].number();
        let words = if records == 1 { "\n1 log record\n".to_owned() } else { format!("\n{records} log records\n") };
        assert_eq!(format!("\n{}", shown.out).contains(&words), records > 0, "{shown:?}");
        records
    };
    assert_eq!([count(&[]), count(&["--where", "level=INFO"]), count(&["--ring", "other"])], [2, 2, 1]);
    assert_eq!(count(&["--where", "span=request"]), 2);
    assert_eq!(count(&["--ring", "shop", "--where", "level=INFO"]), 1);
}

#[test]
fn relative_times_of_a_snapshot_and_of_a_ring_count_from_its_first_event_and_from_its_end() {
    let (_dir, [ring, snapshot]) = places(["shop", "shop.snapshot"]);
    record(&ring);
    run!("snapshot", &ring, "-o", &snapshot).ends(0);
    // The end is not now.
    thread::sleep(Duration::from_secs(2));
    for name in [argument(&ring), argument(&snapshot)] {
        let spans = |options: &[&str]| {
            let found = run!("summary", name, "--json", options);
            (found.code == Some(0)).then(|| found.json()["spans"].list().len())
        };
        assert_eq!([spans(&["--from", "-1.5s"]), spans(&["--from", "+0s"])], [Some(2); 2], "{name}");
        assert_eq!([spans(&["--to", "+1.5s"]), spans(&["--from", "-1.5s", "--to", "+1.5s"])], [Some(2); 2], "{name}");
        // The controls: after the end, and before the beginning.
        assert_eq!([spans(&["--from", "+1.5s"]), spans(&["--to", "-1.5s"])], [None; 2], "{name}");
    }
}
