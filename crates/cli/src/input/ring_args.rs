//! The arguments that name a ring and its expected events.

use crate::input::{advice, patterns};
use eventring::reader::{Reader, ReaderOptions};
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::PerfEvent;
use eventring::schema::test::TestEvent;
use std::path::{Path, PathBuf};

/// The ring to read, and the events that it must hold.
#[derive(clap::Args)]
pub(crate) struct RingArgs {
    /// Name or path of a ring, or a snapshot; or a pattern that fits one ring, as `shop*`
    ///
    /// A name without `/` is looked up in the ring directories (`event-rings/` on a hugetlbfs mount and in /dev/shm, or
    /// $EVENTRING_DIR), then in the current directory.
    #[arg(value_name = "RING")]
    name: PathBuf,
    #[command(flatten)]
    expect: Expect,
}

/// The events that rings must hold.
#[derive(clap::Args, Default)]
pub(crate) struct Expect {
    /// Refuse a ring that does not hold these events, with exactly the schema that this program knows
    #[arg(long, value_name = "EVENTS")]
    expect: Option<KnownSchema>,
}

/// A schema that this program was built with.
#[derive(clap::ValueEnum, Clone, Copy)]
enum KnownSchema {
    /// Execution events
    Exec,
    /// Spans and log records of `tracing`
    Perf,
    /// Events for tests
    Test,
}

impl RingArgs {
    /// Returns the name as the user has written it.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    pub(crate) fn open(&self) -> anyhow::Result<Reader> {
        self.expect.open(&self.name)
    }
}

impl Expect {
    /// Opens the one ring that has this name, or fits this pattern.
    pub(crate) fn open(&self, name: &Path) -> anyhow::Result<Reader> {
        let name = patterns::one_ring(name)?;
        let reader = self.options().open(&name).map_err(|error| advice::on_expected(&name, error))?;
        advice::warn_of_shard(&name, &reader);
        Ok(reader)
    }

    /// Returns true if the user has named no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.expect.is_none()
    }

    /// Returns options that open the ring only if it holds the expected events.
    pub(crate) fn options(&self) -> ReaderOptions {
        let options = Reader::options();
        match self.expect {
            None => options,
            Some(KnownSchema::Exec) => options.expect_events::<ExecEvent>(),
            Some(KnownSchema::Perf) => options.expect_events::<PerfEvent>(),
            Some(KnownSchema::Test) => options.expect_events::<TestEvent>(),
        }
    }
}
