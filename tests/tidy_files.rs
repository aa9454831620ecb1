//! Source files are short, and the links and the names of scripts in documents are valid.

mod tidy;

use std::fs;
use tidy::{files, root};

/// The most lines that a file may have. A longer file has more than one idea.
const LINES_MAX: usize = 500;
/// The number of lines above which the test's output names a file.
const LINES_MANY: usize = 400;

#[test]
fn no_source_file_is_long() {
    let mut lines: Vec<(usize, String)> = ["src", "recorder-macros/src", "tests", "benches", "examples"]
        .iter()
        .map(|directory| root().join(directory))
        .filter(|directory| directory.is_dir())
        .flat_map(|directory| files(&directory, "rs"))
        .map(|path| {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            (lines, path.strip_prefix(root()).unwrap().display().to_string())
        })
        .collect();
    lines.sort();
    let many: Vec<String> = lines
        .iter()
        .rev()
        .take_while(|file| file.0 > LINES_MANY)
        .map(|(lines, path)| format!("{lines:>5} {path}"))
        .collect();
    println!("{} files, median {} lines; the long ones:\n{}", lines.len(), lines[lines.len() / 2].0, many.join("\n"));
    assert!(lines[lines.len() / 2].0 <= 200, "the median is {} lines", lines[lines.len() / 2].0);
    let longest = lines.last().unwrap();
    assert!(longest.0 <= LINES_MAX, "{} has {} lines, at most {LINES_MAX} are allowed", longest.1, longest.0);
}

/// Returns the targets of the links `[…](…)` in a text, without their anchors. Links into the web are left out.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|target| target.split('#').next().unwrap().to_owned())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut documents = files(&root().join("docs"), "md");
    documents.extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let mut wrong = Vec::new();
    for document in &documents {
        for link in links(&fs::read_to_string(document).unwrap()) {
            if !document.parent().unwrap().join(&link).exists() {
                wrong.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn every_script_that_is_named_is_there() {
    let mut texts = files(&root().join("docs"), "md");
    ["src", "tests", "benches"].iter().for_each(|directory| texts.extend(files(&root().join(directory), "rs")));
    texts.extend(
        [
            "README.md",
            "CONTRIBUTING.md",
            "Cargo.toml",
            "tests/models/Cargo.toml",
            "tests/mutants/Cargo.toml",
            "tests/fuzz/Cargo.toml",
        ]
        .map(|name| root().join(name)),
    );
    let (mut named, mut wrong) = (0, Vec::new());
    for path in &texts {
        for rest in fs::read_to_string(path).unwrap().split(".ci/").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            named += 1;
            if !name.is_empty() && !root().join(".ci").join(&name).is_file() {
                wrong.push(format!("{}: .ci/{name}", path.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(named > 10, "only {named} names were found");
    assert!(wrong.is_empty(), "scripts that are missing:\n{}", wrong.join("\n"));
}

#[test]
fn every_document_is_linked_from_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for document in files(&root().join("docs"), "md") {
        let name = document.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("(docs/{name})")), "README.md does not link docs/{name}");
    }
}
