//! The verb `profile`, and its parts in other verbs, in a program built without it.

use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use eventring::reader::Reader;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use crate::left_out::LeftOut as ProfileArgs;

pub(crate) fn run(_: &ProfileArgs) -> anyhow::Result<Exit> {
    Err(crate::left_out::failure("the verb `profile`", "profile").into())
}

/// A recording that cannot be there.
pub(crate) struct NoRecording(Infallible);

impl NoRecording {
    pub(crate) fn finish(self) {
        match self.0 {}
    }
}

pub(crate) struct Beside(Infallible);

impl Beside {
    pub(crate) fn prepare(_: bool, _: bool, _: &[PathBuf], _: &[OsString]) -> anyhow::Result<Self> {
        Err(no_profile().into())
    }

    pub(crate) fn start(self, _: &AwaitedRings) -> anyhow::Result<(Vec<Reader>, NoRecording)> {
        match self.0 {}
    }
}
fn no_profile() -> Failure {
    crate::left_out::failure("`--sched` and `--stacks`", "profile")
}
