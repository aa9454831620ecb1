//! Tests of the program's help texts.

use crate::fixtures::*;

/// Returns the verbs that the program lists.
pub(crate) fn verbs() -> Vec<String> {
    let help = run!("help").out;
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
        let mut help = program!(&verb, "--help");
        help.env("COLUMNS", "80");
        let help = finish(help);
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""), "{verb}");
        // It breaks between words where the terminal is narrow.
        let wide = help.out.lines().find(|line| line.chars().count() > 80 && !line.starts_with("Usage: "));
        assert_eq!(wide, None, "{verb}");
    }
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
