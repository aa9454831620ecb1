//! `eventring VERB --json-schema`: the schemas of the `--json` output of all verbs.
//!
//! Each schema is made from the type that the verb prints, so schema and output cannot differ. For JSON lines, the
//! schema describes one line.
//!
//! The number at the end of `$id` is a version. It grows when a field is removed or changes its meaning, not when a
//! field is added.

use super::exit::Exit;
use crate::args::limit::Cut;
use clap::Command;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write as _;

/// Returns a schema.
type Make = fn() -> Schema;

/// The verbs with `--json`, and their schemas.
const SCHEMAS: &[(&str, Make)] = &[
    ("ask", of::<eventring_ask::LookAnswer<'static>>),
    ("blocks", of::<Either<eventring_exec::json::BlockJson<'static>, Cut>>),
    ("budget", of_part::<crate::verbs::questions::budget::CheckedBudgets<'static>>),
    ("diff", of_part::<eventring_report::compare::ComparisonAnswer<'static>>),
    ("export", of::<crate::verbs::show::export::Exported<'static>>),
    ("find", of::<crate::verbs::questions::find::FindLine<'static>>),
    #[cfg(feature = "gateway")]
    ("gateway", of::<Either<crate::verbs::exec::gateway::Listening, eventring_gateway::GatewayStats>>),
    ("info", of::<crate::verbs::now::info::Info<'static>>),
    ("open", of_part::<crate::verbs::now::open::OpenAnswer<'static>>),
    ("report", of::<crate::verbs::show::report::Reported<'static>>),
    ("summary", of_part::<crate::verbs::questions::summary::SummaryAnswer<'static>>),
    ("tasks", of_part::<eventring_tasks::Answer>),
    ("top", of_part::<crate::verbs::now::top::TopAnswer<'static>>),
    #[cfg(feature = "view")]
    ("view", of::<crate::verbs::show::view::Shown<'static>>),
    ("watch", of::<crate::verbs::now::watch::WatchLine<'static>>),
    ("why", of_part::<eventring_profile::why::Answer>),
];

/// Those that are about rings of running programs.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
const OF_RINGS: &[(&str, Make)] = &[
    ("archive", of::<crate::verbs::exec::archive::Written>),
    (
        "capture",
        of::<Either<crate::verbs::keep::capture::CaptureAnswer<'static>, crate::verbs::keep::capture::Watched<'static>>>,
    ),
    ("check", of::<crate::verbs::now::check::Checked<'static>>),
    ("clean", of::<crate::verbs::control::clean::Cleaned>),
    ("core", of::<crate::verbs::keep::core::Taken<'static>>),
    #[cfg(feature = "forward")]
    (
        "forward",
        of::<Either<crate::verbs::keep::forward::Forwarded<'static>, crate::verbs::keep::forward::Sent<'static>>>,
    ),
    ("icount", of::<crate::verbs::keep::icount::Counted<'static>>),
    ("levels", of::<crate::verbs::control::levels::Levels<'static>>),
    ("list", of_part::<crate::verbs::now::list::Listed<'static>>),
    #[cfg(feature = "profile")]
    ("profile", of::<crate::verbs::keep::profile::Profiled<'static>>),
    #[cfg(feature = "forward")]
    ("receive", of::<crate::verbs::keep::forward::Received<'static>>),
    ("replay", of::<crate::verbs::exec::replay::Done>),
    ("snapshot", of::<crate::verbs::keep::snapshot::Saved<'static>>),
];

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
const OF_RINGS: &[(&str, Make)] = &[];

// One of two kinds of documents. (Its schema has no words for that.)
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is wanted")]
enum Either<A, B> {
    A(A),
    B(B),
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
    let cut = serde_json::to_value(of::<Cut>()).unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.extend(cut["properties"].as_object().cloned().unwrap_or_default());
    }
    schema
}

/// The verb that has verbs of its own.
const EXEC: &str = "exec";

/// The option.
pub(super) const OPTION: &str = "--json-schema";

/// Returns the verb whose schema is asked for, before other arguments are looked at: they are not needed then. What
/// follows `--` belongs to another program. A verb of `exec` is named as without it.
pub(super) fn asked(cli: &Command, arguments: &[OsString]) -> Option<String> {
    let ours = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let words: Vec<&str> = ours.filter_map(|argument| argument.to_str()).collect();
    let (place, verb) = words.iter().enumerate().find(|(_, word)| cli.find_subcommand(word).is_some())?;
    let of_exec = cli.find_subcommand(EXEC).filter(|_| *verb == EXEC);
    let below = of_exec.and_then(|exec| words[place..].iter().find(|word| exec.find_subcommand(word).is_some()));
    words.contains(&OPTION).then(|| (*below.unwrap_or(verb)).to_owned())
}

fn all() -> impl Iterator<Item = (&'static str, Make)> {
    SCHEMAS.iter().chain(OF_RINGS).copied()
}

/// Prints the schema of a verb of this command line.
pub(super) fn print(cli: &Command, verb: &str) -> anyhow::Result<Exit> {
    let Some((_, schema)) = all().find(|(name, _)| *name == verb) else {
        let mut names: Vec<&str> = all().map(|(name, _)| name).collect();
        names.sort_unstable();
        return Exit::Usage.fail(format!("{OPTION}: `{verb}` has no --json; these have: {}", names.join(", ")));
    };
    let mut schema = schema();
    let is_of_exec = cli.find_subcommand(EXEC).is_some_and(|exec| exec.find_subcommand(verb).is_some());
    let of = if is_of_exec { "exec " } else { "" };
    schema.insert("$id".to_owned(), format!("urn:eventring:json-schema:{verb}:1").into());
    schema.insert("title".to_owned(), format!("what `eventring {of}{verb} --json` prints").into());
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&schema)?)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn each_verb_with_json_has_a_schema_and_no_other_verb_has() {
        let cli = crate::verbs::Cli::command();
        let has_json = |verb: &Command| {
            let of = |command: &Command| command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            of(verb) || verb.get_subcommands().any(of)
        };
        let exec = cli.find_subcommand(EXEC).unwrap();
        let all_verbs = || cli.get_subcommands().filter(|verb| verb.get_name() != EXEC).chain(exec.get_subcommands());
        let mut verbs: Vec<&str> = all_verbs().filter(|verb| has_json(verb)).map(Command::get_name).collect();
        verbs.sort_unstable();
        let mut named: Vec<&str> = all().map(|(name, _)| name).collect();
        named.sort_unstable();
        // Verbs that this program was built without have no options.
        let is_built = |name: &&str| all_verbs().find(|verb| verb.get_name() == *name).is_none_or(has_json);
        assert_eq!(verbs, named.into_iter().filter(is_built).collect::<Vec<_>>());
        for (name, schema) in all() {
            assert_eq!(schema().get("$schema").unwrap(), "https://json-schema.org/draft/2020-12/schema", "{name}");
        }
    }

    #[test]
    fn only_what_is_before_another_program_is_ours() {
        let cli = crate::verbs::Cli::command();
        let asked = |words: &[&str]| asked(&cli, &words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked(&["eventring", "summary", "--json-schema"]).as_deref(), Some("summary"));
        assert_eq!(asked(&["eventring", "--color", "never", "why", "x", "--json-schema"]).as_deref(), Some("why"));
        assert_eq!(asked(&["eventring", "capture", "shop", "--", "program", "--json-schema"]), None);
        assert_eq!(asked(&["eventring", "exec", "blocks", "--json-schema"]).as_deref(), Some("blocks"));
        assert_eq!(asked(&["eventring", "--json-schema"]), None);
    }
}
