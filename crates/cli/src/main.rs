//! The program `eventring`: one file, or folder, for each verb.
//!
//! Data goes to stdout, messages go to stderr. Each verb returns its exit code, or an error that [`exit`] maps to an
//! exit code.

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

mod args;
#[cfg(test)]
mod bombs;
mod exit;
mod input;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod interrupt;
mod json_schema;
mod left_out;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
mod other_systems;
mod output;
mod verbs;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use other_systems::interrupt;

use clap::{CommandFactory as _, FromArgMatches as _};
use eventring::internal::shm;
use eventring::schema::SchemaModel;
use exit::Exit;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use text::paint::ERROR;
use text::secrets::without_secrets;
use verbs::Cli;

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
    if let Some(failure) = other_systems::failure(error, verbs::ALL) {
        return Err(failure.into());
    }
    if !error.use_stderr() {
        error.print()?;
        return Ok(Exit::Done);
    }
    // Clap has coloured it. The texts in it are this program's own arguments.
    let (mut err, shown) = (text::out::stderr(), error.render());
    let shown = if err.is_plain { shown.to_string() } else { shown.ansi().to_string() };
    let _ = err.to.write_all(without_secrets(&shown).as_bytes());
    Ok(Exit::Usage)
}

/// Runs the program.
fn main() -> ExitCode {
    let cli = Cli::command();
    let arguments = verbs::given::completed(&cli, std::env::args_os().collect());
    let done = match json_schema::asked(&cli, &arguments) {
        Some(verb) => json_schema::print(&cli, &verb),
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
