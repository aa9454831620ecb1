//! The beginning of a profile: its rings, its program, and the options for the kernel.

use super::args::ProfileArgs;
use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::programs::family::Family;
use crate::input::programs::holder::{holder, known_holder};
use crate::input::programs::processes::{FollowedPrograms, is_of_process};
use crate::input::programs::program::Program;
use crate::text::losses::report_problem;
use eventring::internal::shm::own_number;
use eventring::reader::{Reader, RingState};
use eventring_profile::record::{Missing, Prepared, ProfileOptions, ProfileTarget, Recording};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A profile that has begun.
pub(super) struct Begun {
    /// The program's rings.
    pub(super) rings: AwaitedRings,
    /// The rings of the profile itself.
    pub(super) own: Vec<Reader>,
    pub(super) recording: Recording,
    pub(super) missing: Vec<Missing>,
    /// The processes that are looked at, if none was started.
    pub(super) processes: Vec<u32>,
}

/// Returns the file to write.
pub(super) fn output(args: &ProfileArgs) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let name = base(&args.names, &args.command);
        let mut name = name.file_name().unwrap_or("profile".as_ref()).to_os_string();
        name.push(".evc");
        PathBuf::from(name)
    })
}

/// Returns the name after which the rings of the profile are called: that of the program's ring, if it has one.
pub(super) fn base(names: &[PathBuf], command: &[OsString]) -> PathBuf {
    let ring = names.iter().find(|name| !is_of_process(name));
    let process = names.first().map(|name| PathBuf::from(name.to_string_lossy().replace([':', '/'], "-")));
    let program = command.first().and_then(|program| Path::new(program).file_name()).map(PathBuf::from);
    ring.cloned().or(process).or(program).unwrap_or_else(|| PathBuf::from("profile"))
}

/// Starts what is to be looked at, and begins.
pub(super) fn begin(args: &ProfileArgs) -> anyhow::Result<Begun> {
    if args.command.is_empty() { of_processes(args) } else { of_program(args) }
}

fn of_program(args: &ProfileArgs) -> anyhow::Result<Begun> {
    AwaitedRings::check_names(&args.names)?;
    // Nothing may be started between these two: the kernel's buffers are for the next child of this thread.
    let prepared = Prepared::new(&base(&args.names, &args.command), ProfileTarget::NextChild, args.options())?;
    let program = Program::start(&args.command, args.json)?;
    let id = program.id();
    let (own, missing) = (prepared.readers()?, prepared.missing().to_vec());
    let recording = prepared.start(Some(id))?;
    let of_server = [PathBuf::from(format!("pid:{id}"))];
    let names = if args.names.is_empty() { &of_server[..] } else { &args.names };
    let (names, programs) = match args.process.followed(names, true, args.duration) {
        Err(_) if args.names.is_empty() => (Vec::new(), FollowedPrograms::default()),
        followed => followed?,
    };
    let rings = AwaitedRings::new(&names, Some(program), programs);
    // Without a name, all rings of the program are meant, whether it has a server or not.
    let rings = if args.names.is_empty() { rings.with_family(Family::of_started(id)) } else { rings };
    Ok(Begun { rings, own, recording, missing, processes: Vec::new() })
}

fn of_processes(args: &ProfileArgs) -> anyhow::Result<Begun> {
    let named = |name: &PathBuf| name.to_str()?.strip_prefix("pid:")?.parse::<u32>().ok();
    let processes: Vec<u32> = args.names.iter().filter_map(named).collect();
    let are_all_processes = !processes.is_empty() && processes.len() == args.names.len();
    let (names, programs) = match args.process.followed(&args.names, false, args.duration) {
        // A program without rings has threads all the same.
        Err(_) if are_all_processes => (Vec::new(), FollowedPrograms::default()),
        followed => followed?,
    };
    let mut rings = AwaitedRings::new(&names, None, programs);
    if !processes.is_empty() {
        rings = rings.with_family(Family::of_running(&processes));
    }
    rings.open_all()?;
    let processes = processes_of(&rings, processes)?;
    if processes.is_empty() {
        let named: Vec<_> = args.names.iter().map(|name| name.display().to_string()).collect();
        return Exit::NotFound.fail(format!(
            "{}: no such program runs; name the ring of one that runs, pid:N, or start one: \
             `eventring profile -o FILE -- PROGRAM`",
            named.join(", ")
        ));
    }
    let prepared = prepared(&base(&args.names, &args.command), &rings, &processes, args.options())?;
    let (own, missing) = (prepared.readers()?, prepared.missing().to_vec());
    let recording = prepared.start(None)?;
    Ok(Begun { rings, own, recording, missing, processes })
}

/// Returns the processes that run, of these and of those that write the rings.
///
/// # Errors
/// A ring has a writer, and it is not known which process that is.
pub(super) fn processes_of(rings: &AwaitedRings, mut processes: Vec<u32>) -> Result<Vec<u32>, Failure> {
    for ring in &rings.opened {
        processes.extend(known_holder(ring)?);
    }
    processes.sort_unstable();
    processes.dedup();
    processes.retain(|process| Path::new(&format!("/proc/{process}/task")).exists());
    for process in &processes {
        if own_number(&format!("/proc/{process}")).is_some_and(|own| own != *process) {
            let message = format!(
                "process {process} is in another pid namespace: what the kernel says of its threads is not joined with its \
                 spans; run eventring in its container to have both"
            );
            report_problem(false, &message);
        }
    }
    Ok(processes)
}

/// Opens the kernel's buffers for these processes, as [`Prepared::new`] does.
///
/// # Errors
/// Also if a program has ended meanwhile: its number may be that of another one.
pub(super) fn prepared(
    base: &Path,
    rings: &AwaitedRings,
    processes: &[u32],
    options: ProfileOptions,
) -> anyhow::Result<Prepared> {
    let prepared = Prepared::new(base, ProfileTarget::Processes(processes.to_vec()), options)?;
    let has_ended = |ring: &&Reader| ring.state() != RingState::Live && ring.state() != RingState::Unknown;
    let is_held = |ring: &Reader| holder(ring).is_some_and(|holder| processes.contains(&holder));
    match rings.opened.iter().filter(|ring| !has_ended(ring)).all(is_held) {
        true => Ok(prepared),
        false => Exit::NotFound.fail("another process writes a ring now than when the profile began; try again"),
    }
}
