//! `eventring VERB --json-schema`: the schema of what `--json` prints, of all verbs in one place.
//!
//! A verb with `--json` has a file in `json-schemas/` and a line here. A schema of lines is that of each line. The
//! number at the end of `$id` grows when a field goes away or changes its meaning; new fields leave it as it is.

use super::exit::Exit;
use clap::Command;
use std::ffi::OsString;
use std::io::Write as _;

/// Returns the table of these verbs.
macro_rules! schemas {
    ($($verb:literal),* $(,)?) => {
        [$(($verb, include_str!(concat!("../json-schemas/", $verb, ".json")))),*]
    };
}

/// The verbs with `--json`, and their schemas.
const SCHEMAS: [(&str, &str); 29] = schemas![
    "archive", "ask", "blocks", "budget", "capture", "check", "clean", "core", "diff", "export", "find", "forward",
    "gateway", "icount", "info", "levels", "list", "open", "profile", "receive", "replay", "report", "snapshot",
    "summary", "tasks", "top", "view", "watch", "why",
];

/// The option.
pub(super) const OPTION: &str = "--json-schema";

/// Returns the verb whose schema is asked for, before other arguments are looked at: they are not needed then. What
/// follows `--` belongs to another program.
pub(super) fn asked(cli: &Command, arguments: &[OsString]) -> Option<String> {
    let ours = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let words: Vec<&str> = ours.filter_map(|argument| argument.to_str()).collect();
    let verb = words.iter().find(|word| cli.find_subcommand(word).is_some())?;
    words.contains(&OPTION).then(|| (*verb).to_owned())
}

/// Prints the schema of a verb.
pub(super) fn print(verb: &str) -> anyhow::Result<Exit> {
    let Some((_, schema)) = SCHEMAS.iter().find(|(name, _)| *name == verb) else {
        let names = SCHEMAS.map(|(name, _)| name).join(", ");
        return Exit::Usage.fail(format!("{OPTION}: `{verb}` has no --json; these have: {names}"));
    };
    let mut out = std::io::stdout();
    out.write_all(schema.as_bytes())?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn each_verb_with_json_has_a_schema_with_its_name_and_a_version_and_no_other_verb_has() {
        let cli = crate::Cli::command();
        let has_json = |verb: &Command| {
            let of = |command: &Command| command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            of(verb) || verb.get_subcommands().any(of)
        };
        let mut verbs: Vec<&str> = cli.get_subcommands().filter(|verb| has_json(verb)).map(Command::get_name).collect();
        verbs.sort_unstable();
        let named: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        // Verbs that this program was built without have no options.
        let is_built = |name: &&str| cli.find_subcommand(name).is_none_or(has_json);
        assert_eq!(verbs, named.iter().copied().filter(is_built).collect::<Vec<_>>());
        for (name, text) in SCHEMAS {
            let schema: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
            assert_eq!(schema["$id"], format!("urn:eventring:json-schema:{name}:1"));
        }
    }

    #[test]
    fn only_what_is_before_another_program_is_ours() {
        let cli = crate::Cli::command();
        let asked = |words: &[&str]| asked(&cli, &words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked(&["eventring", "summary", "--json-schema"]).as_deref(), Some("summary"));
        assert_eq!(asked(&["eventring", "--color", "never", "why", "x", "--json-schema"]).as_deref(), Some("why"));
        assert_eq!(asked(&["eventring", "capture", "shop", "--", "program", "--json-schema"]), None);
        assert_eq!(asked(&["eventring", "--json-schema"]), None);
    }
}
