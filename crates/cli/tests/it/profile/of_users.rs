//! Users who are not root get what is allowed, and are told the rest.

use super::roles::play;
use super::{profiled, profiling};
use crate::fixtures::*;
use eventring_stress::skipped;
use eventring_stress::users::{become_user, can_be_played};
use std::os::unix::process::CommandExt as _;

const NOBODY: u32 = 65_534;
#[test]
fn a_user_gets_what_is_allowed_and_is_told_the_rest() {
    let test = plays!(|part| play(&part));
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim() != "2" {
        skipped(format_args!("kernel.perf_event_paranoid is {}, not 2", level.trim()));
        return;
    }
    if !can_be_played() || !become_user(NOBODY, NOBODY) {
        return;
    }
    let (_directory, [file]) = places(["p.evc"]);
    let profiled = profiled(&finish(profiling(test, "hot", &file, &[])), &file);
    let missing: Vec<&str> = profiled.summary["missing"].list().iter().map(|missing| missing["what"].text()).collect();
    assert!(missing.iter().any(|what| what.contains("who wakes them")), "{missing:?}");
    assert!(missing.iter().any(|what| what.contains("stacks inside of the kernel")), "{missing:?}");
    // The played part writes to the same place.
    assert_eq!(profiled.said.matches("not recorded: ").count(), 1, "{}", profiled.said);
    assert!(profiled.said.contains("sysctl kernel.perf_event_paranoid="), "{}", profiled.said);
    assert!(profiled.of("SWITCHED_OUT").count() > 0 && profiled.of("SWITCHED_IN").count() > 0);
    assert!(profiled.of("SAMPLE").count() > 20, "{}", profiled.summary);
    let session = profiled.of("SESSION").next().unwrap().1;
    assert_eq!((&session["has_sched"], &session["has_others"]), (&true.into(), &false.into()), "{session}");
}

#[test]
fn what_cannot_be_looked_at_is_an_error() {
    let (directory, [file]) = places(["p.evc"]);
    let file = file.to_str().unwrap();
    let codes = [
        &["profile", "pid:999999999", "-o", file][..],
        &["profile", "no-such-ring", "-o", file],
        &["profile", "-o", file, "--", "/no/such/program"],
    ]
    .map(|arguments| run(arguments).code);
    assert_eq!(codes, [Some(3); 3]);
    run!("profile", "-o", "-", "--", "true").ends(2);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Has the kernel refuse a system call to a program with this error, as containers do.
fn refuse(call: libc::c_long, error: i32) -> std::io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        // The number of the call comes first in what the filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the filter lives as long as the call.
    match unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Hides tracefs from a program, which cannot mount it again.
fn hide_tracefs() -> std::io::Result<()> {
    let mount = |what: &std::ffi::CStr, place: &std::ffi::CStr, flags| {
        // SAFETY: all texts live as long as the call.
        match unsafe { libc::mount(what.as_ptr(), place.as_ptr(), what.as_ptr(), flags, std::ptr::null()) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the call gives this process mounts of its own.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", c"/sys/kernel/tracing", 0)?;
    refuse(libc::SYS_mount, libc::EPERM)
}

/// Profiles a hot function in a process that is prepared so, and returns the profile and what is missing.
fn profiled_in(test: &str, prepare: fn() -> std::io::Result<()>) -> (super::Profiled, String) {
    let (_directory, [file]) = places(["p.evc"]);
    let mut command: Command = profiling(test, "hot", &file, &["--sched"]);
    // SAFETY: the closure calls the system, and nothing that another thread may have locked.
    unsafe { command.pre_exec(prepare) };
    let profiled = profiled(&finish(command), &file);
    // The other users of these tests may not be allowed to run the validator.
    crate::ask::schemas::check(&[("profile", profiled.summary.clone())]);
    let missing = profiled.summary["missing"].to_string();
    assert_eq!(profiled.said.matches("not recorded: ").count(), 1, "{}", profiled.said);
    // The program's own ring is there in any case.
    assert!(profiled.events.iter().any(|event| event["message"] == "begun" || event.to_string().contains("begun")));
    (profiled, missing)
}

#[test]
fn in_a_container_without_perf_the_rings_are_captured_and_the_message_says_what_allows_more() {
    let test = plays!(|part| play(&part));
    if !can_be_played() {
        return;
    }
    // Kernels with the levels 3 and 4 of kernel.perf_event_paranoid answer with EACCES.
    let refusals: [fn() -> std::io::Result<()>; 2] =
        [|| refuse(libc::SYS_perf_event_open, libc::EPERM), || refuse(libc::SYS_perf_event_open, libc::EACCES)];
    for refusal in refusals {
        let (profiled, missing) = profiled_in(test, refusal);
        assert!(missing.contains("everything that the kernel knows") && missing.contains("seccomp"), "{missing}");
        assert!(missing.contains("kernel.perf_event_paranoid is ") && missing.contains("paranoid=2"), "{missing}");
        assert_eq!(profiled.of("SWITCHED_OUT").count(), 0);
    }
}

#[test]
fn without_tracefs_own_switches_are_recorded_and_the_message_says_how_to_mount_it() {
    let test = plays!(|part| play(&part));
    if !can_be_played() {
        return;
    }
    let (profiled, missing) = profiled_in(test, hide_tracefs);
    assert!(missing.contains("tracefs is not mounted") && missing.contains("sudo mount"), "{missing}");
    assert!(profiled.of("SWITCHED_OUT").count() > 0 && profiled.of("SWITCHED_IN").count() > 0, "{}", profiled.summary);
    assert_eq!(profiled.of("WOKEN").count(), 0);
}
