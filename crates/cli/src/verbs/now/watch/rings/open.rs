//! The opening of rings.

use super::{Entries, INTERVAL, Rings};
use crate::input::advice;
use crate::input::programs::open_files::WhyAwaited;
use crate::input::ring_args::Expect;
use crate::interrupt::Interrupt;
use crate::output::check_reader;
use crate::text::silence::Silence;
use crate::verbs::now::watch::start::Start;
use eventring::reader::{ReaderError, RingSet, Seek};
use eventring_capture::recording::RingEntries;
use std::path::PathBuf;
use std::time::Duration;

impl Rings {
    /// Opens all rings. A ring that is named twice is opened once. A ring that was made after `begun_nanos` is new, as if
    /// the watch had waited for it. If `reopens` is true, waits for a ring that does not
    /// exist yet, and `silence` prints a notice about the wait. Returns `None` if the user stops the wait.
    pub(in crate::verbs::now::watch) fn open(
        names: &[PathBuf],
        expect: &Expect,
        start: Option<Start>,
        (reopens, begun_nanos): (bool, u64),
        interrupt: &Interrupt,
        silence: &mut Silence,
    ) -> anyhow::Result<Option<Self>> {
        let mut set = RingSet::options().from_readers([]);
        let mut files = Vec::new();
        for name in names {
            // A name with sizes (`name:15:24`) is a recorder's configuration. No ring ever has such a name, so waiting
            // would not end.
            let timeout = if reopens && advice::instead_of_a_name(name).is_none() { INTERVAL } else { Duration::ZERO };
            let mut opened = expect.options().open(name);
            let is_new = opened.is_err();
            let mut why = WhyAwaited::default();
            while !timeout.is_zero() && opened.as_ref().is_err_and(ReaderError::may_come) {
                if interrupt.came() {
                    return Ok(None);
                }
                check_reader()?;
                silence.say(|| {
                    let why = why.in_words(std::slice::from_ref(name));
                    format!("waiting for the ring {} to be made{why}", name.display())
                });
                opened = expect.options().wait(timeout).open(name);
            }
            let reader = opened.map_err(|error| advice::on_expected(name, error))?;
            silence.ends();
            let file = reader.path().map(|path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
            if file.is_some() && files.contains(&file) {
                continue;
            }
            files.push(file);
            advice::warn_of_shard(name, &reader);
            let created_nanos = reader.info().extension.map_or(0, |extension| extension.created_epoch_nanos);
            let start = Start::in_ring(start, &reader, is_new || created_nanos >= begun_nanos);
            set.add(reader, start);
        }
        set.find_shards();
        if let (Some(Start::Last(count)), true) = (start, set.rings().len() > 1) {
            set.seek(Seek::Last(count));
        }
        let mut rings = Self { reopens, ..Self::of(Entries::Rings(RingEntries::new(set).into())) };
        rings.take_new();
        Ok(Some(rings))
    }
}
