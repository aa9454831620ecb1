//! QEMU and its plugin, and the command that runs a program under them.

use crate::exit::{Exit, Failure};
use eventring::internal::shm;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Environment variable with the path of the plugin.
const PLUGIN_VARIABLE: &str = "EVENTRING_QEMU_PLUGIN";
/// Environment variable with the path of QEMU.
const QEMU_VARIABLE: &str = "EVENTRING_QEMU";
const QEMU: &str = "qemu-x86_64";
const PLUGIN: &str = "libeventring_qemu_plugin.so";
/// The command that makes the plugin.
pub(super) const BUILD: &str = "cargo build --release -p eventring-qemu-plugin";
/// The machine in the header of an ELF file for x86-64.
const X86_64: [u8; 2] = [62, 0];

/// A way to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum CountMode {
    /// By blocks
    Tb,
    /// Each instruction
    Insn,
}

/// QEMU and the plugin.
pub(super) struct Qemu {
    pub(super) program: PathBuf,
    plugin: PathBuf,
}

impl Qemu {
    /// Finds QEMU and the plugin.
    pub(super) fn find() -> Result<Self, Failure> {
        let program = match set(QEMU_VARIABLE) {
            Some(path) => path,
            None => in_path(QEMU.as_ref()).ok_or_else(|| {
                Exit::Unsupported.failure(format!(
                    "there is no {QEMU} in $PATH; install it (Debian: apt install qemu-user), or name it in ${QEMU_VARIABLE}"
                ))
            })?,
        };
        let beside = || Some(std::env::current_exe().ok()?.with_file_name(PLUGIN)).filter(|plugin| plugin.is_file());
        let plugin = match set(PLUGIN_VARIABLE) {
            Some(path) if path.is_file() => path,
            Some(path) => {
                let path = path.display();
                return Exit::NotFound
                    .fail(format!("${PLUGIN_VARIABLE} names {path}, which is no file; {BUILD} makes it"));
            }
            None => beside().ok_or_else(|| {
                Exit::NotFound.failure(format!(
                    "the plugin {PLUGIN} is not beside this program; make it with `{BUILD}`, and put it there or name it in \
                     ${PLUGIN_VARIABLE}"
                ))
            })?,
        };
        Ok(Self { program, plugin })
    }

    /// Returns the command that runs the program under QEMU. At its end the plugin writes its counts to `report`.
    pub(super) fn command(
        &self,
        mode: CountMode,
        cpu: Option<&OsStr>,
        report: &Path,
        program: &Path,
        arguments: &[OsString],
    ) -> Vec<OsString> {
        let mut plugin = OsString::from("file=");
        plugin.push(option_value(&self.plugin));
        plugin.push(match mode {
            CountMode::Tb => ",mode=tb,report=",
            CountMode::Insn => ",mode=insn,report=",
        });
        plugin.push(option_value(report));
        let mut command = vec![self.program.clone().into(), "-plugin".into(), plugin];
        if let Some(cpu) = cpu {
            command.extend(["-cpu".into(), cpu.to_owned()]);
        }
        command.push(program.into());
        command.extend(arguments.iter().cloned());
        command
    }
}

/// Returns a path as QEMU reads it in a list of options: a comma in it is written twice.
fn option_value(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes().iter().flat_map(|byte| [*byte].repeat(if *byte == b',' { 2 } else { 1 }));
    OsString::from_vec(bytes.collect())
}

fn set(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the path of a program that QEMU can run, as a shell would find it.
pub(super) fn find_program(name: &OsStr) -> Result<PathBuf, Failure> {
    let path = if name.as_encoded_bytes().contains(&b'/') { Some(PathBuf::from(name)) } else { in_path(name) };
    let path = path.ok_or_else(|| {
        Exit::NotFound.failure(format!("there is no program {} in $PATH; give its path", name.to_string_lossy()))
    })?;
    let mut head = [0; 20];
    let read = shm::open_file(&path).and_then(|mut file| file.read(&mut head));
    read.map_err(|error| Failure::io(format_args!("cannot read {}", path.display()), &error))?;
    let is = |what: &str, mend: &str| Exit::Unsupported.fail(format!("{} is {what}; {mend}", path.display()));
    match head {
        [b'#', b'!', ..] => is("a script", "name the program that the script starts"),
        [0x7f, b'E', b'L', b'F', 2, ..] if head[18..] == X86_64 => Ok(path),
        [0x7f, b'E', b'L', b'F', ..] => is("for another machine than x86-64", "build it for x86-64"),
        _ => is("no ELF program", "name a program for x86-64 Linux"),
    }
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(name)).find(is_program)
}
