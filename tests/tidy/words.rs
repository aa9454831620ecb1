//! Names and prose of the source, as `tidy_words` judges them.

use super::{files, root};
use std::fs;
use std::path::Path;

/// A Rust file, by its path from the project's root.
pub struct RustFile {
    pub path: String,
    pub text: String,
}

/// Returns all Rust files below the directories.
pub fn rust_files(directories: &[&str]) -> Vec<RustFile> {
    let paths = directories.iter().flat_map(|directory| files(&root().join(directory), "rs"));
    paths.map(|path| RustFile { path: relative(&path), text: fs::read_to_string(&path).unwrap() }).collect()
}

/// Returns the path from the project's root.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// An item of the source that has a name, such as `struct Reader` or `fn open`.
#[derive(Debug, PartialEq)]
pub struct Item {
    pub kind: &'static str,
    pub name: String,
}

impl Item {
    pub fn is_type(&self) -> bool {
        self.kind != "fn"
    }
}

/// Returns the types, traits and functions that `code` defines. The comments must have been removed from `code`.
pub fn items(code: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for line in code.lines() {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        // The keyword is `fn`, for example, in `pub(in crate::cli) const unsafe fn name`. All words before it are
        // qualifiers.
        let qualifiers = ["pub", "crate", "super", "self", "in", "const", "unsafe", "async", "extern"];
        let mut word = words.next();
        let is_qualifier = |word: &str| qualifiers.contains(&word) || line.contains(&format!("::{word})"));
        while word.is_some_and(is_qualifier) {
            word = words.next();
        }
        let kinds = ["struct", "enum", "union", "trait", "fn"];
        if let (Some(kind), Some(name)) = (kinds.into_iter().find(|kind| word == Some(kind)), words.next())
            // The variable of a macro is no item.
            && !line.contains(&format!("{kind} $"))
        {
            items.push(Item { kind, name: name.to_owned() });
        }
    }
    items
}

/// Splits a path or a name into lower-case words: both `span_cells` and `SpanCells` become `span` and `cells`.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && previous.is_lowercase() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the first line of each doc comment, with its line number. A line after a blank doc line does not count as
/// the first one, since it belongs to the same comment.
pub fn doc_openers(text: &str) -> Vec<(usize, &str)> {
    let mut openers = Vec::new();
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        for marker in ["/// ", "//! "] {
            if let Some(words) = line.strip_prefix(marker)
                && !previous.starts_with(marker.trim_end())
            {
                openers.push((index + 1, words));
            }
        }
        previous = line;
    }
    openers
}

/// Returns the lines that are comments, with their numbers.
pub fn comment_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|line| line.1.trim_start().starts_with("//"))
}

/// Returns the lines of a Markdown text that are neither in a table nor in a code fence, with their line numbers.
pub fn markdown_prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_fence = false;
    let mut prose = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence && !line.trim_start().starts_with('|') {
            prose.push((index + 1, line));
        }
    }
    prose
}

/// Returns the terms of the glossary in docs/ARCHITECTURE.md: one list for each row of the table.
pub fn glossary(architecture: &str) -> Vec<Vec<String>> {
    let rows =
        architecture.lines().skip_while(|line| *line != "## Glossary").skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let terms = rows.map(|row| row.trim_start_matches('|').split('|').next().unwrap_or_default());
    terms.map(|terms| terms.split(',').map(|term| term.trim().to_owned()).collect()).collect()
}

/// Returns the text in lower case on one line, without comment markers. So a search finds a term even if the term was
/// wrapped onto two lines.
pub fn flat(text: &str) -> String {
    let markers: &[char] = &['/', '!', '*'];
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(markers));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns true if `term`, or its plural, occurs in the [`flat`] text and is not part of a longer word.
pub fn has_term(flat: &str, term: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    flat.match_indices(&term.to_lowercase()).any(|(at, found)| {
        let rest = &flat[at + found.len()..];
        !is_part(flat[..at].chars().next_back()) && !is_part(rest.strip_prefix('s').unwrap_or(rest).chars().next())
    })
}
