//! The verbs that keep what programs record. `capture_result` has the output at the end of these verbs.

pub(crate) mod capture;
pub(crate) mod capture_result;
pub(crate) mod core;
#[cfg_attr(not(feature = "forward"), path = "../left_out/forward.rs")]
pub(crate) mod forward;
pub(crate) mod icount;
#[cfg_attr(
    not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "../left_out/profile.rs"
)]
pub(crate) mod profile;
pub(crate) mod snapshot;
