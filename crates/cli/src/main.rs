//! The program `eventring`: one file, or folder, for each verb.
//!
//! Data goes to stdout, messages go to stderr. Each verb returns its exit code or an error. The module [`exit`] maps
//! each error to an exit code.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(
    not(all(
        feature = "forward",
        feature = "gateway",
        feature = "profile",
        feature = "view",
        target_os = "linux",
        not(eventring_unsupported)
    )),
    allow(dead_code, reason = "only the verbs that are left out need it")
)]

// Its macro is for the modules below.
#[macro_use]
mod text;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod archive;
mod args;
mod ask;
mod blocks;
#[cfg(test)]
mod bombs;
mod budget;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod capture;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod check;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod clean;
mod completions;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod control;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod core;
mod diff;
mod exit;
mod export;
mod find;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[cfg_attr(not(feature = "forward"), path = "left_out/forward.rs")]
mod forward;
#[cfg_attr(not(feature = "gateway"), path = "left_out/gateway.rs")]
mod gateway;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod icount;
mod info;
mod input;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod interrupt;
mod json_schema;
mod left_out;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod list;
mod mcp;
mod open;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
mod other_systems;
mod output;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[cfg_attr(
    not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "left_out/profile.rs"
)]
mod profile;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod replay;
mod report;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod snapshot;
mod summary;
mod tasks;
mod top;
mod verbs;
#[cfg_attr(not(feature = "view"), path = "left_out/view.rs")]
mod view;
mod watch;
mod why;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use other_systems::interrupt;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use eventring::internal::shm;
use eventring::schema::SchemaModel;
use eventring_capture::secret::without_secrets_of;
use exit::Exit;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use text::paint::ERROR;

/// Shows event rings: shared-memory files that programs record events into
///
/// `list` says which rings there are, `watch NAME` follows one, `top NAME` shows what its program does, and
/// `capture NAME -o FILE` keeps everything. `eventring VERB --help` explains a verb.
#[derive(Parser)]
#[command(name = "eventring", version, max_term_width = 120, after_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    verb: verbs::Verb,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: clap::ColorChoice,
    /// The schema text of rings that carry none and whose schema is not known here, for example of a node that is newer
    /// than this program; may be repeated
    #[arg(long, global = true, value_name = "FILE")]
    schema: Vec<PathBuf>,
    /// Print the JSON Schema of what --json prints, and end
    #[arg(long, global = true)]
    json_schema: bool,
}

/// Makes the schemas of `--schema` known.
fn give_schemas(files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files {
        let name = file.display();
        let failed = |why: &dyn std::fmt::Display| Exit::Usage.failure(format!("--schema {name}: {why}"));
        let text = shm::read_text(file).map_err(|error| failed(&error))?;
        eventring::schema::give_schema(SchemaModel::parse(&text).map_err(|error| failed(&error))?);
    }
    Ok(())
}

/// Returns the command line that this program understands.
fn command() -> clap::Command {
    verbs::help::grouped(Cli::command())
}

/// Reads the arguments.
fn parsed(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches_from(arguments)?)
}

/// Writes the help, or a message of clap, which may repeat arguments.
fn report_usage(error: &clap::Error) -> anyhow::Result<Exit> {
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    if let Some(failure) = other_systems::failure(error) {
        return Err(failure.into());
    }
    if !error.use_stderr() {
        error.print()?;
        return Ok(Exit::Done);
    }
    // Clap has coloured it. The texts in it are this program's own arguments.
    let _ = write!(text::out::stderr().0, "{}", without_secrets(&error.render().ansi().to_string()));
    Ok(Exit::Usage)
}

/// Returns a message without keys, and without the passwords of addresses in this program's arguments and environment.
fn without_secrets(message: &str) -> String {
    let is_ours = |name: &str| ["NATS_", "EVENTRING_", "OTEL_"].iter().any(|prefix| name.starts_with(prefix));
    let environment = std::env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())).map(|(_, value)| value);
    let given = std::env::args_os().skip(1).chain(environment);
    without_secrets_of(given.map(|text| text.to_string_lossy().into_owned()), message)
}

/// Runs the program.
fn main() -> ExitCode {
    let cli = Cli::command();
    let arguments = verbs::given::completed(&cli, std::env::args_os().collect());
    let done = match json_schema::asked(&cli, &arguments) {
        Some(verb) => json_schema::print(&verb),
        None => parsed(arguments).map_or_else(
            |error| report_usage(&error),
            |cli| {
                text::paint::choose(cli.color);
                give_schemas(&cli.schema).and_then(|()| verbs::run(&cli.verb))
            },
        ),
    };
    let exit = done.map_err(input::advice::on).unwrap_or_else(|error| {
        let exit = Exit::from_error(&error);
        if exit != Exit::Done {
            say!("{ERROR}error:{ERROR:#} {}", without_secrets(&error.to_string()));
        }
        exit
    });
    ExitCode::from(exit as u8)
}

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
