//! Stand-ins on systems other than Linux, which have no live rings, no programs to control, and no signals.

use crate::exit::{Exit, Failure};
use clap::error::{ContextKind, ContextValue};

/// The verbs of `exec` that need rings.
const OF_EXEC: [&str; 2] = ["archive", "replay"];

/// Returns the error of a verb that this program does not have. `verbs` are the verbs that it has on Linux.
pub(super) fn failure(error: &clap::Error, verbs: &[&str]) -> Option<Failure> {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    verbs.iter().chain(&OF_EXEC).any(|name| name.eq_ignore_ascii_case(verb)).then(|| {
        let message =
            format!("`{verb}` is about event rings, which need Linux; captures and snapshots can be read here");
        Exit::Unsupported.failure(message)
    })
}

pub(super) mod interrupt {
    use std::io;
    use tempfile::TempDir;

    /// Ctrl-C ends the process by itself.
    pub(crate) struct Interrupt;

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "they are called like the others")]
    impl Interrupt {
        pub(crate) fn listen() -> anyhow::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn came(&self) -> bool {
            false
        }
    }

    pub(crate) struct RemovedBySignal;

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "they are called like the others")]
    impl RemovedBySignal {
        pub(crate) fn listen() -> anyhow::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn make(&self, make: impl FnOnce() -> io::Result<TempDir>) -> io::Result<TempDir> {
            make()
        }
    }
}

pub(super) mod open_files {
    use std::path::PathBuf;

    /// Nothing is awaited.
    #[derive(Default)]
    pub(crate) struct WhyAwaited {}

    #[expect(clippy::unused_self, reason = "it is called like the other one")]
    impl WhyAwaited {
        pub(crate) fn in_words(&mut self, _: &[PathBuf]) -> String {
            String::new()
        }
    }
}

pub(super) mod processes {
    use crate::exit::{Exit, Failure};
    use crate::interrupt::Interrupt;
    use std::convert::Infallible;
    use std::path::{Path, PathBuf};

    /// No options: there are no programs whose rings could be read.
    #[derive(clap::Args, Default)]
    pub(crate) struct ProcessArgs {}

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "they are called like the others")]
    impl ProcessArgs {
        pub(crate) fn rings(&self, names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
            if names.is_empty() {
                return Exit::Usage.fail("nothing to read: name a capture or a snapshot");
            }
            expand(names)
        }

        pub(crate) fn rings_or_wait(
            &self,
            names: &[PathBuf],
            _: bool,
            _: &Interrupt,
        ) -> anyhow::Result<Option<Vec<PathBuf>>> {
            self.rings(names).map(Some)
        }

        pub(crate) fn check_directive(&self) -> Result<(), Failure> {
            Ok(())
        }

        pub(crate) fn refuse_enable(&self, _: &str) -> Result<(), Failure> {
            Ok(())
        }

        pub(crate) fn check_lasting(_: &[PathBuf]) -> Result<(), Failure> {
            Ok(())
        }

        pub(crate) fn enable(&self, _: &[PathBuf]) -> anyhow::Result<Option<Infallible>> {
            Ok(None)
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is called like the other one")]
    pub(crate) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        Ok(names.to_vec())
    }

    pub(crate) fn is_of_process(_: &Path) -> bool {
        false
    }
}

/// What `output_directory` does without the calls of Linux.
pub(super) mod directory {
    use std::fs::{self, File};
    use std::io;
    use std::path::Path;

    /// Moves `b` out of the way, and `a` to its place. The earlier one then has the name of `a`.
    pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
        let aside = a.with_extension("earlier");
        fs::rename(b, &aside)?;
        fs::rename(a, b)?;
        fs::rename(aside, a)
    }

    pub(crate) fn open_plain(path: &Path) -> Option<File> {
        let is_plain = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        if is_plain { eventring::internal::shm::open_file(path).ok() } else { None }
    }

    pub(crate) fn remove(directory: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if is_ours(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir(directory)
    }
}
