//! Requests with and without the plugin, refused options and refused QEMUs.

mod plugin;

use plugin::{MODES, assembled, compile, compiled, new_directory, plugin, run, text};
use std::path::Path;
use std::process::{Command, Output};

/// The requests that the plugin answers, if all of `protocol.c` are made in their order.
const ANSWERED: [&str; 5] = ["stop", "thread", "process", "slot", "version"];
const NOT_ANSWERED: [&str; 7] = [
    "stop-without-start",
    "start",
    "stop-again",
    "thread-with-4-bytes",
    "thread-with-16-bytes",
    "before-the-first",
    "after-the-last",
];

/// Checks that each request failed, and that the buffers of `answered` were changed and no others.
fn check(output: &str, answered: &[&str]) {
    let mut seen = 0;
    for line in output.lines().filter(|line| line.ends_with(" kept") || line.ends_with(" overrun")) {
        let (name, rest) = line.split_once(' ').unwrap();
        let state = if answered.contains(&name) { "answered" } else { "untouched" };
        assert_eq!(rest, format!("-1 EBADF {state} kept"), "{name}");
        seen += 1;
    }
    assert_eq!(seen, ANSWERED.len() + NOT_ANSWERED.len(), "{output}");
}

#[test]
fn natively_requests_fail_and_leave_the_buffer_untouched() {
    if plugin().is_none() {
        return;
    }
    let output = Command::new(compiled("protocol")).output().unwrap();
    let output = text(&output.stdout);
    check(&output, &[]);
    assert!(output.contains("wrong-address -1 EBADF"), "{output}");
}

#[test]
fn under_the_plugin_requests_fail_too_and_fill_the_buffer() {
    let Some(plugin) = plugin() else { return };
    let guest = compiled("protocol");
    for (mode, number) in MODES.iter().zip(1..) {
        let output = text(&run(plugin, &format!("mode={mode}"), &guest).stdout);
        check(&output, &ANSWERED);
        assert!(output.contains("wrong-address -1 "), "{output}");
        assert!(output.ends_with(&format!("version 1 mode {number}\n")), "{output}");
    }
}

/// Starts a QEMU with the plugin and returns its messages. The guest may not start.
fn refused(qemu: &str, plugin: &Path, options: &str) -> String {
    let guest = assembled("known");
    let argument = format!("{}{options}", plugin.display());
    let Output { status, stdout, stderr } =
        Command::new(qemu).args(["-plugin", &argument]).arg(&guest).output().unwrap();
    assert!(!status.success() && stdout.is_empty(), "{qemu} {options}: {status:?}");
    text(&stderr)
}

#[test]
fn wrong_options_are_refused_with_the_expected_ones() {
    let Some(plugin) = plugin() else { return };
    let expected = "expected mode=tb, mode=insn or report=PATH";
    for (options, message) in [
        (",mode=fast", "unknown mode `fast`, expected mode=tb or mode=insn".to_owned()),
        (",colour=red", format!("unknown option `colour=red`, {expected}")),
        (",insn", format!("unknown option `insn=on`, {expected}")),
        (",report=", "the report has no path, expected report=PATH".to_owned()),
    ] {
        let messages = refused(plugin::QEMU, plugin, options);
        assert!(messages.contains(&format!("eventring plugin: {message}\n")), "{options}: {messages}");
    }
}

#[test]
fn guests_of_another_machine_are_refused() {
    let Some(plugin) = plugin() else { return };
    for machine in ["aarch64", "i386"] {
        let qemu = format!("qemu-{machine}");
        if Command::new(&qemu).arg("-version").output().is_err() {
            eventring_stress::missing(format_args!("cannot start {qemu}"));
            continue;
        }
        let messages = refused(&qemu, plugin, "");
        assert!(messages.contains(&format!("the guest is {machine}, expected x86_64")), "{messages}");
    }
}

/// A static QEMU refuses the option before it sees the plugin, so the message is QEMU's.
#[test]
fn a_static_qemu_says_that_it_takes_no_plugins() {
    let Some(plugin) = plugin() else { return };
    let qemu = "qemu-x86_64-static";
    if Command::new(qemu).arg("-version").output().is_err() {
        return eventring_stress::skipped(format_args!("cannot start {qemu}"));
    }
    assert!(refused(qemu, plugin, "").contains("plugin"));
}

#[test]
fn a_report_that_cannot_be_written_is_named() {
    let Some(plugin) = plugin() else { return };
    let directory = new_directory("no-report");
    let output = run(plugin, &format!("report={}", directory.display()), &assembled("known"));
    let message = format!("eventring plugin: cannot append to the report {}: ", directory.display());
    assert!(text(&output.stderr).contains(&message), "{}", text(&output.stderr));
}

/// Lets the stand-in for QEMU's loader install the plugin. Returns its two numbers and the plugin's message.
fn installed(host: &Path, plugin: &Path, machine: &str, version: &str, system: &str) -> (String, String) {
    let output = Command::new(host).arg(plugin).args([machine, version, system]).output().unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_plugin_asks_for_the_version_that_the_loading_program_knows() {
    let Some(plugin) = plugin() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/host.c");
    let older = compile(&source, &["-rdynamic"]);
    let newer = compile(&source, &["-rdynamic", "-DNEWER"]);
    assert_eq!(installed(&older, plugin, "x86_64", "1", "0"), ("1 0\n".to_owned(), String::new()));
    for version in ["2", "6"] {
        assert_eq!(installed(&newer, plugin, "x86_64", version, "0"), ("2 0\n".to_owned(), String::new()));
    }
    for (version, system, message) in [
        ("7", "0", "found QEMU's plugin interface 7, expected at most 6; take an older QEMU"),
        ("2", "1", "found qemu-system-x86_64, expected the user mode; start the program by qemu-x86_64"),
    ] {
        let expected = ("2 1\n".to_owned(), format!("eventring plugin: {message}\n"));
        assert_eq!(installed(&newer, plugin, "x86_64", version, system), expected);
    }
}
