//! The script of docs/BUDGETS.md, which continuous integration runs, does what the page says: with the program's own
//! numbers it passes, and with less it fails. It needs QEMU and eventring's plugin for it.

use crate::fixtures::*;
use crate::qemu;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/instruction_budgets.sh");
const WORKFLOW: &str = include_str!("../../../../../docs/ci/instruction-budgets.yml");

fn example() -> PathBuf {
    // `cargo test` builds the examples, unless its options select a single test.
    let program = Path::new(PROGRAM).parent().unwrap().join("examples/instruction_budgets");
    assert!(program.exists(), "{} is missing; build it: cargo build --workspace --examples", program.display());
    program
}

fn script(arguments: &[&str]) -> Run {
    let mut command = Command::new("sh");
    command.arg(SCRIPT).args(arguments).env("EVENTRING", PROGRAM).env("NO_COLOR", "1");
    if let Some(plugin) = qemu::plugin() {
        command.env("EVENTRING_QEMU_PLUGIN", plugin);
    }
    finish(command)
}

#[test]
fn the_script_passes_with_the_numbers_of_the_program_and_fails_with_less() {
    let directory = directory();
    let path = |name: &str| place(&directory, name).to_str().unwrap().to_owned();
    let (base, budgets, output) = (path("base.evc"), path("budgets.toml"), path("counted"));
    let Some(plugin) = qemu::plugin() else { return };
    let example = example();
    let example = example.to_str().unwrap();
    let mut counting = program!("icount", "-o", &base, "--", example);
    counting.env("EVENTRING_QEMU_PLUGIN", plugin);
    finish(counting).ends(0);
    run!("budget", "update", &budgets, &base).ends(0);
    let text = fs::read_to_string(&budgets).unwrap();
    assert!(text.contains("\ntolerance = 0\n"), "{text}");
    script(&[&budgets, &output, &base, "--", example]).ends(0).shows("instructions/call A").shows("order");
    for kept in ["head.evc", "diff.txt", "icount.txt", "bencher.json"] {
        assert!(Path::new(&output).join(kept).metadata().unwrap().len() > 0, "{kept}");
    }

    // A turn more in the inner loop is found, and so is a budget that is a thousandth too small.
    let dearer = script(&[&budgets, &output, &base, "--", example, "101"]);
    assert!(dearer.code == Some(18) && dearer.out.matches("exceeded").count() >= 2, "{dearer:?}");
    let text = fs::read_to_string(&budgets).unwrap();
    let lowered: Vec<String> = text
        .lines()
        .map(|line| match line.strip_prefix("instructions = ").and_then(|number| number.parse::<u64>().ok()) {
            Some(number) => format!("instructions = {}", number - number / 1000),
            None => line.to_owned(),
        })
        .collect();
    fs::write(&budgets, lowered.join("\n")).unwrap();
    let failed = script(&[&budgets, &output, "--", example]).ends(18);
    assert!(
        failed.out.matches("exceeded").count() == 2 && failed.err.contains("eventring budget update"),
        "{failed:?}"
    );
}

#[test]
fn the_script_says_how_it_is_called() {
    for arguments in [&[][..], &["budgets.toml"], &["budgets.toml", "out", "base.evc", "x", "program"]] {
        let refused = script(arguments);
        assert!(refused.code == Some(2) && refused.err.starts_with("usage: "), "{refused:?}");
    }
}

#[test]
fn the_script_says_which_file_is_missing() {
    let directory = directory();
    let path = |name: &str| place(&directory, name).to_str().unwrap().to_owned();
    let (base, budgets, output) = (path("base.evc"), path("budgets.toml"), path("counted"));
    script(&[&budgets, &output, "--", "program"]).fails(3, "eventring budget update");
    fs::write(&budgets, "").unwrap();
    script(&[&budgets, &output, &base, "--", "program"]).fails(3, "there is no capture");
}

#[test]
fn the_workflow_runs_this_script() {
    assert!(WORKFLOW.contains("eventring/examples/instruction_budgets.sh program/budgets.toml counted $base -- "));
}
