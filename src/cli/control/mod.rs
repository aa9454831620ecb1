//! The verbs that steer a running program through its server: `enable`, `disable` and `levels`; and `serve`.

mod disable;
mod enable;
mod levels;
mod replay;
mod serve;

pub(super) use disable::DisableArgs;
pub(super) use enable::{EnableArgs, Enabled};
pub(super) use levels::LevelsArgs;
pub(super) use serve::ServeArgs;

use super::exit::Exit;
use super::format::one_line;
use eventring::control::Process;

/// The process whose recording is steered.
#[derive(clap::Args)]
struct Target {
    /// The program: the name of one of its rings, the name of the program, pid:N, or the path of its socket
    #[arg(value_name = "NAME")]
    name: String,
}

impl Target {
    /// Connects to all processes of this name.
    fn find(&self) -> anyhow::Result<Vec<Process>> {
        Ok(Process::find(&self.name)?)
    }
}

/// Returns the process in words: its program and its number.
fn described(process: &Process) -> String {
    one_line(&format!("{} (process {})", process.program(), process.pid()))
}

pub(super) fn run_enable(args: &EnableArgs) -> anyhow::Result<Exit> {
    enable::run(args)
}

pub(super) fn run_disable(args: &DisableArgs) -> anyhow::Result<Exit> {
    disable::run(args)
}

pub(super) fn run_levels(args: &LevelsArgs) -> anyhow::Result<Exit> {
    levels::run(args)
}

pub(super) fn run_serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    serve::run(args)
}
