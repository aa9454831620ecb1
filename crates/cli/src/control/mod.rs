//! The verbs that control a running program through its server (`enable`, `disable` and `levels`), and `serve`.

pub(super) mod disable;
pub(super) mod enable;
pub(super) mod levels;
mod replay;
pub(super) mod serve;

use crate::input::filter_overrides::described;
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
        Ok(crate::input::processes::find(&self.name, None)?)
    }
}
