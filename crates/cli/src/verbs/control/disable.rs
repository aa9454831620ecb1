//! `eventring disable`.

use super::{Target, described};
use crate::exit::Exit;
use crate::text::format::counted;
use eventring::control::{ClientWish, Process};
use eventring_ask::command_line;

/// Take back what `eventring enable` has switched on
///
/// All wishes with exactly this directive end: those of this user, or for root those of all users. What the program
/// itself records stays on.
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
        let before = wishes_of(process, directive)?;
        let count = process.withdraw(directive)?;
        let left = wishes_of(process, directive)?;
        if count > 0 {
            let clients: Vec<String> = before.iter().filter(|wish| !left.contains(wish)).map(client).collect();
            let wishes = counted(count, "wish", "wishes");
            say!("{}: {wishes} for {directive} ended, of {}", described(process), clients.join(", "));
        }
        ended += count;
        of_others.extend(left.iter().map(|wish| format!("{} in {}", client(wish), described(process))));
    }
    if !of_others.is_empty() {
        return Exit::PermissionDenied.fail(format!(
            "`{directive}` is still wished by {}; only this user and root may take that back",
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

fn wishes_of(process: &Process, directive: &str) -> anyhow::Result<Vec<ClientWish>> {
    let mut wishes = process.state()?.wishes;
    wishes.retain(|wish| wish.directive == directive);
    Ok(wishes)
}

/// Returns the client of a wish in words.
fn client(wish: &ClientWish) -> String {
    match wish.pid {
        0 => format!("a process of user {} in another namespace", wish.user),
        pid => format!("process {pid} of user {}", wish.user),
    }
}
