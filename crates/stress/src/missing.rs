//! The messages of tests that cannot run. The library's own tests include this file, because they depend on no other
//! crate.

use std::fmt::Display;
use std::io::Write as _;

/// Says that a test, or a part of it, is skipped, because of something that a machine for tests can have: a program, a
/// package, the rights of root. With the variable `EVENTRING_NOTHING_MISSING`, as in CI, the test fails instead.
#[track_caller]
pub fn missing(what: impl Display) {
    assert!(std::env::var_os("EVENTRING_NOTHING_MISSING").is_none(), "missing: {what}");
    skipped(what);
}

/// Says that a test, or a part of it, is skipped, because of something that nobody can install: a counter of the
/// processor, the shared recordings.
pub fn skipped(why: impl Display) {
    // The test harness captures the output of `eprintln!`, so the message is written to stderr itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
