//! The arguments that name a ring and what it must hold.

use super::advice;
use super::patterns;
use eventring::reader::{Reader, ReaderOptions};
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::PerfEvent;
use eventring::schema::test::TestEvent;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The pause between two searches for a ring that is not there yet. It is short, because a program may live for only a
/// few milliseconds.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// The ring to read, and the events that it must hold.
#[derive(clap::Args)]
pub(super) struct RingArgs {
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
pub(super) struct Expect {
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
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn open(&self) -> anyhow::Result<Reader> {
        let name = patterns::one_ring(&self.name)?;
        let reader = self.expect.options().open(&name).map_err(|error| advice::on_expected(&name, error))?;
        advice::warn_of_shard(&name, &reader);
        Ok(reader)
    }
}

impl Expect {
    /// Returns true if the user has named no events.
    pub(super) fn is_empty(&self) -> bool {
        self.expect.is_none()
    }

    /// Returns options that open the ring only if it holds the expected events.
    pub(super) fn options(&self) -> ReaderOptions {
        let options = Reader::options();
        match self.expect {
            None => options,
            Some(KnownSchema::Exec) => options.expect_events::<ExecEvent>(),
            Some(KnownSchema::Perf) => options.expect_events::<PerfEvent>(),
            Some(KnownSchema::Test) => options.expect_events::<TestEvent>(),
        }
    }
}
