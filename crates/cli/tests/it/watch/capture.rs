//! `eventring watch` shows the events of captures, as it shows those of rings.

use crate::fixtures::*;

/// Records spans and typed events into rings, and captures the rings. Returns the names of the rings, and the capture.
fn capture(directory: &TempDir) -> ([String; 2], String) {
    let perf = argument(&place(directory, "shop")).to_owned();
    let builder = spans_in(&perf).shifts(15, 21).tables_shift(18).keep(true);
    in_recorder(builder.build().unwrap(), || {
        for number in 0..4 {
            info_span!("request", number).in_scope(|| {
                info_span!("query").in_scope(|| warn!(rows = 3, "slow"));
            });
        }
    });
    let path = argument(&place(directory, "shop.evc")).to_owned();
    run!("capture", &perf, KEPT, "--now", "-o", &path).ends(0);
    ([perf, KEPT.to_owned()], path)
}

fn names(run: &Run) -> Vec<String> {
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json_lines().iter().map(|line| line["name"].text().to_owned()).collect()
}

#[test]
fn a_capture_is_shown_as_its_rings_are() {
    let directory = directory();
    let (rings, capture) = capture(&directory);
    let without_ring = |run: &Run| -> Vec<Value> {
        let mut lines = run.json_lines();
        lines.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("ring")));
        lines
    };
    let of_rings = run!("watch", &rings[0], &rings[1], "--json", "--quiet", "--from", "oldest");
    let of_capture = run!("watch", &capture, "--json", "--quiet").ends(0).quiet();
    let lines = without_ring(&of_capture);
    assert!(lines.len() > 60);
    assert_eq!(lines, without_ring(&of_rings));
    // The column of the ring's name may have another width.
    let people = |names: &[&str]| {
        let run = run!("watch", "--from", "oldest", "--full", names);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let out = run.out.replace(KEPT, KEPT.rsplit('/').next().unwrap()).replace(&rings[0], "shop");
        (out.lines().map(words).collect::<Vec<_>>(), run.err)
    };
    let (shown, summary) = people(&[&capture]);
    assert_eq!(shown, people(&[&rings[0], &rings[1]]).0);
    assert!(
        summary.contains(" events shown, none lost, ") && summary.ends_with(" · end of the capture\n"),
        "{summary}"
    );
}

#[test]
fn options_narrow_what_is_shown() {
    let directory = directory();
    let (_, capture) = capture(&directory);
    let watch = |options: &[&str]| run!("watch", &capture, "--json", "--quiet", options);
    assert_eq!(names(&watch(&["--ring", "shop", "--type", "EVENT"])), ["EVENT"; 4]);
    let query = ["SPAN_NEW", "SPAN_ENTER", "EVENT", "SPAN_EXIT", "SPAN_CLOSE"];
    let of_query = names(&watch(&["--span", "query"]));
    assert_eq!(
        of_query.iter().filter(|name| *name != "CALL_SITE").take(5).collect::<Vec<_>>(),
        query.iter().collect::<Vec<_>>()
    );
    let id = watch(&["--span", "query", "--type", "EVENT"]).json_lines()[1]["payload"]["span"].to_string();
    assert_eq!(names(&watch(&["--span", &id])), query);
    let first = watch(&["--ring", "shop", "--type", "EVENT"]).json_lines();
    let (second, third) = (first[1]["ts_ns"].to_string(), first[2]["ts_ns"].to_string());
    let window = names(&watch(&["--from", &second, "--to", &third, "--ring", "shop", "--type", "EVENT"]));
    assert_eq!(window, ["EVENT"; 2]);
    assert_eq!(names(&watch(&["--min-duration", "1h"])), ["CALL_SITE"; 0]);
    // Every option of a selection counts the events that it does not show.
    let all = watch(&["--full"]).json_lines().len();
    for options in [["--where", "span=query"], ["--span", "query"], ["--target", "*"], ["--min-duration", "1h"]] {
        let shown = run!("watch", &capture, &options).err;
        let counts = ["shown", "not selected", "of call sites"].map(|what| {
            let part = shown.split(", ").find(|part| part.contains(what)).unwrap_or_default();
            part.split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap_or(0)
        });
        assert!(counts[1] > 0 && counts.iter().sum::<usize>() == all, "{all}, {options:?}: {shown}");
    }
}

#[test]
fn a_directory_of_a_captures_name_is_said_to_be_one() {
    let directory = directory();
    fs::create_dir(place(&directory, "dir.evc")).unwrap();
    for verb in ["watch", "summary"] {
        let mut command = program!(verb, "dir.evc");
        command.current_dir(directory.path());
        let refused = finish(command);
        let is_said = refused.err.contains("dir.evc is a directory, expected a ring");
        assert!(refused.code == Some(3) && is_said, "{refused:?}");
    }
}

#[test]
fn options_of_rings_are_refused_for_captures_and_those_of_captures_for_rings() {
    let directory = directory();
    let (rings, capture) = capture(&directory);
    let refused = |arguments: &[&str], what: &str| {
        run!("watch", arguments).ends(2).shows_nothing().warns(what);
    };
    refused(&[&capture, "--last", "3"], "--last has a meaning for rings only");
    refused(&[&capture, "--reopen"], "--reopen has a meaning for rings only");
    refused(&[&capture, "--from", "newest"], "expected a time in a capture");
    refused(&[&capture, &rings[0]], "is a capture, and ");
    run!("watch", &capture, "./missing").fails(3, "cannot open ring file ./missing");
    refused(&[&rings[0], "--reopen", "--to", "3"], "--to selects a part of a capture");
    refused(&[&rings[0], "--reopen", "--from", "+1s"], "only a capture can be shown from a time on");
    refused(&[&rings[0], "--last", "3", "--ring", "shop"], "--ring selects a part of a capture");
}

#[test]
fn a_truncated_capture_is_shown_as_far_as_it_goes() {
    let directory = directory();
    let (_, capture) = capture(&directory);
    let whole = run!("watch", &capture, "--json", "--quiet");
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() - 1]).unwrap();
    let cut = run!("watch", &capture, "--json", "--quiet");
    assert_eq!(cut.out, whole.out);
    assert!(cut.code != Some(0) && cut.err.contains("truncated: "), "{cut:?}");
}
