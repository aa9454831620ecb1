//! Processes on the command line: `pid:N`, the path of a socket and `--process` mean all rings of a program.

use super::control::Enabled;
use super::exit::{Exit, Failure};
use eventring::control::{Process, ServedFile};
use std::path::{Path, PathBuf};

/// The options of verbs that read the rings of running programs.
#[derive(clap::Args)]
pub(super) struct ProcessArgs {
    /// Read all rings of this running program: its name, or the name of one of its rings, or pid:N
    #[arg(long = "process", value_name = "NAME")]
    processes: Vec<String>,
    /// Switch this on in the programs of the rings, as long as this command runs; see `eventring enable`
    #[arg(long, value_name = "DIRECTIVE")]
    enable: Option<String>,
}

impl ProcessArgs {
    /// Returns the names of all rings: those of `names`, and those of the named processes. A name that means a process
    /// is replaced by the names of its rings.
    pub(super) fn rings(&self, names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let mut rings = expand(names)?;
        for name in &self.processes {
            rings.extend(rings_of(&Process::find(name)?, None)?);
        }
        if rings.is_empty() {
            let message = "nothing to read: name a ring, or a program with --process; `eventring list` shows all";
            return Err(Failure::new(Exit::Usage, message).into());
        }
        Ok(rings)
    }

    /// Switches on what `--enable` names in the programs of these rings, as long as the returned value lives.
    pub(super) fn enable(&self, rings: &[PathBuf]) -> anyhow::Result<Option<Enabled>> {
        let Some(directive) = &self.enable else { return Ok(None) };
        Enabled::in_programs_of(rings, directive).map(Some)
    }
}

/// Replaces each name that means a process by the names of its rings.
pub(super) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut rings = Vec::new();
    for name in names {
        match name.to_str().filter(|text| is_process(text)) {
            Some(text) => rings.extend(rings_of(&Process::find(text)?, Some(text))?),
            None => rings.push(name.clone()),
        }
    }
    Ok(rings)
}

/// Returns true if the argument means a process, and not one ring.
fn is_process(name: &str) -> bool {
    let is_pid = name.strip_prefix("pid:").is_some_and(|pid| !pid.contains('/'));
    is_pid || (name.starts_with('@') && !name.contains('/')) || is_socket(Path::new(name))
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.metadata().is_ok_and(|found| found.file_type().is_socket())
}

/// Returns the names of the rings of processes. A ring with a file is named by it, so that it can be read after the
/// program has ended.
fn rings_of(processes: &[Process], as_written: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let mut rings = Vec::new();
    for process in processes {
        let mut files = process.files()?;
        files.retain(|file| file.shard().is_none_or(|(_, index)| index == 0));
        let address = match as_written {
            Some(written) => written.to_owned(),
            None => process.address().to_string(),
        };
        for file in &files {
            let has_file = file.path().filter(|path| path.exists());
            let is_only = |file: &ServedFile| files.iter().filter(|other| other.name() == file.name()).count() == 1;
            rings.push(match has_file {
                Some(path) => path.to_path_buf(),
                None if is_only(file) => format!("{address}/{}", file.name()).into(),
                None => format!("{address}/#{}", file.id()).into(),
            });
        }
    }
    Ok(rings)
}
