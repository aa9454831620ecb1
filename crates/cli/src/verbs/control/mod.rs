//! The verbs that control a running program through its server (`enable`, `disable` and `levels`), `serve` and `clean`.

pub(crate) mod clean;
pub(crate) mod disable;
pub(crate) mod enable;
pub(crate) mod levels;
mod replay;
pub(crate) mod serve;

use crate::input::programs::filter_overrides::described;
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
        Ok(crate::input::programs::processes::find(&self.name, None)?)
    }
}
