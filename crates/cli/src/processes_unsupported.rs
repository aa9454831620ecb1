//! A stand-in for `processes` on systems without servers.

use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use eventring::reader::ReaderError;
use std::path::PathBuf;
use std::time::Duration;

/// No options: there are no servers on this system.
#[derive(clap::Args)]
pub(super) struct ProcessArgs {}

/// Returns the names as they are.
#[expect(clippy::unnecessary_wraps, reason = "it is called like the other one")]
pub(super) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    Ok(names.to_vec())
}

/// Returns false.
pub(super) fn is_of_process(_: &std::path::Path) -> bool {
    false
}

impl ProcessArgs {
    /// Returns the names of the rings.
    pub(super) fn rings(&self, names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        if names.is_empty() {
            return Err(Failure::new(Exit::Usage, "nothing to read: name a ring").into());
        }
        Ok(names.to_vec())
    }

    /// Returns the names of the rings.
    pub(super) fn followed(
        &self,
        names: &[PathBuf],
        _: bool,
        _: Option<Duration>,
    ) -> anyhow::Result<(Vec<PathBuf>, FollowedPrograms)> {
        Ok((self.rings(names)?, FollowedPrograms))
    }

    /// Returns the names of the rings.
    pub(super) fn rings_or_wait(
        &self,
        names: &[PathBuf],
        _: bool,
        _: &Interrupt,
    ) -> anyhow::Result<Option<Vec<PathBuf>>> {
        self.rings(names).map(Some)
    }

    /// Accepts all rings.
    #[expect(clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(super) fn check_lasting(_: &[PathBuf]) -> Result<(), Failure> {
        Ok(())
    }

    /// Switches nothing on.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(super) fn enable(&self, _: &[PathBuf]) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns without an error: there is no directive.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(super) fn check_directive(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns without an error: there is no `--enable`.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(super) fn refuse_enable(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// No programs: there are no servers on this system.
#[derive(Default)]
pub(super) struct FollowedPrograms;

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "they are called like the others")]
impl FollowedPrograms {
    /// Returns no names.
    pub(super) fn awaited(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns nothing.
    pub(super) fn patience(&self) -> Option<Duration> {
        None
    }

    /// Returns false.
    pub(super) fn may_make_more(&self) -> bool {
        false
    }

    /// Returns no names.
    pub(super) fn new_rings(&mut self) -> Result<Vec<PathBuf>, ReaderError> {
        Ok(Vec::new())
    }

    /// Follows nothing.
    pub(super) fn add_if_named(&mut self, _: &std::path::Path) -> bool {
        false
    }
}
