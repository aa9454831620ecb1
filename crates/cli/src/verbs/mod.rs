//! The verbs, each with its arguments and the function that runs it. The folders are the groups of `eventring --help`.
//!
//! | file | idea |
//! |---|---|
//! | `now/` | showing rings, programs and events as they are now |
//! | `keep/` | keeping what programs record |
//! | `questions/` | answering questions about a recording |
//! | `show/` | showing a recording in another form |
//! | `control/` | controlling what programs record, and removing files |
//! | `exec/` | the execution events of a node |
//! | `saved_args` | the input of verbs that read a recording, or a part of it |
//! | `given`, `help` | words that the user may omit in a command line; the list of verbs |

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod control;
pub(crate) mod exec;
pub(super) mod given;
pub(super) mod help;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod keep;
pub(crate) mod now;
pub(crate) mod questions;
pub(crate) mod saved_args;
pub(crate) mod show;

use crate::exit::Exit;
use crate::verbs::now::{top, watch};
use crate::verbs::show::view;
use clap::{CommandFactory as _, Parser, Subcommand};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use control::{clean, disable, enable, levels, serve};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use exec::{archive, replay};
use exec::{blocks, gateway};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use keep::{capture, core, forward, icount, profile, snapshot};
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use now::{check, list};
use now::{info, open, tasks};
use questions::{ask, budget, diff, find, mcp, summary, why};
use show::{export, report};
use std::path::PathBuf;

/// Shows event rings: shared-memory files that programs record events into
///
/// `list` says which rings there are, `watch NAME` follows one, `top NAME` shows what its program does, and
/// `capture NAME -o FILE` keeps everything. `eventring VERB --help` explains a verb.
#[derive(Parser)]
#[command(name = "eventring", version, max_term_width = 120, after_help = crate::exit::help())]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) verb: Verb,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub(super) color: clap::ColorChoice,
    /// The schema text of rings that carry none and whose schema is not known here, for example of a node that is newer
    /// than this program; may be repeated
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) schema: Vec<PathBuf>,
    /// Print the JSON Schema of what --json prints, and end
    #[arg(long, global = true)]
    pub(super) json_schema: bool,
}

/// Makes the verbs and their groups. Each verb stands in the group that defines it, so none can be in two.
macro_rules! verbs {
    ($($group:literal { $($(#[$condition:meta])? $verb:ident($args:ty) => $run:path,)* })*) => {
        /// A verb, with its arguments.
        #[derive(Subcommand)]
        pub(super) enum Verb {
            $($($(#[$condition])? $verb($args),)*)*
            /// Show, archive, serve and record again the blocks of a node
            #[command(subcommand)]
            Exec(ExecVerb),
        }

        /// The groups: headings, and the verbs in them.
        const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($(#[$condition])? stringify!($verb),)*])),*];

        /// All verbs, also those that this program does not have.
        #[cfg(any(not(target_os = "linux"), eventring_unsupported))]
        pub(super) const ALL: &[&str] = &[$($(stringify!($verb),)*)*];

        /// Runs a verb.
        pub(super) fn run(verb: &Verb) -> anyhow::Result<Exit> {
            match verb {
                $($($(#[$condition])? Verb::$verb(args) => $run(args),)*)*
                Verb::Exec(verb) => verb.run(),
            }
        }
    };
}

verbs! {
    "Look now" {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        List(list::Args) => list::run,
        Info(info::Args) => info::run,
        Watch(watch::Args) => watch::run,
        Top(top::TopArgs) => top::run,
        Open(open::OpenArgs) => open::run,
        Tasks(tasks::TasksArgs) => tasks::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Check(check::CheckArgs) => check::run,
    }
    "Keep" {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Capture(capture::Args) => capture::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Snapshot(snapshot::Args) => snapshot::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Core(core::CoreArgs) => core::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Profile(profile::ProfileArgs) => profile::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Icount(icount::IcountArgs) => icount::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Forward(forward::ForwardArgs) => forward::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Receive(forward::ReceiveArgs) => forward::run_receive,
    }
    "Ask" {
        Ask(ask::AskArgs) => ask::run,
        Why(why::WhyArgs) => why::run,
        Find(find::FindArgs) => find::run,
        Summary(summary::Args) => summary::run,
        Diff(diff::DiffArgs) => diff::run,
        Budget(budget::BudgetArgs) => budget::run,
        Mcp(mcp::McpArgs) => mcp::run,
    }
    "Show" {
        View(view::ViewArgs) => view::run,
        Report(report::ReportArgs) => report::run,
        Export(export::Args) => export::run,
    }
    "Control" {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Enable(enable::EnableArgs) => enable::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Disable(disable::DisableArgs) => disable::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Levels(levels::LevelsArgs) => levels::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Serve(serve::ServeArgs) => serve::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Clean(clean::Args) => clean::run,
        Completions(CompletionsArgs) => print_completions,
    }
}

/// A verb about execution events, with its arguments.
#[derive(Subcommand)]
pub(super) enum ExecVerb {
    Blocks(blocks::BlocksArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Archive(archive::ArchiveArgs),
    Gateway(gateway::GatewayArgs),
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Replay(replay::ReplayArgs),
}

impl ExecVerb {
    fn run(&self) -> anyhow::Result<Exit> {
        match self {
            Self::Blocks(args) => blocks::run(args),
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Self::Archive(args) => archive::run(args),
            Self::Gateway(args) => gateway::run(args),
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Self::Replay(args) => replay::run(args),
        }
    }
}

/// Print a completion script for a shell
#[derive(clap::Args)]
pub(super) struct CompletionsArgs {
    /// Name of the shell
    shell: clap_complete::Shell,
}

fn print_completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "eventring", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Done)
}
