//! Every command of README and of the pages in `docs/` runs as it is printed, or stands in a list here with the reason
//! why it cannot.

mod commands;
mod scene;

use commands::Printed;
use scene::Scene;

/// Commands that cannot run here: the page (all if it is empty), a part of the command, and the reason.
const NOT_RUN: [(&str, &str, &str); 21] = [
    ("", "cargo ", "this test runs in a build of the project"),
    ("", "sudo ", "it needs root; `profile/` has what the verb does"),
    ("", "eventring top ", "it draws on a terminal until a key is pressed; `terminal.rs` has one"),
    ("", "eventring view ", "it waits for a browser; `view/` plays one"),
    ("", "eventring icount ", "it needs QEMU and its plugin; `icount/` runs where they are"),
    ("", "--to otlp://", "it needs a collector; `otlp/` has one"),
    ("README.md", "instructions(order)", "it needs counts of QEMU; `compare/` has some"),
    ("BUDGETS.md", "eventring budget ", "it needs counts of QEMU; `compare/budget.rs` has some"),
    ("COMPARE.md", "", "a session with tools of others, whose files and programs are not here"),
    ("CONTROL.md", "EVENTRING_SERVER=1 my-app", "the reader's own program; the scene starts one of this name"),
    ("CORES.md", "eventring core ", "it needs a core file; `cores/` makes one"),
    ("CORES.md", "gdb ", "it needs a core file and gdb; `cores/gdb.rs` has them"),
    ("CONTEXT.md", "jq ", "it needs jq"),
    ("EXEC.md", "eventring exec gateway ", "its port may be taken; `gateway.rs` takes a free one"),
    ("FORWARD.md", "nats", "it needs a broker; `broker/` starts one"),
    ("PROFILE.md", "event=SWITCHED_OUT", "it needs a profile, and rights for it; `profile/` has some"),
    ("PROFILE.md", "--weight cpu", "it needs a profile"),
    ("PROFILE.md", "--flame request", "it needs a profile"),
    ("PYTHON.md", "pip install ", "it needs a network; `.ci/run` builds the package"),
    ("QUERIES.md", "duckdb ", "it needs the program of DuckDB; `export/parquet_queries.rs` has its library"),
    ("ANSWERS.md", "--after 4711:16777216", "the span of another day; `ask/limit.rs` goes on after its own"),
];

/// Parts of commands that end with another code, and the reason.
const OTHER_CODES: [(&str, i32, &str); 1] = [("--from after:15000010", 3, "the block of another chain")];

/// Parts of commands that go on until Ctrl-C.
const UNTIL_CTRL_C: [&str; 5] = ["eventring watch ", " --follow", " --on ", " --wait ", "eventring enable "];

/// Returns the place in the list at which a command stands.
fn reason_not_to_run(command: &Printed) -> Option<usize> {
    let names = |(page, part, _): &(&str, &str, &str)| {
        (page.is_empty() || *page == command.page) && command.text.contains(part)
    };
    NOT_RUN.iter().position(names)
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
    // The table of times has other columns and signs from run to run: what was measured depends on the machine.
    let (mut is_of_times, head) = (false, |line: &str| line.starts_with("span ").then(|| line.contains(" queue ")));
    let is_same = |line: &&str| {
        is_of_times = head(line).unwrap_or(is_of_times && line.starts_with("http_service::"));
        !is_of_times && !line.is_empty()
    };
    let lines = text.lines().filter(is_same);
    let mut lines: Vec<String> =
        lines.map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_command_of_the_pages_runs_as_printed_or_is_listed_with_a_reason() {
    let commands = commands::all();
    let mut used = [false; NOT_RUN.len()];
    let (mut ran, mut compared) = (0, 0);
    let mut wrong = Vec::new();
    for page in commands.chunk_by(|a, b| a.page == b.page) {
        let mut scene = None;
        for command in page {
            if let Some(place) = reason_not_to_run(command) {
                used[place] = true;
                continue;
            }
            let scene = scene.get_or_insert_with(|| Scene::new(&command.page));
            let goes_on = UNTIL_CTRL_C.iter().any(|part| command.text.contains(part));
            let run = scene.run(&command.text, goes_on);
            ran += 1;
            let other = OTHER_CODES.iter().find(|(part, ..)| command.text.contains(part));
            if run.code != Some(other.map_or(0, |(_, code, _)| *code)) {
                wrong.push(format!("{command}: {run:?}"));
            }
            // Only what README prints was printed by what is run here, and only where it prints all.
            if command.page == "README.md" && !command.printed.is_empty() && !command.printed.contains('…') {
                compared += 1;
                let (said, expected) = (shape(&format!("{}{}", run.out, run.err)), shape(&command.printed));
                if said != expected {
                    wrong.push(format!("{command}: {said:#?}, expected {expected:#?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let unused: Vec<_> = NOT_RUN.iter().zip(used).filter(|(_, is_used)| !is_used).collect();
    assert!(unused.is_empty(), "no page has these: {unused:?}");
    assert!(ran > 40 && compared > 6, "{ran}, {compared}");
}
