//! `eventring disable`.

use super::{Target, described};
use crate::cli::exit::{Exit, Failure};

/// Take back what `eventring enable` has switched on
///
/// All wishes with exactly this directive end: those of this user, or for root those of all users. What the program
/// itself records stays on.
#[derive(clap::Args)]
pub(in crate::cli) struct DisableArgs {
    #[command(flatten)]
    target: Target,
    /// The directive, as it was given to `eventring enable`; `eventring levels` shows all
    #[arg(value_name = "DIRECTIVE")]
    directive: String,
}

pub(super) fn run(args: &DisableArgs) -> anyhow::Result<Exit> {
    let processes = args.target.find()?;
    let mut ended = 0;
    for process in &processes {
        ended += process.withdraw(&args.directive)?;
    }
    if ended == 0 {
        let programs: Vec<String> = processes.iter().map(described).collect();
        let message = format!(
            "nobody has switched on `{}` in {}; `eventring levels {}` shows what is on, and who wants it",
            args.directive,
            programs.join(" and "),
            args.target.name
        );
        return Err(Failure::new(Exit::NotFound, message).into());
    }
    Ok(Exit::Done)
}
