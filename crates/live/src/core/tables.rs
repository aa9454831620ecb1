//! The tables of the present of the programs whose rings are read.

use eventring::now::NowReader;
use eventring::reader::{Reader, SetRing};
use eventring_capture::recording::RingEntries;
use eventring_tasks::{Phase, TaskState};

/// How often tables are looked for: a program makes them just after its first ring.
const TRIES: u8 = 20;

/// The tables of the present of all recorders. They stay mapped.
#[derive(Debug, Default)]
pub(crate) struct PresentTables(pub(crate) Vec<RecorderTables>);

#[derive(Debug)]
pub(crate) struct RecorderTables {
    pub(crate) recorder: u32,
    pub(crate) process: usize,
    now: Option<NowReader>,
    tries: u8,
    /// True if the process had ended before the last look.
    pub(crate) is_over: bool,
}

impl RecorderTables {
    /// Returns the tables, if all spans and tasks have cells in them.
    pub(crate) fn whole(&self) -> Option<&NowReader> {
        let has_all = |now: &&NowReader| (now.untabled().spans, now.untabled().tasks) == (0, 0);
        self.now.as_ref().filter(has_all)
    }
}

impl PresentTables {
    /// Looks for tables of recorders for which there are none yet.
    pub(crate) fn grow(&mut self, entries: &RingEntries) {
        let rings = &entries.tables().rings;
        for recorder in rings.recorders().iter().skip(self.0.len()) {
            let process = rings.origin(*recorder).process_index;
            self.0.push(RecorderTables { recorder: *recorder, process, now: None, tries: 0, is_over: false });
        }
        for of in self.0.iter_mut().filter(|of| of.now.is_none() && of.tries < TRIES) {
            of.tries += 1;
            let shard0 = entries.set().rings().get(of.recorder as usize).and_then(SetRing::reader);
            of.now = shard0.and_then(|shard0: &Reader| NowReader::open_beside(shard0).ok()?);
        }
    }

    /// Returns true if all recorders have tables, and there is one.
    pub(crate) fn are_whole(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|of| of.whole().is_some())
    }

    /// Returns the tables of a process; `None` if one of its recorders has none.
    fn of_process(&self, process: usize) -> Option<impl Iterator<Item = &NowReader>> {
        let of = || self.0.iter().filter(move |of| of.process == process);
        let are_whole = of().next().is_some() && of().all(|of| of.whole().is_some());
        are_whole.then(|| of().filter_map(RecorderTables::whole))
    }

    /// Returns whether a span of a process is open now. Returns `None` if no tables know it.
    pub(crate) fn have_span(&self, process: usize, id: u64) -> Option<bool> {
        Some(self.of_process(process)?.any(|now| now.span(id).is_some()))
    }

    /// Returns whether a task of a process still does what it was seen to do. Returns `None` if no tables know it.
    pub(crate) fn have_phase(&self, process: usize, id: u64, phase: &Phase) -> Option<bool> {
        let is_same = |now: &NowReader| {
            let (span, task) = now.span(id).zip(now.task(id))?;
            let (state, _) = task.phase(&span);
            // A later poll has ended what was seen.
            Some(TaskState::from(state) == phase.state && task.polled_epoch_nanos <= phase.since_epoch_nanos)
        };
        Some(self.of_process(process)?.any(|now| is_same(now).unwrap_or(false)))
    }
}
