//! Tests of the program's help texts.

use crate::fixtures::*;
use crate::program::program_in;

/// The headings of the groups of verbs.
const GROUPS: [&str; 6] = ["Look now:", "Keep:", "Ask:", "Show:", "Control:", "Execution events of a node:"];

fn help(arguments: &[&str]) -> String {
    let mut help = program(arguments);
    help.env("COLUMNS", "80");
    let help = finish(help).ends(0).quiet();
    // It breaks between words where the terminal is narrow.
    let wide = help.out.lines().find(|line| line.chars().count() > 80 && !line.starts_with("Usage: "));
    assert_eq!(wide, None, "{arguments:?}");
    help.out
}

/// Returns the verbs that the program lists: `exec blocks` is one.
pub(crate) fn verbs() -> Vec<String> {
    let help = help(&["help"]);
    let groups = help.split("\n\n").filter(|part| part.lines().next().is_some_and(|line| GROUPS.contains(&line)));
    let lines = groups.flat_map(|group| group.lines().skip(1)).filter(|line| !line.starts_with("    "));
    lines.map(|line| line.trim_start().split("  ").next().unwrap().to_owned()).collect()
}

#[test]
fn help_has_every_verb_once_below_a_heading_and_each_has_help() {
    let verbs = verbs();
    let each: BTreeSet<&String> = verbs.iter().collect();
    assert!(verbs.len() > 30 && each.len() == verbs.len(), "{verbs:?}");
    for verb in ["info", "watch", "snapshot", "export", "exec blocks", "exec replay"] {
        assert!(verbs.iter().any(|listed| listed == verb), "{verb}: {verbs:?}");
    }
    for verb in verbs {
        help(&verb.split(' ').chain(["--help"]).collect::<Vec<_>>());
    }
}

#[test]
fn the_verbs_of_execution_events_still_work_without_exec() {
    for verb in ["blocks", "archive", "gateway", "replay"] {
        assert_eq!(run!(verb, "--help").out, run!("exec", verb, "--help").out);
        let [old, new] = [&[verb, "--json-schema"][..], &["exec", verb, "--json-schema"]].map(run);
        assert_eq!(old.json()["title"], format!("what `eventring exec {verb} --json` prints"));
        assert_eq!(old.out, new.out);
    }
    let blocks = run!("blocks", KEPT, "--json");
    assert!(blocks.code == Some(0) && blocks.out == run!("exec", "blocks", KEPT, "--json").out, "{blocks:?}");
}

#[test]
fn a_file_or_ring_without_a_verb_gets_the_first_look_and_a_verb_stays_a_verb() {
    let (dir, [rings]) = places(["rings"]);
    fs::create_dir(&rings).unwrap();
    let _ring = exec_ring(&place(&dir, "rings/shop"));
    let ran = |arguments: &[&str]| {
        let mut command = program_in(&rings, arguments);
        command.current_dir(&dir);
        finish(command)
    };
    // A file that is called like a verb.
    ran(&["capture", "shop", "--now", "-o", "./list"]).ends(0);
    for words in [&["shop"][..], &["./list", "--json"], &["--color", "never", "./list", "--budget", "1024"]] {
        let place = if words[0] == "--color" { 2 } else { 0 };
        let asked = ran(&[&words[..place], &["ask"], &words[place..]].concat());
        let without = ran(words);
        assert_eq!((without.code, &without.err), (Some(0), &asked.err), "{words:?}");
        assert_eq!(without.out.split_whitespace().next(), asked.out.split_whitespace().next(), "{words:?}");
    }
    assert!(ran(&["list"]).out.contains("shop"));
    assert_eq!(ran(&["./list", "--nonsense"]).err, ran(&["ask", "./list", "--nonsense"]).err);
    ran(&["sumary", "./list"]).fails(2, "a similar subcommand exists: 'summary'");
}

#[test]
fn the_version_is_printed() {
    assert_eq!(run!("--version").out, format!("eventring {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_made_for_each_shell() {
    for (shell, word) in [("bash", "_eventring"), ("zsh", "#compdef eventring"), ("fish", "complete -c eventring")] {
        let script = run!("completions", shell).out;
        assert!(script.contains(word) && script.contains("snapshot"), "{shell}");
    }
}
