//! The verb `profile`, and its parts in other verbs, in a program built without it.

use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use eventring::reader::Reader;
use eventring_profile::frames::Frame;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) use crate::left_out::LeftOut as ProfileArgs;

pub(super) fn run(_: &ProfileArgs) -> anyhow::Result<Exit> {
    Err(crate::left_out::failure("the verb `profile`", "profile").into())
}

/// A recording that cannot be there.
pub(super) struct NoRecording(Infallible);

impl NoRecording {
    pub(super) fn finish(self) {
        match self.0 {}
    }
}

pub(super) struct Beside(Infallible);

impl Beside {
    pub(super) fn prepare(_: bool, _: bool, _: &[PathBuf], _: &[OsString]) -> anyhow::Result<Self> {
        Err(no_profile().into())
    }

    pub(super) fn start(self, _: &AwaitedRings) -> anyhow::Result<(Vec<Reader>, NoRecording)> {
        match self.0 {}
    }
}

pub(super) fn stacks_of(_: u32, _: &[u32]) -> anyhow::Result<BTreeMap<u32, Vec<Frame>>> {
    Err(no_profile().into())
}

fn no_profile() -> Failure {
    crate::left_out::failure("`--sched` and `--stacks`", "profile")
}
