//! The result of a profile, for people and as JSON.

use crate::input::program::Program;
use crate::output::capture_result;
use crate::text::format::{counted, grouped};
use crate::text::paint::{DIM, WARNING};
use eventring::reader::GapCause;
use eventring_capture::CaptureSummary;
use eventring_profile::record::{Missing, ProfileSummary};
use serde_json::json;
use std::io::Write as _;
use std::path::Path;

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
        anstream::eprintln!("{WARNING}warning:{WARNING:#} not recorded: {}", parts.join("; and "));
    }
}

impl Said<'_> {
    /// Prints one JSON object on stdout.
    pub(super) fn print_json(&self) -> anyhow::Result<()> {
        let stats = &self.captured.stats;
        let missing = self
            .missing
            .iter()
            .map(|missing| json!({ "what": missing.what, "why": missing.why, "remedy": missing.remedy }));
        let object = json!({
            "file": self.output.to_string_lossy(), "events": stats.events(),
            "lost": stats.lost().saturating_sub(stats.missing_by(GapCause::OverwrittenBefore)),
            "threads": self.profile.threads, "switches": self.profile.switches, "wakes": self.profile.wakes,
            "samples": self.profile.samples, "syscalls": self.profile.syscalls, "names": self.profile.names,
            "kernel_lost": self.profile.kernel_lost, "untold": self.profile.untold,
            "clock_error_ns": self.profile.clock_error_nanos, "missing": missing.collect::<Vec<_>>(),
        });
        writeln!(anstream::stdout(), "{object}")?;
        Ok(())
    }

    /// Prints the result on stderr.
    pub(super) fn print(&self, program: Option<&mut Program>) {
        capture_result::print(self.captured, self.ended, program, self.output);
        let profile = self.profile;
        anstream::eprintln!(
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
            anstream::eprintln!("{WARNING}the kernel had no room for {lost}{WARNING:#}");
        }
    }
}
