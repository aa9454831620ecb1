//! Builds the plugin and guests, and runs guests under QEMU.

#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod build;

pub use build::{QEMU, qemu_major};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub const MODES: [&str; 2] = ["tb", "insn"];

/// Returns the plugin's file, or prints why the test is skipped.
pub fn plugin() -> Option<&'static Path> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(reason) = missing() {
        eventring_stress::missing(reason);
        return None;
    }
    Some(BUILT.get_or_init(|| build_into("sound", &[])))
}

/// Returns the file of a plugin that does not correct instructions that cross a page.
pub fn plugin_with_a_fault() -> PathBuf {
    build_into("faulty", &["--cfg", "eventring_mutants"])
}

fn missing() -> Option<String> {
    if Command::new("gcc").arg("--version").output().is_err() {
        return Some("there is no gcc".to_owned());
    }
    build::missing_qemu()
}

fn build_into(name: &str, flags: &[&str]) -> PathBuf {
    build::build(Path::new(env!("CARGO_MANIFEST_DIR")), &scratch().join(name), flags)
}

/// Returns a directory for the files of this test program.
pub fn scratch() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let name = own.file_stem().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests")
}

/// Assembles `tests/guests/NAME.s`, without a library.
pub fn assembled(name: &str) -> PathBuf {
    compile(&guests().join(format!("{name}.s")), &["-nostdlib", "-static"])
}

/// Compiles `tests/guests/NAME.c`.
pub fn compiled(name: &str) -> PathBuf {
    compile(&guests().join(format!("{name}.c")), &["-pthread"])
}

/// Compiles a source to a file of its own for each call, because a running program cannot be replaced.
pub fn compile(source: &Path, flags: &[&str]) -> PathBuf {
    let directory = new_directory(source.file_stem().unwrap().to_str().unwrap());
    let program = directory.join("program");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("gcc")
        .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"])
        .arg(format!("-I{}", manifest.join("include").display()))
        .arg(format!("-Wa,-I,{}", guests().display()))
        .arg(source)
        .args(flags)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

/// Makes an empty directory that no other test uses.
pub fn new_directory(name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let directory = scratch().join(format!("{name}{}", MADE.fetch_add(1, Ordering::Relaxed)));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs a guest under the plugin, with options of the plugin such as `mode=tb`.
pub fn run(plugin: &Path, options: &str, guest: &Path) -> Output {
    run_with(plugin, options, &[], guest)
}

/// Runs a guest under the plugin, with further options of QEMU.
pub fn run_with(plugin: &Path, options: &str, of_qemu: &[&str], guest: &Path) -> Output {
    let argument = format!("{},{options}", plugin.display());
    let output = Command::new(QEMU).args(of_qemu).args(["-plugin", &argument]).arg(guest).output().unwrap();
    assert!(output.status.success(), "{:?}\n{}", output.status, text(&output.stderr));
    output
}

/// Runs a guest that writes counts, and returns the counts.
pub fn counts(plugin: &Path, mode: &str, guest: &Path) -> Vec<u64> {
    let output = run(plugin, &format!("mode={mode}"), guest).stdout;
    let (words, rest) = output.as_chunks::<8>();
    assert!(rest.is_empty() && !words.is_empty(), "{} bytes", output.len());
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
