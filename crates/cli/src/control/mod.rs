//! The verbs that steer a running program through its server: `enable`, `disable` and `levels`; and `serve`.

pub(super) mod disable;
pub(super) mod enable;
pub(super) mod levels;
mod replay;
pub(super) mod serve;

use crate::text::format::one_line;
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
        Ok(crate::args::processes::find(&self.name, None)?)
    }
}

/// Returns the process in words: its program and its number, and its user if this is a stranger.
fn described(process: &Process) -> String {
    one_line(&format!("{} ({})", process.program(), process.in_words()))
}
