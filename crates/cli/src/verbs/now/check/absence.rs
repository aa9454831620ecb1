//! The reasons why a name or a process has no ring.

use super::rings::CheckedRing;
use super::system;
use crate::input::advice;
use crate::input::directories::instance_of;
use crate::input::programs::program::is_numbered;
use crate::input::programs::{open_files, process};
use crate::text::format::one_line;

use eventring::files::{DIRECTORY_VARIABLE, RingDirectories};
use eventring::internal::shm::is_own_or_roots;
use eventring::reader::{Reader, ReaderError, ReaderErrorKind};
use eventring_capture::foreign::MappedFile;
use std::fs;
use std::path::Path;

/// Returns the reasons why a ring of this name cannot be read.
pub(super) fn of_name(name: &Path, error: &ReaderError) -> Vec<String> {
    let of_others = || {
        let closed = system::closed_directories().into_iter();
        closed.map(|directory| {
            let directory = directory.display();
            format!("the ring directory {directory} is of another user, and this user may not look into it")
        })
    };
    if error.kind() != ReaderErrorKind::NotFound {
        return of_others().chain([one_line(&error.to_string())]).collect();
    }
    let shown = one_line(&name.display().to_string());
    let mut reasons = Vec::new();
    if let Some(advice) = advice::instead_of_a_name(name) {
        return vec![advice];
    }
    let wanted = name.file_name().unwrap_or_default();
    for pid in process::all() {
        let mapped = MappedFile::list(pid).unwrap_or_default();
        let is_it = |mapped: &&MappedFile| mapped.is_written && Path::new(&mapped.path).file_name() == Some(wanted);
        let Some(elsewhere) = mapped.iter().find(is_it) else { continue };
        let Some(path) = process::reach(pid, elsewhere).filter(|path| Reader::open(path).is_ok()) else { continue };
        let directory = path.parent().unwrap_or(&path).display().to_string();
        reasons.push(format!(
            "{} records it in another directory: set {DIRECTORY_VARIABLE}={directory}, or name {}",
            process::in_words(pid),
            path.display()
        ));
    }
    for directory in RingDirectories::from_environment().for_reading() {
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        reasons.extend(names.filter(|file| instance_of(file).is_some_and(|of| wanted == of)).map(|file| {
            format!(
                "another process or user had the name when the program began: its ring is called {}",
                one_line(&file)
            )
        }));
    }
    reasons.extend(of_others());
    reasons.extend(open_files::why_not_made(wanted.as_ref()));
    if reasons.is_empty() {
        let called = process::all().filter(|pid| is_called(*pid, wanted));
        reasons.extend(called.flat_map(|pid| of_process(pid, &[])));
    }
    if reasons.is_empty() {
        let why = advice::why_gone(name);
        reasons.push(format!("there is no ring called {shown} in {}{why}", directories()));
    }
    reasons
}

fn directories() -> String {
    let directories = RingDirectories::from_environment().for_reading();
    directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ")
}

/// Returns true if this is the name of the process or of its program's file.
fn is_called(pid: u32, name: &std::ffi::OsStr) -> bool {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    exe.file_name() == Some(name) && pid != std::process::id() && is_own_or_roots(pid)
}

/// Returns the reasons why a process writes no ring. `inherited` are the rings of others that it has open.
pub(super) fn of_process(pid: u32, inherited: &[CheckedRing]) -> Vec<String> {
    let who = process::in_words(pid);
    if !process::exists(pid) {
        let left = rings_left_by(pid);
        return match left.as_slice() {
            [] => vec![format!(
                "there is no process {pid} now, and no ring in {} is one of an earlier process of this number",
                directories()
            )],
            left => vec![format!("process {pid} has ended; it has left {}: name the ring", left.join(", "))],
        };
    }
    if let Some(why) = open_files::why_nothing(pid) {
        return vec![why];
    }
    let forked_from = |ring: &CheckedRing| {
        let parent = ring.ring.info.extension.as_ref().map_or(0, |extension| extension.writer.pid);
        format!(
            "{who} was forked from process {parent}, which records to {}: a forked child records nothing until it makes \
             its own recorder",
            ring.name
        )
    };
    if !inherited.is_empty() {
        return inherited.iter().map(forked_from).collect();
    }
    let markers = ["EVENTRING_DIR", "EVENTRING_PERF", "SPAN_ENTER"];
    let Some([is_inside, asks_environment, has_spans]) = process::contains(pid, markers) else {
        return vec![format!("this user may not look into {who}: run `eventring check` as its user or as root")];
    };
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let program = one_line(&program.display().to_string());
    if !is_inside {
        return vec![format!(
            "{program} does not contain eventring: it was built without it; look for a feature of the program, and build \
             it again"
        )];
    }
    let mut reasons = Vec::new();
    if asks_environment && matches!(process::variable(pid, "EVENTRING_PERF"), Ok(None)) {
        reasons.push(format!(
            "EVENTRING_PERF is not set in the environment of {who}: a program that calls `try_init_from_env` or \
             `RecorderLayer::try_from_env` records only with it"
        ));
    }
    if !has_spans {
        reasons.push(format!(
            "{program} has no recorder of spans: it was built without the feature `tracing`, or does not call `init`"
        ));
    }
    reasons.push(format!(
        "{who} contains eventring and has made no ring: `init` or `try_init` was not called yet, or a variable that \
         `try_init_from_env` reads is not set, or `try_init` has failed and the program has not said so"
    ));
    reasons
}

/// Returns the paths of the rings that a dead process has left.
fn rings_left_by(pid: u32) -> Vec<String> {
    let directories = RingDirectories::from_environment().for_reading();
    let files = crate::input::directories::finished_files(&directories, false).unwrap_or_default();
    let is_its = |path: &&std::path::PathBuf| {
        let extension = Reader::options().header_only().open(path).ok().and_then(|ring| ring.info().extension);
        extension.is_some_and(|extension| is_numbered(&extension.writer, pid) && extension.shard_index == 0)
    };
    files.iter().filter(is_its).map(|path| one_line(&path.display().to_string())).collect()
}
