//! QEMU and the plugin that counts instructions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the plugin, or prints why the test is skipped.
pub fn plugin() -> Option<&'static Path> {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    let help = Command::new("qemu-x86_64").arg("-help").output();
    if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("-plugin")) {
        eprintln!("SKIPPED: there is no qemu-x86_64 that takes plugins");
        return None;
    }
    Some(PLUGIN.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("icount");
        let mut cargo = Command::new(env!("CARGO"));
        // QEMU cannot load a library with a sanitizer, and another target has another directory.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET").current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["build", "--quiet", "--release", "-p", "eventring-qemu-plugin", "--target-dir"]).arg(&target);
        assert!(cargo.status().unwrap().success());
        target.join("release/libeventring_qemu_plugin.so")
    }))
}
