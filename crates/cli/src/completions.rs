//! `eventring completions`.

use super::exit::Exit;
use clap::CommandFactory as _;

/// Print a completion script for a shell
#[derive(clap::Args)]
pub(super) struct Args {
    /// Name of the shell
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "eventring", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Done)
}
