//! The names of the files that triggers write.

use crate::exit::{Exit, Failure};
use std::path::{Path, PathBuf};

/// The longest part of a file's name that comes from a span or an event, in bytes.
const NAME_BYTES_MAX: usize = 60;

/// A pattern of names: a path in which `{n}` stands for a number, `{span}` for what fired, and `{time}` for the time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NameTemplate {
    text: String,
}

/// The parts of a name.
pub(super) struct NameParts<'p> {
    pub(super) number: u64,
    /// The name of the span or of the event; or `death`, `signal` or `rate`.
    pub(super) what: &'p str,
    /// The time, as `2026-11-23T03.04.05`.
    pub(super) time: &'p str,
}

impl NameTemplate {
    /// Returns the names of the files: those of `output`, or else names that begin with that of the ring.
    pub(super) fn of(output: Option<&Path>, ring: &Path) -> Result<Self, Failure> {
        let text = match output {
            Some(output) => output.to_str().map(str::to_owned),
            // A name of a ring may have braces.
            None => ring.file_name().and_then(|name| name.to_str()).map(|name| {
                let plain: String = name.chars().map(|c| if "{}/".contains(c) { '_' } else { c }).collect();
                format!("{plain}-{{n}}-{{span}}.evc")
            }),
        };
        let parsed = text.ok_or_else(|| "the name is no UTF-8".to_owned()).and_then(|text| Self::parse(&text));
        parsed.map_err(|problem| Exit::Usage.failure(format!("--output with --on: {problem}")))
    }

    /// Parses a template. It must have `{n}`, because each file needs a name of its own.
    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
            if !["n", "span", "time"].contains(&name) {
                return Err(format!("found `{{{name}}}`, expected {{n}}, {{span}} or {{time}}"));
            }
            rest = after;
        }
        if !text.contains("{n}") {
            return Err("expected a name with {n}, because there may be several files: slow-{n}-{span}.evc".to_owned());
        }
        if Path::new(text).file_name().is_none() || text.ends_with('/') {
            return Err("expected the name of a file, like slow-{n}-{span}.evc".to_owned());
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, parts: &NameParts<'_>) -> PathBuf {
        // The number comes last: a name cannot bring a further `{n}` into the text.
        let text = self.text.replace("{time}", parts.time).replace("{n}", &parts.number.to_string());
        text.replace("{span}", &plain(parts.what)).into()
    }

    /// Returns the directory in which all files lie, at any depth.
    pub(super) fn directory(&self) -> PathBuf {
        let parent = Path::new(&self.text).parent().unwrap_or("".as_ref());
        let is_fixed = |part: &std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains('{');
        let fixed: PathBuf = parent.components().take_while(is_fixed).collect();
        if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
    }

    /// Returns true if files may lie in directories of their own, whose names depend on what fires.
    pub(super) fn has_directories(&self) -> bool {
        Path::new(&self.text).parent().is_some_and(|parent| parent.to_string_lossy().contains('{'))
    }
}

/// Returns a text as a part of a file's name: only letters, digits, dots, hyphens and underscores stay.
fn plain(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(NAME_BYTES_MAX)];
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = cut.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name that begins with a dot would be hidden, and `..` leads elsewhere.
    match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if plain.is_empty() => "_".to_owned(),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(template: &str, what: &str) -> PathBuf {
        let parts = NameParts { number: 7, what, time: "2026-11-23T03.04.05" };
        NameTemplate::parse(template).unwrap().path(&parts)
    }

    #[test]
    fn names_are_made_of_the_number_the_span_and_the_time() {
        assert_eq!(path("slow-{n}-{span}.evc", "db.query"), Path::new("slow-7-db.query.evc"));
        assert_eq!(path("d/{time}-{n}.evc", "x"), Path::new("d/2026-11-23T03.04.05-7.evc"));
    }

    #[test]
    fn names_of_spans_lead_nowhere_else() {
        assert_eq!(path("{n}-{span}", "../../etc/{n}"), Path::new("7-_._.._etc__n_"));
        assert_eq!(path("{n}/{span}", ".."), Path::new("7/_."));
        assert_eq!(path("{n}{span}", &"ä".repeat(100)).to_str().unwrap().len(), 1 + NAME_BYTES_MAX);
        assert_eq!(path("{n}-{span}", ""), Path::new("7-_"));
    }

    #[test]
    fn templates_without_a_number_or_with_unknown_parts_are_refused() {
        for text in ["slow.evc", "{n", "{n}-{user}", "{n}/", ""] {
            assert!(NameTemplate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_directory_is_the_part_of_the_path_that_is_the_same_for_all_files() {
        let directories = [
            ("{n}", ".", false),
            ("a/b/{n}", "a/b", false),
            ("a/{span}/b/{n}", "a", true),
            ("{n}/x", ".", true),
            ("/{n}/x", "/", true),
        ];
        for (text, directory, has_directories) in directories {
            let template = NameTemplate::parse(text).unwrap();
            assert_eq!(
                (template.directory(), template.has_directories()),
                (directory.into(), has_directories),
                "{text}"
            );
        }
    }
}
