//! A stand-in for `processes` on systems without servers.

use super::exit::{Exit, Failure};
use std::path::PathBuf;

/// No options: there are no servers on this system.
#[derive(clap::Args)]
pub(super) struct ProcessArgs {}

/// Returns the names as they are.
#[expect(clippy::unnecessary_wraps, reason = "it is called like the other one")]
pub(super) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    Ok(names.to_vec())
}

impl ProcessArgs {
    /// Returns the names of the rings.
    pub(super) fn rings(&self, names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        if names.is_empty() {
            return Err(Failure::new(Exit::Usage, "nothing to read: name a ring").into());
        }
        Ok(names.to_vec())
    }

    /// Switches nothing on.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(super) fn enable(&self, _: &[PathBuf]) -> anyhow::Result<()> {
        Ok(())
    }
}
