//! The present stacks of the threads of a process.

use eventring_profile::frames::Frame;
use std::collections::BTreeMap;

/// Returns where threads of a process are. The threads have the numbers that they have for the process itself.
#[cfg(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn stacks_of(process: u32, threads: &[u32]) -> anyhow::Result<BTreeMap<u32, Vec<Frame>>> {
    eventring_profile::record::stacks_now(process, threads).map_err(|error| {
        crate::exit::Exit::Failed.failure(format!(
            "cannot stop the threads of process {process} to see where they are: {error}; run it as root, or as the \
             program's user with kernel.yama.ptrace_scope=0, and without a debugger at the program"
        )).into()
    })
}

/// Refuses to look.
#[cfg(not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn stacks_of(_: u32, _: &[u32]) -> anyhow::Result<BTreeMap<u32, Vec<Frame>>> {
    Err(crate::left_out::failure("`--stacks`", "profile").into())
}
