//! `eventring VERB --json-schema`: the schema of what `--json` prints, of all verbs in one place.
//!
//! A schema is printed from the type that the verb prints, so it cannot differ from it. A schema of lines is that of
//! each line. The number at the end of `$id` grows when a field goes away or changes its meaning; new fields leave it
//! as it is.

use super::exit::Exit;
use clap::Command;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write as _;

/// Returns a schema.
type Make = fn() -> Schema;

/// Returns the table of the verbs whose schemas are still kept by hand.
macro_rules! schemas {
    ($($verb:literal),* $(,)?) => {
        [$(($verb, || text(include_str!(concat!("../json-schemas/", $verb, ".json"))))),*]
    };
}

/// The verbs with `--json`, and their schemas.
const SCHEMAS: [(&str, Make); 11] = [
    ("ask", of::<eventring_ask::LookAnswer<'_>>),
    ("clean", of::<super::clean::Cleaned>),
    ("diff", of_part::<eventring_report::compare::ComparisonAnswer<'_>>),
    ("export", of::<super::export::Exported<'_>>),
    ("find", of::<super::find::FindLine<'_>>),
    ("open", of_part::<super::open::OpenAnswer<'_>>),
    ("summary", of_part::<super::summary::SummaryAnswer<'_>>),
    ("tasks", of_part::<eventring_tasks::Answer>),
    ("top", of_part::<super::top::TopAnswer<'_>>),
    ("watch", of::<super::watch::WatchLine<'_>>),
    ("why", of_part::<eventring_profile::why::Answer>),
];

const KEPT: [(&str, Make); 18] = schemas![
    "archive", "blocks", "budget", "capture", "check", "core", "forward", "gateway", "icount", "info", "levels",
    "list", "profile", "receive", "replay", "report", "snapshot", "view",
];

fn text(schema: &str) -> Schema {
    serde_json::from_str(schema).unwrap_or_default()
}

/// Returns the schema of a type as it is printed. An object has no keys but those of its type.
fn of<T: JsonSchema>() -> Schema {
    let close = |schema: &mut Schema| {
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    };
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(close));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of an answer with a list of which a part can be asked for: then it says what was cut.
fn of_part<T: JsonSchema>() -> Schema {
    let mut schema = of::<T>();
    let cut = serde_json::to_value(of::<crate::args::limit::Cut>()).unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.extend(cut["properties"].as_object().cloned().unwrap_or_default());
    }
    schema
}

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

fn all() -> impl Iterator<Item = (&'static str, Make)> {
    SCHEMAS.into_iter().chain(KEPT)
}

/// Prints the schema of a verb.
pub(super) fn print(verb: &str) -> anyhow::Result<Exit> {
    let Some((_, schema)) = all().find(|(name, _)| *name == verb) else {
        let mut names: Vec<&str> = all().map(|(name, _)| name).collect();
        names.sort_unstable();
        return Exit::Usage.fail(format!("{OPTION}: `{verb}` has no --json; these have: {}", names.join(", ")));
    };
    let mut schema = schema();
    schema.insert("$id".to_owned(), format!("urn:eventring:json-schema:{verb}:1").into());
    schema.insert("title".to_owned(), format!("what `eventring {verb} --json` prints").into());
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&schema)?)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn each_verb_with_json_has_a_schema_and_no_other_verb_has() {
        let cli = crate::Cli::command();
        let has_json = |verb: &Command| {
            let of = |command: &Command| command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            of(verb) || verb.get_subcommands().any(of)
        };
        let mut verbs: Vec<&str> = cli.get_subcommands().filter(|verb| has_json(verb)).map(Command::get_name).collect();
        verbs.sort_unstable();
        let mut named: Vec<&str> = all().map(|(name, _)| name).collect();
        named.sort_unstable();
        // Verbs that this program was built without have no options.
        let is_built = |name: &&str| cli.find_subcommand(name).is_none_or(has_json);
        assert_eq!(verbs, named.into_iter().filter(is_built).collect::<Vec<_>>());
        for (name, schema) in all() {
            assert_eq!(schema().get("$schema").unwrap(), "https://json-schema.org/draft/2020-12/schema", "{name}");
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
