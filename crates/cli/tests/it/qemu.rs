//! QEMU and the plugin that counts instructions.

#[path = "../../../../qemu-plugin/tests/plugin/build.rs"]
mod build;

pub use build::qemu_major;

use crate::fixtures::*;
use std::sync::OnceLock;

/// Returns the plugin, or prints why the test is skipped.
pub fn plugin() -> Option<&'static Path> {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    if let Some(reason) = build::missing_qemu() {
        eventring_stress::missing(reason);
        return None;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../qemu-plugin");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("icount");
    Some(PLUGIN.get_or_init(|| build::build(&package, &target, &[])))
}
