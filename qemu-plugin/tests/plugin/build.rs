//! Builds the plugin for tests. The tests of the recorder use this file, too.

use std::path::{Path, PathBuf};
use std::process::Command;

pub const QEMU: &str = "qemu-x86_64";

/// Returns the reason why no plugin can be used here, if there is one.
pub fn missing_qemu() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the plugin is built for x86-64 Linux".to_owned());
    }
    match Command::new(QEMU).arg("-help").output() {
        Err(error) => Some(format!("cannot start {QEMU}: {error}")),
        Ok(output) if !String::from_utf8_lossy(&output.stdout).contains("-plugin") => {
            Some(format!("{QEMU} takes no plugins"))
        }
        Ok(_) => None,
    }
}

/// Returns the first number of QEMU's version.
pub fn qemu_major() -> u32 {
    let output = Command::new(QEMU).arg("-version").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&output);
    let number = version.split("version ").nth(1).and_then(|rest| rest.split('.').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{version}"))
}

/// Builds the plugin of the crate in `package`, with these flags of the compiler. Returns its file, in `target`.
pub fn build(package: &Path, target: &Path, flags: &[&str]) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .current_dir(package)
        // QEMU cannot load a library with a sanitizer, and another target has another directory.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .args(["rustc", "--lib", "--release", "--target-dir"])
        .arg(target)
        .arg("--")
        .args(flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("release/libeventring_qemu_plugin.so")
}
