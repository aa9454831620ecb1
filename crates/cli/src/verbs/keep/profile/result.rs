//! The result of a profile, for people and as JSON.

use crate::input::programs::program::Program;
use crate::output::json_line;
use crate::text::format::{counted, grouped};
use crate::text::paint::{DIM, WARNING};
use crate::verbs::keep::capture_result;
use eventring::reader::GapCause;
use eventring_capture::CaptureSummary;
use eventring_profile::record::{Missing, ProfileSummary};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::path::Path;

/// What `profile --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Profiled<'a> {
    file: Cow<'a, str>,
    events: u64,
    /// Without what had been overwritten before the profile began.
    lost: u64,
    threads: u64,
    /// How often threads have left a processor.
    switches: u64,
    wakes: u64,
    samples: u64,
    /// System calls in which a thread has left its processor.
    syscalls: u64,
    /// Names of addresses.
    names: u64,
    /// Records that the kernel had no room for.
    kernel_lost: u64,
    /// Switches to a thread that the kernel has not told.
    untold: u64,
    /// The largest error of the times.
    clock_error_ns: u64,
    missing: Vec<MissingRow<'a>>,
}

/// Something that is not recorded.
#[derive(Serialize, JsonSchema)]
struct MissingRow<'a> {
    what: &'static str,
    why: &'a str,
    /// What allows it.
    remedy: &'static str,
}

/// The figures that are printed at the end.
pub(super) struct Said<'a> {
    pub(super) captured: &'a CaptureSummary,
    pub(super) profile: &'a ProfileSummary,
    pub(super) missing: &'a [Missing],
    /// Why it has ended, if the capture does not know it.
    pub(super) ended: Option<&'a str>,
    pub(super) output: &'a Path,
}

/// Says in one message what is not recorded, and what would allow it.
pub(super) fn print_missing(missing: &[Missing]) {
    if !missing.is_empty() {
        let parts: Vec<String> = missing.iter().map(ToString::to_string).collect();
        say!("{WARNING}warning:{WARNING:#} not recorded: {}", parts.join("; and "));
    }
}

impl Said<'_> {
    /// Prints one JSON object on stdout.
    pub(super) fn print_json(&self) -> anyhow::Result<()> {
        let stats = &self.captured.stats;
        let ProfileSummary { threads, switches, wakes, samples, syscalls, names, kernel_lost, untold, .. } =
            *self.profile;
        let missing = self.missing.iter();
        let profiled = Profiled {
            file: self.output.to_string_lossy(),
            events: stats.events(),
            lost: stats.lost().saturating_sub(stats.missing_by(GapCause::OverwrittenBefore)),
            threads,
            switches,
            wakes,
            samples,
            syscalls,
            names,
            kernel_lost,
            untold,
            clock_error_ns: self.profile.clock_error_nanos,
            missing: missing.map(|it| MissingRow { what: it.what, why: &it.why, remedy: it.remedy }).collect(),
        };
        Ok(json_line(&profiled)?)
    }

    /// Prints the result on stderr.
    pub(super) fn print(&self, program: Option<&mut Program>) {
        capture_result::print(self.captured, self.ended, program, self.output);
        let profile = self.profile;
        say!(
            "{DIM}{}: {}, {}, {}, {}; times are exact to {} ns{DIM:#}",
            counted(profile.threads, "thread", "threads"),
            counted(profile.switches, "switch", "switches"),
            counted(profile.wakes, "wake-up", "wake-ups"),
            counted(profile.samples, "sample", "samples"),
            counted(profile.syscalls, "blocking system call", "blocking system calls"),
            grouped(profile.clock_error_nanos)
        );
        if profile.kernel_lost > 0 {
            let lost = counted(profile.kernel_lost, "record", "records");
            say!("{WARNING}the kernel had no room for {lost}{WARNING:#}");
        }
    }
}
