//! The schemas of answers, tested by a validator of others.

use super::{Random, recorded, usual};
use crate::consumers::{read, script};
use crate::fixtures::*;
use std::fmt::Write as _;

/// Checks that answers of verbs fit their schemas, and that wrong ones do not. Tests of verbs that need more than a
/// ring call this with what they have.
pub fn check(answers: &[(&str, Value)]) {
    let dir = directory();
    let mut lines = String::new();
    for (verb, answer) in answers {
        let words: Vec<&str> = verb.split(' ').collect();
        let schema: Value = run!(words, "--json-schema").json();
        writeln!(lines, "{}", json!([verb, schema, answer])).unwrap();
    }
    let file = place(&dir, "answers");
    fs::write(&file, lines).unwrap();
    if script("json_schemas.py").is_none() {
        return;
    }
    let found = read("json_schemas.py", &file).unwrap();
    let nothing = json!([]);
    assert!(found["bad"] == nothing && found["not_refused"] == nothing, "{found:#}");
    for (verb, _) in answers {
        assert!(found["fitting"][*verb].number() >= 1, "{found:#}");
    }
}

#[test]
fn the_answers_of_verbs_fit_their_schemas_and_wrong_ones_do_not() {
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        usual(&mut Random(3), 50);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { eventring_tokio::spawn_named("job", tokio::task::yield_now()).await.unwrap() });
        std::mem::forget(info_span!("open", number = 7));
    });
    let (ring, path) = (argument(&ring), |name: &str| argument(&place(&dir, name)).to_owned());
    let [capture, page, exported, budgets, archive, snapshot, second] =
        ["shop.evc", "page.html", "shop.jsonl", "budgets.toml", "archive", "shop.zst", "node"].map(path);
    let mut answers = Vec::new();
    let mut ask = |words: &[&str]| {
        let done = run!(words, "--json");
        assert!(done.code == Some(0) && !done.out.is_empty(), "{words:?}: {done:?}");
        let lines: Vec<Value> = done.out.lines().take(200).map(|line| serde_json::from_str(line).unwrap()).collect();
        let verb = words[..if words[0] == "exec" { 2 } else { 1 }].join(" ");
        answers.extend(lines.into_iter().map(|line| (verb.clone(), line)));
    };
    ask(&["capture", ring, "--now", "-o", &capture]);
    run!("budget", "update", &budgets, &capture, "--measure", "count");
    ask(&["budget", "check", &budgets, &capture]);
    for words in [
        &["list", argument(dir.path())][..],
        &["list", argument(dir.path()), "--limit", "0"],
        &["info", ring],
        &["info", KEPT],
        &["exec", "blocks", KEPT, "--with", "frames,accesses"],
        &["exec", "blocks", KEPT, "--headers", "--limit", "1"],
        &["watch", KEPT, "--limit", "1"],
        &["top", ring, "--once", "--limit", "0"],
        &["why", &capture, "--limit", "1"],
        &["watch", &capture],
        &["watch", KEPT],
        &["export", &capture, "--format", "jsonl", "-o", &exported],
        &["summary", &capture],
        &["summary", &capture, "--limit", "1"],
        &["summary", KEPT],
        &["diff", &capture, &capture],
        &["report", &capture, "-o", &page],
        &["open", ring],
        &["open", ring, "--limit", "0"],
        &["top", ring, "--once"],
        &["why", &capture],
        &["tasks", &capture],
        &["tasks", ring, "--limit", "0"],
        &["ask", &capture],
        &["ask", KEPT],
        &["check", ring],
        &["find", "span=*", &capture],
        &["snapshot", ring, "-o", &snapshot],
        &["exec", "archive", KEPT, "-o", &archive],
        &["exec", "replay", KEPT, "--ring", &second],
        &["clean", argument(dir.path()), "--dry-run"],
    ] {
        ask(words);
    }
    let nothing = run!("check", "/nowhere/ring", "--json").ends(3);
    answers.push(("check".to_owned(), nothing.said()));
    let answers: Vec<(&str, Value)> = answers.iter().map(|(verb, answer)| (verb.as_str(), answer.clone())).collect();
    check(&answers);
}

#[test]
fn a_schema_needs_no_other_argument_and_other_verbs_have_none() {
    assert_eq!(run!("why", "--json-schema").json()["$id"], "urn:eventring:json-schema:why:1");
    run!("completions", "--json-schema").fails(2, "has no --json; these have: archive, ask");
}
