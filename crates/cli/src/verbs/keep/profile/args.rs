//! The options of `eventring profile`.

use crate::args::amounts::parse_duration;
use crate::input::programs::processes::ProcessArgs;
use eventring_profile::record::ProfileOptions;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Record what the kernel does with a program's threads
///
/// Switches, wake-ups, stacks and system calls, beside the program's rings. Everything goes into one capture. Root
/// records all; other users what the system lets them, and are told the rest. docs/PROFILE.md says which right is for
/// what.
#[derive(clap::Args)]
pub(crate) struct ProfileArgs {
    /// Names or paths of rings, whose programs are looked at; or a program: pid:N
    #[arg(value_name = "RING")]
    pub(super) names: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) process: ProcessArgs,
    /// Where to write [default: the first ring's or program's name and `.evc`, in the current directory]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(short, long)]
    pub(super) force: bool,
    /// Stop after this time (10s, 2m, 1h30m)
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) duration: Option<Duration>,
    /// Samples a second of each running thread, with --stacks; 0 for none
    #[arg(long, value_name = "RATE", default_value_t = 997)]
    pub(super) hz: u32,
    /// Record when threads leave processors and come back, and who wakes them. Without this, --stacks and --syscalls,
    /// --sched and --stacks are meant
    #[arg(long)]
    pub(super) sched: bool,
    /// Record the stacks of running threads and, with --sched, those at which threads leave processors
    #[arg(long)]
    pub(super) stacks: bool,
    /// Record system calls in which a thread leaves its processor; and, as they need it, what --sched does
    #[arg(long)]
    pub(super) syscalls: bool,
    /// Look up the names of all addresses at the end, and store them
    #[arg(long)]
    pub(super) resolve: bool,
    /// Print one JSON object about the profile
    #[arg(long)]
    pub(super) json: bool,
    /// A program to start, with its arguments, and to look at until it ends; its exit code is ours. Without RING, all
    /// rings are captured that it and its children make. With --json, its output goes to stderr
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl ProfileArgs {
    pub(super) fn options(&self) -> ProfileOptions {
        let is_any = self.sched || self.stacks || self.syscalls;
        ProfileOptions {
            sample_hz: self.hz,
            // System calls are recorded where they block, so they need the switches.
            has_sched: self.sched || self.syscalls || !is_any,
            has_stacks: self.stacks || !is_any,
            has_syscalls: self.syscalls,
            resolves: self.resolve,
            repeats: None,
        }
    }
}
