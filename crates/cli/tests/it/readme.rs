//! The commands of README, in its order, print what README says.

use crate::program::{PROGRAM, finish, program};
use std::path::Path;
use std::process::Command;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// Returns the commands of the example that captures the service, each with what README says that it prints.
fn commands() -> Vec<(String, String)> {
    let readme = std::fs::read_to_string(README).unwrap();
    let mut blocks = readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.find(|block| block.starts_with("$ eventring capture shop -o shop.evc -- ")).unwrap();
    let mut commands = Vec::new();
    for command in block.split("$ ").skip(1) {
        let (line, printed) = command.split_once('\n').unwrap();
        let line = line.split(" # ").next().unwrap().trim_end();
        commands.push((line.to_owned(), printed.to_owned()));
    }
    commands
}

/// Returns the lines of a text without what differs from run to run: times and sizes, with their units, and the order
/// of lines. Of counts only those are the same in each run that are in this list.
fn shape(text: &str) -> Vec<String> {
    const SAME: [&str; 5] = ["5,000", "6,250", "16", "17,516", "1,252"];
    let word = |word: &str| match word {
        "ns" | "µs" | "ms" | "s" | "KiB" | "MiB" => "unit".to_owned(),
        _ if word.starts_with(|first: char| first.is_ascii_digit()) && !SAME.contains(&word) => "number".to_owned(),
        _ => word.to_owned(),
    };
    let mut lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_commands_of_readme_print_in_its_order_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let service = Path::new(PROGRAM).with_file_name("examples/http_service");
    let mut printing = 0;
    for (line, expected) in commands() {
        let words = line.replace("target/release/examples/http_service", service.to_str().unwrap());
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        assert_eq!(words[0], "eventring");
        // This verb waits for a browser: `view/` tries it.
        if words[1] == "view" {
            continue;
        }
        let mut command: Command = program(&words[1..]);
        command.current_dir(&directory).env("EVENTRING_DIR", directory.path().join("rings"));
        let run = finish(command);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
        if !expected.is_empty() {
            assert_eq!(shape(&format!("{}{}", run.out, run.err)), shape(&expected), "{line}: {run:?}");
            printing += 1;
        }
    }
    assert!(printing > 6);
}
