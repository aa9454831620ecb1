//! The program `eventring`: one file, or folder, for each verb.
//!
//! Data goes to stdout, messages go to stderr. Each verb returns its exit code or an error. The module [`exit`] maps
//! each error to an exit code.

#![forbid(unsafe_code)]
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
mod text;
mod top;
#[cfg_attr(not(feature = "view"), path = "left_out/view.rs")]
mod view;
mod watch;
mod why;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
use other_systems::interrupt;

use clap::{CommandFactory as _, Parser, Subcommand};
use eventring::schema::SchemaModel;
use eventring_capture::secret::without_secrets_of;
use exit::Exit;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows event rings: shared-memory files that programs record events into
///
/// `list` says which rings there are, `watch NAME` follows one, `top NAME` shows what its program does, and `capture NAME
/// -o FILE` keeps everything. `eventring VERB --help` explains a verb.
#[derive(Parser)]
#[command(name = "eventring", version, max_term_width = 120, after_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
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
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        eventring::schema::give_schema(SchemaModel::parse(&text).map_err(|error| failed(&error))?);
    }
    Ok(())
}

#[derive(Subcommand)]
enum Verb {
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    List(list::Args),
    Info(info::Args),
    Blocks(blocks::BlocksArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Archive(archive::ArchiveArgs),
    Gateway(gateway::GatewayArgs),
    Watch(watch::Args),
    Find(find::FindArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Snapshot(snapshot::Args),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Capture(capture::Args),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Forward(forward::ForwardArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Receive(forward::ReceiveArgs),
    Export(export::Args),
    View(view::ViewArgs),
    Summary(summary::Args),
    Diff(diff::DiffArgs),
    Report(report::ReportArgs),
    Budget(budget::BudgetArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Profile(profile::ProfileArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Icount(icount::IcountArgs),
    Open(open::OpenArgs),
    Top(top::TopArgs),
    Why(why::WhyArgs),
    Ask(ask::AskArgs),
    Mcp(mcp::McpArgs),
    Tasks(tasks::TasksArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Enable(control::enable::EnableArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Disable(control::disable::DisableArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Levels(control::levels::LevelsArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Serve(control::serve::ServeArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Replay(replay::ReplayArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Check(check::CheckArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Core(core::CoreArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Clean(clean::Args),
    Completions(completions::Args),
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// Writes the help, or a message of clap, which may repeat arguments.
fn report_usage(error: &clap::Error) -> anyhow::Result<Exit> {
    if !error.use_stderr() {
        error.print()?;
        return Ok(Exit::Done);
    }
    anstream::eprint!("{}", without_secrets(&error.render().ansi().to_string()));
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
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let done = match json_schema::asked(&Cli::command(), &arguments) {
        Some(verb) => json_schema::print(&verb),
        None => Cli::try_parse_from(arguments).map_or_else(
            |error| report_usage(&error),
            |cli| {
                text::paint::choose(cli.color);
                give_schemas(&cli.schema).and_then(|()| run(&cli.verb))
            },
        ),
    };
    let exit = done.map_err(input::advice::on).unwrap_or_else(|error| {
        let exit = Exit::from_error(&error);
        if exit != Exit::Done {
            anstream::eprintln!(
                "{}error:{:#} {}",
                text::paint::ERROR,
                text::paint::ERROR,
                text::format::one_line(&without_secrets(&error.to_string()))
            );
        }
        exit
    });
    ExitCode::from(exit as u8)
}

fn run(verb: &Verb) -> anyhow::Result<Exit> {
    match verb {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::List(args) => list::run(args),
        Verb::Info(args) => info::run(args),
        Verb::Blocks(args) => blocks::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Archive(args) => archive::run(args),
        Verb::Gateway(args) => gateway::run(args),
        Verb::Watch(args) => watch::run(args),
        Verb::Find(args) => find::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Snapshot(args) => snapshot::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Capture(args) => capture::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Forward(args) => forward::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Receive(args) => forward::run_receive(args),
        Verb::Export(args) => export::run(args),
        Verb::View(args) => view::run(args),
        Verb::Summary(args) => summary::run(args),
        Verb::Diff(args) => diff::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Budget(args) => budget::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Profile(args) => profile::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Icount(args) => icount::run(args),
        Verb::Open(args) => open::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Why(args) => why::run(args),
        Verb::Ask(args) => ask::run(args),
        Verb::Mcp(args) => mcp::run(args),
        Verb::Tasks(args) => tasks::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Enable(args) => control::enable::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Disable(args) => control::disable::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Levels(args) => control::levels::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Serve(args) => control::serve::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Replay(args) => replay::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Check(args) => check::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Core(args) => core::run(args),
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Verb::Clean(args) => clean::run(args),
        #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
        Verb::Other(words) => Err(other_systems::failure(words).into()),
        Verb::Completions(args) => completions::run(args, &mut Cli::command()),
    }
}
