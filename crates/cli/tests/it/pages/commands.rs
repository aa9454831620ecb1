//! The commands of the pages.

use crate::fixtures::*;
use std::fmt;

/// A command of a page.
pub struct Printed {
    /// The file name of the page.
    pub page: String,
    /// Its line.
    pub line: usize,
    /// The command without its comment.
    pub text: String,
    /// What the page says that it prints.
    pub printed: String,
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.page, self.line, self.text)
    }
}

/// Returns the commands of all `sh` and `console` blocks of README and of `docs/`, page by page.
pub fn all() -> Vec<Printed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(is_page).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages.iter().flat_map(|page| of_page(page)).collect()
}

fn of_page(path: &Path) -> Vec<Printed> {
    let page = path.file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap();
    let mut commands: Vec<Printed> = Vec::new();
    let (mut language, mut goes_on) = (None, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(fence) = line.strip_prefix("```") {
            language = if language.is_none() { Some(fence) } else { None };
            goes_on = false;
            continue;
        }
        let begin = match language {
            Some("console") => line.strip_prefix("$ "),
            Some("sh") => Some(line).filter(|line| !line.is_empty() && !line.starts_with('#')),
            _ => continue,
        };
        let (command, is_new) = match begin {
            Some(command) if !goes_on => (command, true),
            _ if goes_on => (line, false),
            _ => {
                // Lines before the first command of a block are nobody's.
                if let Some(last) = commands.last_mut() {
                    last.printed += &format!("{line}\n");
                }
                continue;
            }
        };
        let command = command.split(" # ").next().unwrap().trim_end();
        goes_on = command.ends_with('\\');
        let command = command.trim_end_matches('\\');
        if is_new {
            let (page, text) = (page.to_owned(), command.to_owned());
            commands.push(Printed { page, line: number + 1, text, printed: String::new() });
        } else if let Some(last) = commands.last_mut() {
            last.text += command;
        }
    }
    commands
}
