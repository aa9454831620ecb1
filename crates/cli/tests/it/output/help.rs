//! Tests of the program's help texts, and of the exit codes in `docs/CLI.md`, which must agree with them.

use crate::program::run;

const DOCUMENT: &str = include_str!("../../../../../docs/CLI.md");

/// Returns the verbs that the program lists.
fn verbs() -> Vec<String> {
    let help = run(&["help"]).out;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let verbs = list.lines().filter(|line| !line.starts_with("    "));
    verbs.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|verb| verb != "help").collect()
}

#[test]
fn every_verb_has_help() {
    let verbs = verbs();
    assert!(
        ["info", "watch", "snapshot", "export"].iter().all(|verb| verbs.contains(&(*verb).to_owned())),
        "{verbs:?}"
    );
    for verb in verbs {
        let help = run(&[&verb, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""), "{verb}");
    }
}

#[test]
fn the_exit_codes_of_the_document_are_those_of_the_help() {
    let help = run(&["--help"]).out;
    let (_, in_help) = help.split_once("Exit codes:\n").unwrap();
    let in_help: Vec<(&str, &str)> = in_help.lines().filter_map(|line| line.trim().split_once("  ")).collect();
    let (_, in_document) = DOCUMENT.split_once("## Exit codes").unwrap();
    let rows = in_document.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let in_document: Vec<(&str, &str)> = rows.filter(|(code, _)| code.parse::<u8>().is_ok()).collect();
    assert_eq!(in_document, in_help);
    assert!(in_help.len() > 15);
}

#[test]
fn the_version_is_printed() {
    assert_eq!(run(&["--version"]).out, format!("eventring {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_made_for_each_shell() {
    for (shell, word) in [("bash", "_eventring"), ("zsh", "#compdef eventring"), ("fish", "complete -c eventring")] {
        let script = run(&["completions", shell]).out;
        assert!(script.contains(word) && script.contains("snapshot"), "{shell}");
    }
}
