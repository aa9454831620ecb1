//! Names, docs and prose keep to the language of the project. The glossary of this language is in
//! docs/ARCHITECTURE.md, and its rules are in CONTRIBUTING.md.

mod tidy;

use std::collections::BTreeMap;
use tidy::words::{
    RustFile, comment_lines, doc_openers, flat, glossary, has_term, items, markdown_prose, relative, rust_files, words,
};
use tidy::{code, files, for_tests, root};

/// Folders whose names and prose are not held to the rules yet.
const EXEMPT: [&str; 0] = [];

/// Names that say nothing about the content.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "manager", "managers", "helper", "helpers", "misc"];

/// Pairs of a folder and a word. No name in the folder may contain the word, because the glossary has another word
/// for the same thing.
const RETIRED: [(&str, &str); 22] = [
    ("src/", "lane"),
    ("src/", "lanes"),
    ("src/", "told"),
    ("src/", "said"),
    ("src/", "made"),
    ("src/", "settle"),
    ("src/", "settles"),
    ("src/", "settled"),
    ("src/", "seat"),
    ("src/", "seats"),
    ("src/", "home"),
    ("src/", "entered"),
    ("src/", "picture"),
    ("src/", "pictures"),
    ("src/", "business"),
    ("src/", "anew"),
    ("src/tracing/", "cells"),
    ("src/clock/", "published"),
    ("src/clock/", "line"),
    ("src/capture/", "account"),
    ("src/capture/", "item"),
    ("recorder-macros/", "lane"),
];

/// Endings that function names may not have. The names `try_*`, `*_slow` and `*_batch` take their place.
const RETIRED_ENDINGS: [&str; 7] = ["_at_once", "_otherwise", "_late", "_elsewhere", "_further", "_deep", "_anew"];

/// Type names that several modules may define.
const SHARED_TYPE_NAMES: [(&str, &str); 2] = [
    ("Args", "the arguments of a verb: each verb's module has its own"),
    ("Inner", "the boxed content of an error: private to its module"),
];

/// Names of files that stand in for another file, on other operating systems or machines. They define the same types.
const TWIN_FILES: [&str; 2] = ["unsupported.rs", "portable.rs"];

/// Beginnings of doc comments that name no thing and no action.
const NOUNLESS_OPENERS: [&str; 22] = [
    "What ",
    "What's ",
    "Who ",
    "Whose ",
    "That ",
    "Whether ",
    "As ",
    "How ",
    "Which ",
    "Why ",
    "For who",
    "For those ",
    "False:",
    "True:",
    "`None`:",
    "Behind ",
    "It ",
    "They ",
    "Those ",
    "Of ",
    "So ",
    "Not ",
];

/// Most columns of a line of prose.
const COLUMNS_MAX: usize = 120;
/// Most rows of the glossary.
const GLOSSARY_ROWS_MAX: usize = 34;

fn is_exempt(path: &str) -> bool {
    EXEMPT.iter().any(|folder| path.starts_with(folder))
}

/// Returns the faults in the names of files, types, traits and functions.
fn faults_of_names(files: &[RustFile]) -> Vec<String> {
    let mut faults = Vec::new();
    for RustFile { path, text } in files {
        let mut judge = |what: String, name: &str| {
            for word in words(name) {
                let is_retired = RETIRED.iter().any(|(folder, retired)| path.starts_with(folder) && word == *retired);
                if is_retired || EMPTY_NAMES.contains(&word.as_str()) {
                    faults.push(format!("{path}: {what} has the word `{word}`"));
                }
            }
        };
        let stem = path.trim_end_matches(".rs").rsplit('/').next().unwrap();
        judge("the file name".to_owned(), stem);
        let items = items(&code(text));
        items.iter().for_each(|item| judge(format!("{} {}", item.kind, item.name), &item.name));
        for item in items.iter().filter(|item| !item.is_type()) {
            if let Some(ending) = RETIRED_ENDINGS.iter().find(|ending| item.name.ends_with(**ending)) {
                faults.push(format!("{path}: fn {} ends in `{ending}`", item.name));
            }
        }
    }
    faults
}

/// Returns the type names that more than one file defines.
fn shared_type_names(files: &[RustFile]) -> BTreeMap<String, Vec<&str>> {
    let mut places = BTreeMap::<String, Vec<&str>>::new();
    for file in files {
        for item in items(&code(&file.text)).into_iter().filter(|item| item.is_type()) {
            places.entry(item.name).or_default().push(&file.path);
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    places
}

/// Returns the lines of prose that are too long.
fn long_lines<'a>(path: &str, prose: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<String> {
    let too_long = prose.into_iter().filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
    too_long.map(|(number, line)| format!("{path}:{number}: {} columns", line.chars().count())).collect()
}

/// Returns the doc comments that begin with one of [`NOUNLESS_OPENERS`].
fn nounless_docs(file: &RustFile) -> Vec<String> {
    let openers = doc_openers(&file.text).into_iter();
    let nounless = openers.filter(|(_, words)| NOUNLESS_OPENERS.iter().any(|opener| words.starts_with(opener)));
    nounless.map(|(number, words)| format!("{}:{number}: {words}", file.path)).collect()
}

/// Returns the glossary's terms that the source never uses.
fn unused_terms(glossary: &[Vec<String>], source: &str) -> Vec<String> {
    let source = flat(source);
    let terms = glossary.iter().flatten();
    terms.filter(|term| !has_term(&source, term)).cloned().collect()
}

fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{} faults: {rule}\n{}", faults.len(), faults.join("\n"));
}

/// Returns the project's source without exempt folders.
fn judged(directories: &[&str]) -> Vec<RustFile> {
    rust_files(directories).into_iter().filter(|file| !is_exempt(&file.path)).collect()
}

