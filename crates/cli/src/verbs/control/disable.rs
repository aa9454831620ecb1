//! `eventring disable`.

use super::{Target, described};
use crate::exit::Exit;
use crate::text::format::counted;
use eventring::control::{ClientOverride, Process};
use eventring_ask::command_line;

/// Revoke what `eventring enable` has switched on
///
/// All filter overrides with exactly this directive end: those of this user, or for root those of all users. What the
/// program itself records stays on.
#[derive(clap::Args)]
pub(crate) struct DisableArgs {
    #[command(flatten)]
    target: Target,
    /// The directive, as it was given to `eventring enable`; `eventring levels` shows all
    #[arg(value_name = "DIRECTIVE")]
    directive: String,
}

pub(crate) fn run(args: &DisableArgs) -> anyhow::Result<Exit> {
    let processes = args.target.find()?;
    let directive = args.directive.trim();
    let mut ended = 0;
    let mut of_others = Vec::new();
    for process in &processes {
        let before = overrides_of(process, directive)?;
        let count = process.revoke(directive)?;
        let left = overrides_of(process, directive)?;
        if count > 0 {
            let clients: Vec<String> =
                before.iter().filter(|filter_override| !left.contains(filter_override)).map(client).collect();
            let overrides = counted(count, "filter override", "filter overrides");
            say!("{}: {overrides} for {directive} ended, of {}", described(process), clients.join(", "));
        }
        ended += count;
        of_others.extend(
            left.iter().map(|filter_override| format!("{} in {}", client(filter_override), described(process))),
        );
    }
    if !of_others.is_empty() {
        return Exit::PermissionDenied.fail(format!(
            "`{directive}` is still requested by {}; only this user and root may revoke that",
            of_others.join(", ")
        ));
    }
    if ended == 0 {
        let programs: Vec<String> = processes.iter().map(described).collect();
        return Exit::NotFound.fail(format!(
            "nobody has switched on `{directive}` in {}; `{}` shows what is on, and who wants it",
            programs.join(" and "),
            command_line("levels", &[&args.target.name], &[])
        ));
    }
    Ok(Exit::Done)
}

fn overrides_of(process: &Process, directive: &str) -> anyhow::Result<Vec<ClientOverride>> {
    let mut overrides = process.state()?.overrides;
    overrides.retain(|filter_override| filter_override.directive == directive);
    Ok(overrides)
}

/// Returns the client of a filter override in words.
fn client(filter_override: &ClientOverride) -> String {
    match filter_override.pid {
        0 => format!("a process of user {} in another namespace", filter_override.user),
        pid => format!("process {pid} of user {}", filter_override.user),
    }
}
