//! What a program says about verbs and formats without which it was built.

use super::exit::{Exit, Failure};
#[cfg(not(all(feature = "forward", feature = "view")))]
use std::ffi::OsString;

/// The arguments of a verb that was left out: any.
#[cfg(not(all(feature = "forward", feature = "view")))]
#[derive(clap::Args)]
pub(super) struct LeftOut {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _any: Vec<OsString>,
}

/// Returns the error that something was left out.
pub(super) fn failure(what: &str, feature: &str) -> Failure {
    let message = format!("this program was built without {what}; build it with its feature `{feature}`");
    Failure::new(Exit::Unsupported, message)
}
