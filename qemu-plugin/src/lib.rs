//! A QEMU plugin that counts the executed instructions of each guest thread.
//!
//! QEMU's user mode calls the plugin for each new block of instructions that it translates. By default, each execution
//! of the block then adds the number of instructions to a slot of the thread. The guest asks for counts by `read`
//! system calls with descriptors that cannot exist (see the README).
#![cfg(target_os = "linux")]

mod control;
mod count;
mod fork;
mod options;
mod qemu;
mod report;
mod slots;

use options::{Mode, Options};
use qemu::{Info, PluginId};
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

/// The options and the QEMU that runs the plugin.
struct Setup {
    options: Options,
    /// The newest version of the plugin interface that this QEMU knows.
    qemu_api: i32,
}

/// The setup of the process. `qemu_plugin_install` writes the setup before any callback runs.
static SETUP: OnceLock<Setup> = OnceLock::new();

/// Returns the way of counting.
fn mode() -> Mode {
    SETUP.get().map_or(Mode::Block, |setup| setup.options.mode)
}

/// Registers the callbacks. QEMU calls this function once, before the guest starts. Another result than 0 ends QEMU.
///
/// # Safety
///
/// Only QEMU may call this function, with the arguments of its plugin interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a pointer to its description, which is valid during this call.
    let info = unsafe { &*info };
    let words: Vec<String> = (0..usize::try_from(argc).unwrap_or(0))
        .map(|index| {
            // SAFETY: `argv` has `argc` elements.
            let word = unsafe { argv.add(index) };
            // SAFETY: the element lies within `argv`.
            let word = unsafe { *word };
            // SAFETY: each element is a string with a terminating zero.
            unsafe { CStr::from_ptr(word) }.to_string_lossy().into_owned()
        })
        .collect();
    match install(id, info, &words) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("eventring plugin: {message}");
            1
        }
    }
}

/// Checks the surroundings and registers the callbacks.
fn install(id: PluginId, info: &Info, words: &[String]) -> Result<(), String> {
    // SAFETY: QEMU's description has a target name with a terminating zero.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    if info.system_emulation {
        return Err(format!("found qemu-system-{target}, expected the user mode; start the program by qemu-x86_64"));
    }
    if target != "x86_64" {
        return Err(format!("the guest is {target}, expected x86_64; start an x86-64 program by qemu-x86_64"));
    }
    let found = info.version_newest;
    if found > qemu::NEWEST_KNOWN {
        let known = qemu::NEWEST_KNOWN;
        return Err(format!("found QEMU's plugin interface {found}, expected at most {known}; take an older QEMU"));
    }
    let options = Options::parse(words)?;
    fork::follow()?;
    let reports = options.report.is_some();
    let setup = Setup { options, qemu_api: found };
    if SETUP.set(setup).is_err() {
        return Err("the plugin is loaded twice; remove one of the -plugin options".to_owned());
    }
    qemu::on_translation(id, count::translated);
    qemu::on_system_call(id, control::system_call);
    if reports {
        qemu::on_exit(id, report::exiting);
    }
    Ok(())
}
