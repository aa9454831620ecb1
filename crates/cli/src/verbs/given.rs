//! The words that may be left out of a command line: the verb before a file or ring, and `exec` before its verbs.

use crate::input::programs::processes;
use crate::input::{patterns, saved};
use clap::Command;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The options before the verb that have a value.
const WITH_VALUE: [&str; 2] = ["--schema", "--color"];

/// Returns the arguments with what was left out. The word in a verb's place is a verb if there is one of that name,
/// whatever files there are.
pub(crate) fn completed(cli: &Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(place) = place_of_verb(&arguments) else { return arguments };
    let word = &arguments[place];
    let is_verb_of = |command: &Command| command.find_subcommand(word).is_some();
    let left_out = match cli.find_subcommand("exec") {
        _ if is_verb_of(cli) => None,
        // Until the next release its verbs may stand without it.
        Some(exec) if is_verb_of(exec) => Some("exec"),
        _ => is_input(word).then_some("ask"),
    };
    if let Some(verb) = left_out {
        arguments.insert(place, verb.into());
    }
    arguments
}

/// Returns the place of the first argument that is neither an option nor the value of one. After `help`, it is the
/// next one.
fn place_of_verb(arguments: &[OsString]) -> Option<usize> {
    let mut is_value = false;
    let place = arguments.iter().skip(1).position(|argument| {
        let is_word = !is_value && !argument.as_encoded_bytes().starts_with(b"-") && argument != "help";
        is_value = WITH_VALUE.iter().any(|option| argument == option);
        is_word
    });
    place.map(|place| place + 1)
}

/// Returns true if there is a file or ring of this name, or if no verb can be meant.
fn is_input(word: &OsStr) -> bool {
    let name = Path::new(word);
    if word.as_encoded_bytes().iter().any(|byte| b"./".contains(byte)) {
        return true;
    }
    let is_file = || std::fs::metadata(name).is_ok_and(|file| !file.is_dir());
    patterns::is_pattern(name) || processes::is_of_process(name) || is_file() || saved::is_of_ring(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn completed(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        super::completed(&crate::verbs::Cli::command(), words).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn only_what_is_no_verb_and_means_an_input_is_asked_about() {
        for (given, whole) in [
            ("eventring 'shop*' --json", "eventring ask 'shop*' --json"),
            ("eventring --color never Cargo.toml", "eventring --color never ask Cargo.toml"),
            ("eventring --schema Cargo.toml Cargo.toml", "eventring --schema Cargo.toml ask Cargo.toml"),
            ("eventring blocks node", "eventring exec blocks node"),
            ("eventring help gateway", "eventring help exec gateway"),
            ("eventring exec blocks node", "eventring exec blocks node"),
            ("eventring why Cargo.toml", "eventring why Cargo.toml"),
            ("eventring sumary shop.evc", "eventring sumary shop.evc"),
            // There is no such file, which the first look says.
            ("eventring shop.evc", "eventring ask shop.evc"),
            // A folder is no input: it may as well be a verb with a slip.
            ("eventring src", "eventring src"),
            ("eventring --help", "eventring --help"),
            ("eventring", "eventring"),
        ] {
            assert_eq!(completed(given), whole);
        }
    }
}
