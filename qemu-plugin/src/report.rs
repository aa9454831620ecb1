//! The report: a line for each process at its exit.

use crate::qemu::PluginId;
use crate::{SETUP, Setup, slots};
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process;

/// Appends the line of this process.
pub extern "C" fn exiting(_: PluginId, _: *mut c_void) {
    let Some((setup, path)) = SETUP.get().and_then(|setup| Some((setup, setup.options.report.as_deref()?))) else {
        return;
    };
    if let Err(error) = append(path, &line(setup)) {
        eprintln!("eventring plugin: cannot append to the report {}: {error}", path.display());
    }
}

fn line(setup: &Setup) -> String {
    let (pid, instructions) = (process::id(), slots::threads().total());
    let (mode, api) = (setup.options.mode.name(), setup.qemu_api);
    format!("{{\"pid\":{pid},\"instructions\":{instructions},\"mode\":\"{mode}\",\"qemu_api\":{api}}}\n")
}

/// Writes the line at once, so that lines of several processes do not mix.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let written = file.write(line.as_bytes())?;
    if written == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
