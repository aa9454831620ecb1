//! The Perfetto UI that shows the trace: a folder on this machine, or the one on the web.

use crate::exit::{Exit, Failure};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// The online UI.
pub(super) const ONLINE: &str = "https://ui.perfetto.dev";
/// The most files that a folder may have. Perfetto's has about 60.
const FILES_MAX: usize = 5_000;
const DEPTH_MAX: usize = 6;

/// A place from which the browser gets the Perfetto UI.
pub(super) enum Ui {
    Folder(UiFolder),
    Online,
}

/// The files of a Perfetto UI.
pub(super) struct UiFolder {
    folder: PathBuf,
    /// The files by their path in the folder. A request is looked up here and never becomes a path by itself, so no
    /// request leads out of the folder.
    files: BTreeMap<String, PathBuf>,
}

impl Ui {
    /// Finds the UI: the folder that the user names, the installed one, or else the online UI.
    pub(super) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(named) = named {
            return UiFolder::open(named).map(Self::Folder);
        }
        match installed_folder() {
            Some(installed) if installed.exists() => UiFolder::open(&installed).map(Self::Folder),
            _ => Ok(Self::Online),
        }
    }

    /// Returns the folder or the address, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Folder(folder) => folder.folder.display().to_string(),
            Self::Online => ONLINE.to_owned(),
        }
    }
}

/// Returns the folder where `--get-ui` installs a UI. Returns `None` if the user has no home directory.
pub(super) fn installed_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("eventring/ui"))
}

impl UiFolder {
    /// Opens a folder, which must have a Perfetto UI.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let refuse = |found: &str| {
            let message = format!(
                "{} is no Perfetto UI: {found}; expected index.html, and a folder v*/ with frontend_bundle.js and \
                 trace_processor.wasm. `eventring view --get-ui` installs one",
                folder.display()
            );
            Failure::new(Exit::NotFound, message)
        };
        let folder = folder.canonicalize().map_err(|error| refuse(&error.to_string()))?;
        let mut files = BTreeMap::new();
        list(&folder, "", DEPTH_MAX, &mut files).map_err(|error| refuse(&error))?;
        if !files.contains_key("index.html") {
            return Err(refuse("it has no file index.html"));
        }
        let versions =
            files.keys().filter_map(|name| name.split_once('/')).filter(|(folder, _)| folder.starts_with('v'));
        let has_engine = |(version, name): (&str, &str)| {
            name == "trace_processor.wasm" && files.contains_key(&format!("{version}/frontend_bundle.js"))
        };
        if !versions.into_iter().any(has_engine) {
            return Err(refuse("no folder v*/ in it has both"));
        }
        Ok(Self { folder, files })
    }

    /// Opens the file that a request names. The name must be exactly the one of a file that was found at the start.
    pub(super) fn file(&self, name: &str) -> Option<File> {
        let path = self.files.get(name)?;
        // The file may have become a link, or a pipe, since the folder was listed.
        let mut options = OpenOptions::new();
        #[cfg(target_os = "linux")]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.read(true).open(path).ok()?;
        file.metadata().ok()?.is_file().then_some(file)
    }
}

/// Lists the plain files of a folder and of the folders in it. Links, and names with other characters than those of
/// Perfetto's files, are left out.
fn list(folder: &Path, prefix: &str, depth: usize, files: &mut BTreeMap<String, PathBuf>) -> Result<(), String> {
    let cannot = |error: std::io::Error| error.to_string();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.starts_with('.') || !name.chars().all(is_plain) {
            continue;
        }
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_dir() && depth > 0 {
            list(&entry.path(), &format!("{prefix}{name}/"), depth - 1, files)?;
        } else if kind.is_file() {
            if files.len() == FILES_MAX {
                return Err(format!("it has more than {FILES_MAX} files"));
            }
            files.insert(format!("{prefix}{name}"), entry.path());
        }
    }
    Ok(())
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
