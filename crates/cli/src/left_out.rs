//! Messages about verbs and formats that were left out when the program was built.

use crate::exit::{Exit, Failure};
use std::ffi::OsString;

/// Left out of this program
#[allow(dead_code, reason = "a program with all verbs has no use for it")]
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LeftOut {
    // Whatever is given, the answer is the same.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    any: Vec<OsString>,
}

/// Returns the error that something was left out.
pub(crate) fn failure(what: &str, feature: &str) -> Failure {
    Exit::Unsupported.failure(format!("this program was built without {what}; build it with its feature `{feature}`"))
}
