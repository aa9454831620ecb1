//! Small things that people read: numbers with their nouns, and bytes that are text.

use crate::fixtures::*;

#[test]
fn one_of_a_thing_has_its_singular_and_the_entries_of_a_span_are_counted_beside_it() {
    let (_dir, [ring, capture, trace]) = places(["shop", "shop.evc", "trace.json"]);
    let recorder = spans_in(&ring).build().unwrap();
    let span = in_recorder(recorder, || {
        let span = info_span!("poll");
        (0..3).for_each(|_| span.in_scope(|| ()));
        info!(parent: &span, "done");
        span
    });
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let exported = run!("export", &capture, "--format", "chrome", "-o", &trace);
    let (said, _) = exported.err.split_once(" written to ").unwrap();
    assert_eq!(said, "1 span, entered 3 times, 1 still open, 1 log record");
    drop(span);
    let part = run!("export", &capture, "--format", "chrome", "-o", &trace, "-f", "--type", "SPAN_NEW");
    let (said, _) = part.err.split_once(" written to ").unwrap();
    assert!(said.contains("1 still open, or their end is not selected"), "{said}");
    let ends = run!("summary", &capture, "--type", "SPAN_NEW").ends(0);
    assert!(ends.out.contains("open, or their end is not selected"), "{ends:?}");
}

#[test]
fn bytes_that_are_text_are_shown_as_text_beside_their_digits() {
    let (_dir, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    in_recorder(recorder, || {
        info!(key = &b"caf\xc3\xa9 \"7\""[..], hash = &[0x61_u8, 0, 0x62][..], "bytes");
    });
    run!("watch", &ring, "--last", "1").shows(r#"key=0x636166c3a920223722 "café \"7\"" "#).shows("hash=0x610062 ");
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 978, name = "COUNTED")]
#[repr(u16)]
enum Counted {
    Common = 2,
    Rare = 3,
}

/// Returns the first place where a text speaks of one thing as of several: `1 events`, `1 event were`.
fn plural_of_one(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split([' ', '\n']).map(|word| word.trim_matches(['(', ')', ',', ';', ':'])).collect();
    let is_wrong = |at: usize| {
        let next = |by: usize| words.get(at + by).copied().unwrap_or_default();
        let is_plural = next(1).len() > 1 && next(1).ends_with('s') && !["was", "ns", "µs", "ms"].contains(&next(1));
        words[at] == "1"
            && next(1) != "to"
            && (is_plural || [2, 3].into_iter().any(|by| ["were", "are", "have"].contains(&next(by))))
    };
    (0..words.len())
        .find(|at| is_wrong(*at))
        .map(|at| words[at..].iter().take(6).copied().collect::<Vec<_>>().join(" "))
}

#[test]
fn one_event_is_never_spoken_of_as_of_several() {
    const SLOTS: u64 = 1 << 15;
    let (dir, [ring, row, page]) = places(["ring", "row.evc", "page.html"]);
    let (one, saved) = (place(&dir, "one.evc"), place(&dir, "saved.snapshot"));
    let recorder = typed_in::<Counted>(&ring).compact(true).shifts(15, 21).keep(true).build().unwrap();
    let [ring, row, page, one, saved] = [&ring, &row, &page, &one, &saved].map(|path| argument(path));
    let capture = ["capture", ring, "--now", "--resume", "-o", row];
    let mut said = Vec::new();
    let mut say = |arguments: &[&str]| said.push((arguments.join(" "), run(arguments)));
    // One event has been overwritten before the first capture, and one before the second.
    for _ in 0..2 {
        (0..SLOTS).for_each(|_| _ = recorder.record(Counted::Common.code(), [0; 4], &[]));
        _ = recorder.record(Counted::Rare.code(), [0; 4], &[]);
        say(&capture);
    }
    // Who watches a ring that has ended comes to its end.
    drop(recorder);
    let mut files: Vec<String> =
        fs::read_dir(dir.path()).unwrap().map(|it| argument(&it.unwrap().path()).to_owned()).collect();
    files.retain(|file| file.ends_with(".evc"));
    files.sort();
    let [first, second] = [&files[0], &files[1]];
    for file in [ring, first, second] {
        say(&["summary", file]);
        say(&["info", file]);
        say(&["watch", file, "--type", "RARE", "--last", "1"]);
        say(&["export", file, "-o", page, "--force"]);
        say(&["report", file, "-o", page, "--force"]);
        say(&["diff", file, first]);
    }
    say(&["summary", first, second]);
    say(&["capture", ring, "--now", "--type", "COMMON", "-o", one]);
    say(&["snapshot", ring, "-o", saved]);
    say(&["watch", saved]);
    say(&["list", argument(dir.path())]);
    let of_one: Vec<&str> =
        ["1 event had been overwritten", "1 event was lost", "1 event was overwritten", "1 event more was"]
            .into_iter()
            .filter(|words| !said.iter().any(|(_, run)| run.err.contains(words) || run.out.contains(words)))
            .collect();
    assert!(of_one.is_empty(), "{of_one:?} are not said: {said:?}");
    for (arguments, run) in &said {
        for text in [&run.out, &run.err] {
            assert_eq!(plural_of_one(text), None, "{arguments}");
        }
    }
    for wrong in ["1 span were", "(1 events, 2 spans)", "1 event more were left out", "1 event have lost"] {
        assert!(plural_of_one(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn a_field_that_was_cut_is_shown_as_cut_whether_or_not_its_length_is_known() {
    let (_dir, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    in_recorder(recorder, || info!("{}", "x".repeat(5000)));
    run!("watch", &ring, "--last", "1").shows(r#"cut=message="?" "#);
    assert_eq!(
        run!("watch", &ring, "--last", "1", "--json").json_lines()[0]["payload"]["cut"],
        json!({"message": null})
    );
}
