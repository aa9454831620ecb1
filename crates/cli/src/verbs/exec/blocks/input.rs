//! The input of the verbs for blocks: execution events from a ring, captures, an `EVCAP_01` file or an archive.

use crate::exit::{Exit, Failure};
use crate::input::ring_args::Expect;
use crate::input::saved::{self, Saved};
use crate::text::format::counted;
use crate::text::losses::report_problem;
use crate::text::paint::DIM;
use eventring::reader::{Reader, RingState};
use eventring_exec::{BlockArchive, EventcapFile, ExecEvents, UnknownSchema, is_stored, stored_events};
use std::path::{Path, PathBuf};

/// Names of one ring, of captures, of an `EVCAP_01` file or of an archive, on the command line.
#[derive(clap::Args)]
pub(crate) struct InputArgs {
    /// Name or path of a ring, or a snapshot; capture files; an EVCAP_01 file; or a directory that is an archive of
    /// blocks
    #[arg(value_name = "RING|FILE|DIR", required = true)]
    pub(crate) names: Vec<PathBuf>,
    #[command(flatten)]
    expect: Expect,
}

/// The ring, the captures, the file or the archive that the names stand for.
pub(crate) enum Input {
    Ring(Box<Reader>),
    Saved(Box<Saved>),
    Stored(PathBuf),
}

impl InputArgs {
    pub(crate) fn name(&self) -> &Path {
        &self.names[0]
    }

    pub(crate) fn open(&self) -> anyhow::Result<Input> {
        if let [name] = &self.names[..] {
            if is_stored_here(name) {
                check_archive(name)?;
                return Ok(Input::Stored(name.clone()));
            }
            if !saved::has_capture(&self.names) {
                return Ok(Input::Ring(Box::new(self.expect.open(name)?)));
            }
        } else if let Some(name) = self.names.iter().find(|name| is_stored_here(name)) {
            let message = format!("{}: an archive or EVCAP_01 file is read alone; name it alone", name.display());
            return Exit::Usage.fail(message);
        }
        Ok(Input::Saved(Box::new(saved::open(&self.names, false)?)))
    }
}

impl Input {
    /// Returns the events, from the first one on.
    pub(crate) fn events(&self, name: &Path) -> anyhow::Result<ExecEvents> {
        let events = match self {
            Self::Ring(ring) => ExecEvents::of_ring(ring),
            Self::Saved(saved) => ExecEvents::of_capture(&saved.capture),
            Self::Stored(path) => stored_events(path)?,
        };
        events.map_err(|error| refused(name, &error).into())
    }

    /// Checks that events can follow, if the user wants them: a ring that may still be written.
    pub(crate) fn check_follow(&self, follows: bool) -> Result<(), Failure> {
        match self {
            _ if !follows => Ok(()),
            Self::Ring(ring) if ring.state() != RingState::Saved => Ok(()),
            _ => Exit::Usage.fail("--follow needs a ring: a file has no further blocks"),
        }
    }

    /// Says which kind of file of the published system is read.
    pub(crate) fn describe(&self, is_quiet: bool) {
        if let Self::Stored(path) = self
            && !is_quiet
            && let Ok(file) = EventcapFile::open(path)
        {
            let (header, bundles) = (file.header(), file.bundles().len());
            let events: u64 = file.bundles().map(|bundle| bundle.event_count).fold(0, u64::saturating_add);
            let (bundles, events) = (counted(bundles as u64, "bundle", "bundles"), crate::text::format::events(events));
            say!("{DIM}{header}: {bundles} with {events}{DIM:#}");
        }
    }

    /// Reports what was wrong with the files. Returns the exit code.
    pub(crate) fn report(&self, names: &[PathBuf], problems: &[String]) -> Exit {
        match self {
            // Those of an archive beside a ring are told as they come.
            Self::Ring(_) if !problems.is_empty() => Exit::Damaged,
            Self::Ring(ring) => ring.lost_pages().map_or(Exit::Done, Exit::from_lost_pages),
            Self::Saved(saved) => {
                let mut all = saved.capture.problems().to_vec();
                all.extend(problems.iter().cloned());
                saved.report(names, &all, &[])
            }
            Self::Stored(_) => {
                problems.iter().for_each(|problem| report_problem(true, problem));
                if problems.is_empty() { Exit::Done } else { Exit::Damaged }
            }
        }
    }
}

/// Returns true if the name is that of an archive or of an EVCAP_01 file, and no ring has it.
fn is_stored_here(name: &Path) -> bool {
    !saved::is_of_ring(name) && is_stored(name)
}

/// Checks that a directory has blocks.
fn check_archive(directory: &Path) -> anyhow::Result<()> {
    if !directory.is_dir() || !BlockArchive::open(directory)?.numbers()?.is_empty() {
        return Ok(());
    }
    let name = directory.display();
    let entries = directory.read_dir().map_err(|error| Failure::io(format!("cannot read {name}"), &error))?;
    let found = match entries.count() {
        0 => "nothing".to_owned(),
        all => counted(all as u64, "file or directory", "files and directories"),
    };
    Exit::NotFound.fail(format!(
        "{name} is no archive of blocks: found {found} there, and no N/BLOCK.bcap as `eventring exec archive` writes them; name \
         captures and snapshots one by one"
    ))
}

pub(crate) fn refused(name: &Path, error: &UnknownSchema) -> Failure {
    let exit = if error.is_other_content() { Exit::WrongContentType } else { Exit::WrongSchema };
    exit.failure(format!("{}: {error}", name.display()))
}
