//! The verbs, each with its arguments and the function that runs it, in groups by purpose.

pub(super) mod given;
pub(super) mod help;

use crate::exit::Exit;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use crate::{archive, capture, check, clean, control, core, forward, icount, list, profile, replay, snapshot};
use crate::{
    ask, blocks, budget, completions, diff, export, find, gateway, info, mcp, open, report, summary, tasks, top, view,
    watch, why,
};
use clap::Subcommand;

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
        Enable(control::enable::EnableArgs) => control::enable::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Disable(control::disable::DisableArgs) => control::disable::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Levels(control::levels::LevelsArgs) => control::levels::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Serve(control::serve::ServeArgs) => control::serve::run,
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        Clean(clean::Args) => clean::run,
        Completions(completions::Args) => completions::run,
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
