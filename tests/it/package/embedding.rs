//! A program that only embeds the recorder compiles no crate of the command line, of compression or of the exports.
//! docs/EMBEDDING.md lists exactly the crates that it compiles, whatever their patch versions are.

use crate::fixtures::*;

/// The crates that only tools, compression and exports need.
const FOREIGN: [&str; 14] = [
    "anstream",
    "anyhow",
    "clap",
    "indicatif",
    "jiff",
    "prost",
    "ratatui",
    "serde",
    "serde_json",
    "signal-hook",
    "tracing",
    "tracing-core",
    "tracing-subscriber",
    "zstd",
];

fn tree(features: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--package", "eventring", "--no-default-features"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The paths of this checkout are removed.
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.split(" (/").next().unwrap().trim_end());
    without_patch_versions(&lines.collect::<Vec<_>>().join("\n"))
}

fn without_patch_versions(tree: &str) -> String {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let short = |word: &str| match word.rsplit_once('.') {
        Some((short, patch)) if word.starts_with('v') && is_number(patch) && short.contains('.') => short.to_owned(),
        _ => word.to_owned(),
    };
    let lines = tree.lines().map(|line| line.split(' ').map(short).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_embedded_recorder_pulls_in_no_tool_and_the_document_shows_its_tree() {
    let tree = tree(&["--features", "macros"]);
    for line in tree.lines() {
        let name = line.trim_start_matches(['│', '├', '└', '─', ' ']).split(' ').next().unwrap();
        assert!(!FOREIGN.contains(&name), "{name} is in\n{tree}");
    }
    let document = include_str!("../../../docs/EMBEDDING.md");
    let (_, shown) = document.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("\n```").unwrap();
    assert_eq!(without_patch_versions(shown), tree, "docs/EMBEDDING.md shows another tree");
}

#[test]
fn a_reader_alone_needs_six_crates_of_others() {
    let tree = tree(&[]);
    let direct: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.trim_start_matches(['├', '└']).strip_prefix("── ")?.split(' ').next())
        .collect();
    assert_eq!(direct, ["arrayvec", "crossbeam-utils", "libc", "once_cell", "rustix", "tiny-keccak"]);
}
