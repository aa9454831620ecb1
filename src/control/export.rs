//! Serving a ring of this process.

use super::served::{Export, of_process};
use super::server::start_if_environment_says_so;
use super::wire::ServedInfo;
use std::os::fd::OwnedFd;

/// Serves a ring of this process, as long as the returned value lives. `descriptor` must be open for reading only.
///
/// If the environment variable `EVENTRING_SERVER` says so, the first call starts the server of the process.
pub(crate) fn export(info: ServedInfo, descriptor: OwnedFd) -> Option<Export> {
    let export = of_process().add(info, descriptor);
    start_if_environment_says_so();
    export
}
