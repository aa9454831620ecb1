//! The list of verbs in `eventring --help`, by groups. Clap has no groups of subcommands.

use super::GROUPS;
use crate::text::format::columns;
use clap::Command;
use std::fmt::Write as _;

/// The columns of a help text if nothing says how many there are, and at most, as for clap's own texts.
const COLUMNS: usize = 100;
const COLUMNS_MAX: usize = 120;

/// Returns the command with its help in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let given = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = columns(&std::io::stdout()).or_else(given).unwrap_or(COLUMNS).min(COLUMNS_MAX);
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let groups = groups(&command);
    let name_width = groups.iter().flat_map(|(_, verbs)| verbs).map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (heading, verbs) in &groups {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for (name, about) in verbs {
            let _ = write!(list, "  {literal}{name}{literal:#}{:1$}", "", name_width - name.len() + 2);
            let _ = writeln!(list, "{}", folded(about, name_width + 4, width));
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n       eventring FILE [OPTIONS], which is `ask FILE`\n\n\
         {list}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Returns the headings, and the verbs of each group with the line that each says of itself.
fn groups(command: &Command) -> Vec<(&'static str, Vec<(String, String)>)> {
    let line = |before: &str, verb: &Command| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        (format!("{before}{}", verb.get_name()), about)
    };
    let of_group = |verbs: &[&str]| {
        verbs.iter().filter_map(|name| Some(line("", command.find_subcommand(name.to_lowercase())?))).collect()
    };
    let exec = command.find_subcommand("exec").into_iter().flat_map(Command::get_subcommands);
    let exec = exec.map(|verb| line("exec ", verb)).collect();
    let groups = GROUPS.iter().map(|(heading, verbs)| (*heading, of_group(verbs)));
    groups.chain([("Execution events of a node", exec)]).collect()
}

/// Returns a text broken between words where it would go beyond `width`. It begins after `indent` columns, and so do
/// its further lines.
fn folded(text: &str, indent: usize, width: usize) -> String {
    let (mut out, mut column) = (String::new(), indent);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    #[test]
    fn each_verb_is_in_exactly_one_group_with_the_line_of_its_definition() {
        let command = crate::verbs::Cli::command();
        let listed: Vec<(String, String)> = groups(&command).into_iter().flat_map(|(_, verbs)| verbs).collect();
        let top = command.get_subcommands().filter(|verb| verb.get_name() != "exec").map(|verb| ("", verb));
        let exec = command.find_subcommand("exec").unwrap().get_subcommands().map(|verb| ("exec ", verb));
        let defined: BTreeSet<(String, String)> = top
            .chain(exec)
            .map(|(before, verb)| (format!("{before}{}", verb.get_name()), verb.get_about().unwrap().to_string()))
            .collect();
        assert_eq!(listed.len(), defined.len(), "{listed:?}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), defined);
    }

    #[test]
    fn a_long_line_is_broken_between_words_and_goes_on_under_its_beginning() {
        assert_eq!(folded("one two three", 4, 11), "one two\n    three");
        assert_eq!(folded("wordthatistoolong b", 2, 8), "wordthatistoolong\n  b");
    }
}