/// Returns the files of the library, the program and the derives, without those that are compiled only for tests.
fn judged_code() -> Vec<RustFile> {
    let files = rust_files(&["src", "recorder-macros/src"]);
    let for_tests = for_tests(files.iter().map(|file| (file.path.as_str(), file.text.as_str())));
    let is_test = |path: &str| for_tests.iter().any(|test| path.starts_with(test));
    files.into_iter().filter(|file| !is_test(&file.path) && !is_exempt(&file.path)).collect()
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap()
}

#[test]
fn files_types_and_functions_have_the_words_of_the_glossary() {
    assert_none(&faults_of_names(&judged_code()), "use the glossary's words (docs/ARCHITECTURE.md)");
}

#[test]
fn no_type_name_is_defined_twice() {
    // The derives are a crate of their own.
    let is_twin = |path: &str| TWIN_FILES.iter().any(|ending| path.ends_with(ending));
    let mut files = judged_code();
    files.retain(|file| file.path.starts_with("src/") && !is_twin(&file.path));
    let mut shared = shared_type_names(&files);
    SHARED_TYPE_NAMES.iter().for_each(|(name, _)| drop(shared.remove(*name)));
    let faults: Vec<String> = shared.iter().map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect();
    assert_none(&faults, "give each type a name of its own");
}

#[test]
fn the_glossary_is_short_and_its_terms_are_used() {
    let glossary = glossary(&architecture());
    assert!((10..=GLOSSARY_ROWS_MAX).contains(&glossary.len()), "the glossary has {} rows", glossary.len());
    let source: String = rust_files(&["src"]).into_iter().map(|file| file.text + "\n").collect();
    let mut unused = unused_terms(&glossary, &source);
    // The code of the exempt folders does not have all terms yet.
    if !EXEMPT.is_empty() {
        println!("not in the source yet: {}", unused.join(", "));
        unused.clear();
    }
    assert_none(&unused, "use the term in the source, or take it out of the glossary");
}

#[test]
fn lines_of_prose_are_not_long() {
    let mut faults = Vec::new();
    for file in judged(&["src", "recorder-macros", "tests"]) {
        faults.extend(long_lines(&file.path, comment_lines(&file.text)));
    }
    let mut documents = files(&root().join("docs"), "md");
    documents.push(root().join("README.md"));
    for document in documents.iter().filter(|document| !is_exempt(&relative(document))) {
        let text = std::fs::read_to_string(document).unwrap();
        faults.extend(long_lines(&relative(document), markdown_prose(&text)));
    }
    assert_none(&faults, "wrap comments and documents at 120 columns");
}

#[test]
fn docs_begin_with_a_noun_or_a_verb() {
    let faults: Vec<String> = judged(&["src", "recorder-macros", "tests"]).iter().flat_map(nounless_docs).collect();
    assert_none(&faults, "begin a function's doc with a verb, every other doc with a noun");
}

#[test]
fn planted_faults_are_found() {
    let file = |path: &str, text: &str| RustFile { path: path.to_owned(), text: text.to_owned() };
    let faults = faults_of_names(&[
        file("src/ring/lane.rs", "pub(in crate::ring) struct LaneId;\n/// Not a struct Lane.\nfn fill_otherwise() {}"),
        file("src/shm/utils.rs", "pub const unsafe fn plane() {}\nenum FileManager { Lane }"),
        file("src/clock/latch.rs", "trait PublishedLine {}"),
        file("src/schema/exec/account.rs", "struct AccountAccess;"),
    ]);
    assert_eq!(
        faults,
        [
            "src/ring/lane.rs: the file name has the word `lane`",
            "src/ring/lane.rs: struct LaneId has the word `lane`",
            "src/ring/lane.rs: fn fill_otherwise ends in `_otherwise`",
            "src/shm/utils.rs: the file name has the word `utils`",
            "src/shm/utils.rs: enum FileManager has the word `manager`",
            "src/clock/latch.rs: trait PublishedLine has the word `published`",
            "src/clock/latch.rs: trait PublishedLine has the word `line`",
        ]
    );

    let files = [
        file("src/a.rs", "struct Slot;\nstruct $name;\nfn open() {}"),
        file("src/b.rs", "pub enum Slot {}\nfn open() {}"),
    ];
    assert_eq!(shared_type_names(&files), BTreeMap::from([("Slot".to_owned(), vec!["src/a.rs", "src/b.rs"])]));

    let wide = "x".repeat(COLUMNS_MAX - 2);
    let text = format!("// {wide}\nlet s = \"{wide}{wide}\";\n//{wide}\n");
    assert_eq!(long_lines("a.rs", comment_lines(&text)), ["a.rs:1: 121 columns"]);
    let text = format!("# A\n```text\n{wide}---\n```\n| {wide} |\n{wide}---\n");
    assert_eq!(long_lines("a.md", markdown_prose(&text)), ["a.md:6: 121 columns"]);

    let docs = file(
        "a.rs",
        "//! What is here.\n/// Returns it.\n/// What else.\nfn f() {}\n  /// Whether it is.\n// How so.\n",
    );
    assert_eq!(nounless_docs(&docs), ["a.rs:1: What is here.", "a.rs:5: Whether it is."]);

    let table = "# A\n## Glossary\n\nText.\n\n| word | meaning |\n|---|---|\n| ring | A file. |\n| span slice, gap | A time. |\n\n| x |\n";
    let glossary = glossary(table);
    assert_eq!(glossary, [vec!["ring"], vec!["span slice", "gap"]]);
    assert_eq!(unused_terms(&glossary, "/// All Rings and span\n    /// slices. gaping"), ["gap"]);
    assert_eq!(unused_terms(&glossary, "string, a_ring; span slice; gap"), ["ring"]);
}
