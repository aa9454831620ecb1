//! The project's own source, as the tidiness tests read it.

#![allow(dead_code, reason = "each test file uses some of it")]

pub mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of the library or the program.
pub struct Source {
    /// Path below `src/`: `ring/memory.rs`.
    pub path: String,
    pub lines: usize,
    /// The file's text without comments, without the content of strings, and without test modules.
    pub code: String,
}

pub fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Returns all files below `directory` that have this extension, except the files that Cargo has built there.
pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns all source files except those that are compiled for tests only.
pub fn sources() -> Vec<Source> {
    let root = root().join("src");
    let all: Vec<(String, String)> = files(&root, "rs")
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    let for_tests = for_tests(all.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert!(all.len() > 50, "the source was not found");
    all.into_iter()
        .filter(|(path, _)| !for_tests.iter().any(|test| path.starts_with(test)))
        .map(|(path, text)| Source { path, lines: text.lines().count(), code: code(&text) })
        .collect()
}

/// Returns the paths of all modules that are compiled only for tests, because their parent declares them under a
/// `cfg` with `test`. A returned path is that of a file, or the beginning of the paths of all files in a folder.
pub fn for_tests<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    files.flat_map(|(path, text)| test_files(path, text)).collect()
}

/// Returns the paths of the modules that `text` declares under a `cfg` with `test`. A path is a file, or the
/// beginning of the paths in a folder.
fn test_files(path: &str, text: &str) -> Vec<String> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(") && pair[0].contains("test"));
    let names = declared.filter_map(|pair| pair[1].strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name));
    // The submodules of `a/b.rs` are in `a/b/`; those of `a/mod.rs` are in `a/`. Both folders are tried.
    let folders = [directory, path.trim_end_matches(".rs")];
    let paths = |name| folders.map(|folder| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]);
    names.flat_map(|name| paths(name).into_iter().flatten()).collect()
}

/// Returns `text` without comments, without the content of strings, and without `#[cfg(test)] mod … { … }`. A test
/// module ends at the first `}` in the first column.
pub fn code(text: &str) -> String {
    let mut out = String::new();
    let mut in_tests = false;
    let mut test_attribute = false;
    for line in text.lines() {
        if in_tests {
            in_tests = line != "}";
            continue;
        }
        if test_attribute && line.starts_with("mod ") && line.ends_with('{') {
            in_tests = true;
            continue;
        }
        test_attribute = line.starts_with("#[cfg(") && line.contains("test");
        out.push_str(&without_strings_and_comment(line));
        out.push('\n');
    }
    out
}

fn without_strings_and_comment(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => drop(chars.next()),
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if in_string => {}
            c => out.push(c),
        }
    }
    out
}

/// Returns true if `word` occurs in `code` and is not part of a longer word.
pub fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

/// A row of the code map in docs/ARCHITECTURE.md.
pub struct Layer {
    /// The names of the layer's folders and files, without ending: `ring` for `ring/`, `sync` for `sync.rs`.
    pub names: Vec<String>,
    pub may_use: Vec<String>,
    pub public_api_only: bool,
    pub unsafe_code: Allowed,
    pub ordering: Allowed,
}

/// Files of a layer in which a word may stand.
#[derive(Debug, PartialEq)]
pub enum Allowed {
    Nowhere,
    Everywhere,
    In(Vec<String>),
}

/// Returns the words in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn allowed(cell: &str) -> Allowed {
    match cell {
        "no" => Allowed::Nowhere,
        "yes" => Allowed::Everywhere,
        files => Allowed::In(quoted(files)),
    }
}

/// Returns the rows of the code map.
pub fn layers() -> Vec<Layer> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| folder |")).skip(2);
    let layers: Vec<Layer> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [names, _, may_use, unsafe_code, ordering] = cells[..] else { panic!("five cells: {row}") };
            let name = |name: String| name.trim_end_matches(".rs").trim_end_matches('/').to_owned();
            Layer {
                names: quoted(names).into_iter().map(name).collect(),
                may_use: quoted(may_use),
                public_api_only: may_use == "public API",
                unsafe_code: allowed(unsafe_code),
                ordering: allowed(ordering),
            }
        })
        .collect();
    assert!(layers.len() > 10, "the table of docs/ARCHITECTURE.md was not found");
    layers
}

/// Returns the name of the layer that a file is in. Returns `None` for `lib.rs`, which is in no layer.
pub fn layer_of(path: &str) -> Option<&str> {
    match path.split_once('/') {
        Some((folder, _)) => Some(folder),
        None => path.strip_suffix(".rs").filter(|name| *name != "lib"),
    }
}
