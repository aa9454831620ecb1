//! A list in pages, and answers that have a budget.

use super::{Random, recorded, usual};
use crate::blocks::live::node;
use crate::fixtures::*;
use eventring_stress::chain::Made;

#[test]
fn the_pages_of_a_list_are_the_list_and_stay_within_their_budget() {
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        usual(&mut Random(3), 20);
        (0..500).for_each(|_| std::mem::forget(info_span!("open")));
    });
    for (verb, list) in [("open", "spans"), ("summary", "spans"), ("tasks", "tasks")] {
        let whole = run!(verb, &ring, "--json").json();
        assert!(whole.get("cut").is_none() && whole.get("next").is_none(), "{verb}");
        let whole = whole[list].list().clone();
        for bound in [["--limit", "100"], ["--budget", "4000"]] {
            let (mut seen, mut after) = (Vec::new(), None::<String>);
            loop {
                let mut words = vec![verb, argument(&ring), "--json", bound[0], bound[1]];
                after.iter().for_each(|after| words.extend(["--after", after]));
                let asked = run(&words);
                assert!(bound[0] == "--limit" || asked.out.len() <= 4000, "{verb}: {} bytes", asked.out.len());
                let page = asked.json();
                seen.extend(page[list].list().clone());
                assert_eq!(page["cut"], whole.len() - seen.len(), "{verb}");
                let Some(next) = page["next"].as_str() else { break };
                after = Some(next.to_owned());
            }
            // Ages go on.
            let ids = |list: &[Value]| -> Vec<String> {
                list.iter().map(|one| format!("{}{}", one["id"], one["name"])).collect()
            };
            assert_eq!(ids(&seen), ids(&whole), "{verb}");
        }
    }
    // An answer with nothing of the list says where to go on, too.
    for verb in ["open", "summary", "why", "top"] {
        let once = if verb == "top" { &["--once"][..] } else { &[] };
        let nothing = run!(verb, &ring, "--json", "--limit", "0", once).json();
        assert!(nothing["cut"].as_u64() > Some(0) && nothing["next"] == "", "{verb}: {nothing}");
    }
    let first = run!("open", &ring, "--json", "--limit", "1", "--after", "").json();
    assert_eq!((first["spans"].list().len(), &first["cut"]), (1, &499.into()));
    run!("open", &ring, "--json", "--after", "7:7").fails(2, "--after 7:7");
    run!("open", &ring, "--limit", "3").ends(2);
}

/// Takes the lines of a verb in pages, and checks that they are the lines of one run, and that each page has its
/// budget.
fn pages_are_the_lines(words: &[&str], whole: &[Value]) {
    for bound in [["--limit", "3"], ["--budget", "3000"]] {
        let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page: Run = run!(words, "--json", bound[0], bound[1], "--after", &after);
            assert!(bound[0] == "--limit" || page.out.len() <= 3000, "{words:?}: {} bytes", page.out.len());
            let mut lines = page.json_lines();
            let end = lines.pop().unwrap_or_else(|| panic!("{page:?}"));
            assert!(bound[0] == "--budget" || lines.len() <= 3, "{page:?}");
            seen.extend(lines);
            pages += 1;
            match end["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        assert!(pages > 2 && seen == whole, "{words:?} {bound:?}: {pages} pages, {} of {}", seen.len(), whole.len());
    }
    run!(words, "--json", "--after", "no/such:id").ends(2).shows_nothing().warns("has this id");
    let nothing = run!(words, "--json", "--limit", "0").json_lines();
    assert!(nothing.len() == 1 && nothing[0]["next"] == "", "{nothing:?}");
}

#[test]
fn the_pages_of_lines_are_the_lines_and_stay_within_their_budget() {
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        (0..12).for_each(|number| info!(number, "counted"));
    });
    let capture = place(&dir, "shop.evc");
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let capture = argument(&capture);
    let whole = run!("watch", capture, "--json").json_lines();
    pages_are_the_lines(&["watch", capture], &whole);
    let mut whole = run!("find", "event=*", capture, "--json").json_lines();
    assert_eq!(whole.pop().unwrap()["hits"], 12);
    pages_are_the_lines(&["find", "event=*", capture], &whole);
    let chain = place(&dir, "node");
    let recorder = node(&chain);
    let mut made = Made::default();
    for number in 1..=9 {
        let tag = made.block(number, number as u8, 1);
        made.finalize(tag);
    }
    made.record(0, &recorder);
    let whole = run!("exec", "blocks", &chain, "--headers", "--json").json_lines();
    assert!(whole.len() == 9 && whole.iter().all(|block| block["transactions"] == Value::Array(vec![])), "{whole:?}");
    pages_are_the_lines(&["exec", "blocks", argument(&chain), "--headers"], &whole);
    let some = run!("exec", "blocks", &chain, "--limit", "2");
    assert!(some.out.lines().count() == 2 && some.err.contains("2 blocks (there may be more)"), "{some:?}");
    run!("exec", "blocks", &chain, "--json", "--budget", "1024").fails(2, "allow at least");
}
