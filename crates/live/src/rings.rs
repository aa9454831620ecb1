//! Reading rings without end.

use super::core::LiveCore;
use super::options::LiveOptions;
use super::sight::{ProgramEnd, Sight};
use super::state::LiveState;
use super::tables::LiveTables;
use eventring::reader::{Gap, Reader, RingEnd, RingItem, RingSet, RingState, Seek, SetRing, WaitStrategy};
use eventring::recorder::Clock;
use eventring_capture::recording::EntryContent;
use std::time::{Duration, Instant};

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(100);
/// The pause after all events were read. It is long: many events that come together are read at less cost.
const PAUSE: Duration = Duration::from_millis(2);
/// The number of events between two looks at the clock.
const EVENTS_BETWEEN_LOOKS: u32 = 1024;
/// The age of an event from which on no event before it is missing, in nanoseconds. A set of several rings holds events
/// back for less.
const SURE_NANOS: u64 = 5_000_000;
/// The time after a program's end in which its last events are read.
const END_PATIENCE: Duration = Duration::from_millis(50);

/// The engine: follows rings, keeps the state of their programs, and says what it sees.
pub struct Live {
    set: RingSet,
    tables: LiveTables,
    core: LiveCore,
    /// The time at which the engine began, in nanoseconds since the epoch.
    attached_nanos: u64,
    next_tick: Instant,
    /// For each process, when its end was noticed, and whether the end was told.
    ends: Vec<NoticedEnd>,
    has_present: bool,
}

#[derive(Clone, Copy, Default)]
struct NoticedEnd {
    noticed: Option<Instant>,
    is_told: bool,
}

/// The place to which a [`Live`] has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LiveProgress {
    /// The time was over, and there are more events already.
    Behind,
    /// All events there are were read.
    UpToDate,
    /// All events were read, and nothing more will come: the programs have ended.
    Ended,
}

impl Live {
    /// Begins to follow rings. The set should begin with the oldest events, as it does by default.
    #[must_use]
    pub fn new(mut set: RingSet, options: &LiveOptions) -> Self {
        set.set_wait(WaitStrategy::Sleep(PAUSE));
        let mut live = Self {
            set,
            tables: LiveTables::default(),
            core: LiveCore::new(options),
            attached_nanos: Clock::global().now_epoch_nanos(),
            next_tick: Instant::now() + TICK,
            ends: Vec::new(),
            has_present: false,
        };
        live.take_new_rings();
        live.notice_ends(Instant::now());
        live
    }

    /// Follows a further ring, with all its shards, from its oldest events on.
    pub fn add(&mut self, ring: Reader) {
        let index = self.set.rings().len();
        self.set.add(ring, Seek::Oldest);
        self.take_new_rings();
        // All rings of a program may have ended before it makes another one: then it ends again.
        if index < self.tables.len() {
            let process_index = self.tables.rings.origin(index as u32).process_index;
            self.ends[process_index] = NoticedEnd::default();
            self.core.processes[process_index].has_ended = false;
            self.core.processes[process_index].end = None;
        }
    }

    /// Returns the state of the programs.
    #[must_use]
    pub fn state(&self) -> LiveState<'_> {
        LiveState { tables: &self.tables, core: &self.core }
    }

    /// Returns the rings.
    #[must_use]
    pub fn rings(&self) -> &RingSet {
        &self.set
    }

    /// Takes the events of each ring that were overwritten before the engine began.
    pub fn take_lost_before(&mut self) -> Vec<(u32, Gap)> {
        std::mem::take(&mut self.core.lost_before)
    }

    /// Returns the time at which the engine began, in nanoseconds since the epoch. What it sees of earlier times is
    /// history.
    #[must_use]
    pub fn attached_epoch_nanos(&self) -> u64 {
        self.attached_nanos
    }

    /// Returns true if the engine has read all events that were recorded before it began. From then on, the state is
    /// that of the present.
    #[must_use]
    pub fn has_reached_present(&self) -> bool {
        self.has_present || self.core.now_nanos >= self.attached_nanos
    }

    /// Reads events for this time, or until the programs have ended. Waits if there are none. Calls `see` with
    /// everything that it sees.
    pub fn read(&mut self, time: Duration, mut see: impl FnMut(&Sight<'_>, LiveState<'_>)) -> LiveProgress {
        let see = &mut see;
        let until = Instant::now() + time;
        let mut events = 0;
        loop {
            let item = self.set.next().or_else(|| {
                self.catch_up(see);
                let wait = until.min(self.next_tick).saturating_duration_since(Instant::now());
                self.set.next_timeout(wait.min(PAUSE))
            });
            let Some(item) = item else {
                if self.set.has_ended() {
                    self.end(see);
                    return LiveProgress::Ended;
                }
                self.tick(see, true);
                if Instant::now() >= until {
                    return LiveProgress::UpToDate;
                }
                continue;
            };
            self.take(item, see);
            events += 1;
            if events % EVENTS_BETWEEN_LOOKS == 0 {
                self.tick(see, false);
                if Instant::now() >= until {
                    return LiveProgress::Behind;
                }
            }
        }
    }

    /// Reads all events that were recorded before the engine began, at most for this time. Returns true if it has read
    /// them all.
    pub fn read_history(&mut self, time: Duration, mut see: impl FnMut(&Sight<'_>, LiveState<'_>)) -> bool {
        let until = Instant::now() + time;
        while !self.has_reached_present() {
            let left = until.saturating_duration_since(Instant::now());
            if self.read(left.min(Duration::from_millis(10)), &mut see) == LiveProgress::Ended {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
        true
    }

    fn take_new_rings(&mut self) {
        while self.tables.len() < self.set.rings().len() {
            let before = self.tables.len();
            self.tables.add(self.set.rings());
            if self.tables.len() == before {
                return;
            }
        }
        self.core.grow(&self.tables);
        self.ends.resize(self.tables.programs.len(), NoticedEnd::default());
    }

    #[inline]
    fn take(&mut self, item: RingItem, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>)) {
        if self.set.rings().len() > self.tables.len() {
            self.take_new_rings();
        }
        let (RingItem::Gap { ring, .. } | RingItem::Event { ring, .. }) = item;
        if ring >= self.tables.len() {
            // A ring of which nothing is known. There is none: a shard that could not be opened has a shard 0.
            return;
        }
        match item {
            RingItem::Gap { ring, gap: Gap { first_seqno, count, cause } } => {
                let content = EntryContent::Gap { first_seqno, count, cause };
                let entry = self.tables.entry(ring as u32, content);
                self.core.take(&self.tables, &entry, see);
            }
            RingItem::Event { ring, event } => {
                let ring = ring as u32;
                let Some(shard) = self.tables.know(ring, &event, self.set.rings()) else {
                    let content = EntryContent::Typed { descriptor: &event, payload: self.set.payload() };
                    let entry = self.tables.entry(ring, content);
                    return self.core.take(&self.tables, &entry, see);
                };
                let payload = self.set.payload();
                self.core.take_perf(&mut self.tables, ring, shard, (&event, payload), see);
            }
        }
    }

    /// Notes that all events there are were read.
    fn catch_up(&mut self, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>)) {
        if self.ends.iter().any(|end| end.noticed.is_none()) {
            let now_nanos = Clock::global().now_epoch_nanos().saturating_sub(SURE_NANOS);
            self.core.advance(&self.tables, now_nanos, see);
        } else {
            self.core.close_at_end(&self.tables, see);
        }
    }

    fn tick(&mut self, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>), is_up_to_date: bool) {
        let now = Instant::now();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.core.make_room(&self.tables, see);
        self.notice_ends(now);
        if is_up_to_date {
            self.tell_ends(see, |noticed| now.duration_since(noticed) >= END_PATIENCE);
        }
        see(&Sight::Tick, LiveState { tables: &self.tables, core: &self.core });
    }

    /// Asks the operating system which programs have ended.
    fn notice_ends(&mut self, now: Instant) {
        for (index, end) in self.ends.iter_mut().enumerate().filter(|(_, end)| end.noticed.is_none()) {
            let rings = || rings_of(&self.tables, self.set.rings(), index);
            if !rings().any(|ring| matches!(ring.state(), RingState::Live | RingState::Unknown)) {
                end.noticed = Some(now);
                self.core.processes[index].has_ended = true;
                self.core.processes[index].end = rings().filter_map(Reader::end).reduce(RingEnd::and);
            }
        }
    }

    /// Tells the ends of programs for which `is_due` returns true.
    fn tell_ends(&mut self, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>), is_due: impl Fn(Instant) -> bool) {
        for index in 0..self.ends.len() {
            let NoticedEnd { noticed: Some(noticed), is_told: false } = self.ends[index] else { continue };
            if !is_due(noticed) {
                continue;
            }
            self.ends[index].is_told = true;
            self.core.close_at_end(&self.tables, see);
            let process = &self.core.processes[index];
            let (bounds, program) = (process.end(), &self.tables.programs[index]);
            let has_died = bounds.is_some_and(|end| end.has_died);
            let end = ProgramEnd { program, has_died, epoch_nanos: process.now_nanos(0), bounds };
            see(&Sight::ProgramEnded(end), LiveState { tables: &self.tables, core: &self.core });
        }
    }

    fn end(&mut self, see: &mut impl FnMut(&Sight<'_>, LiveState<'_>)) {
        self.has_present = true;
        let now = Instant::now();
        self.notice_ends(now);
        self.ends.iter_mut().for_each(|end| end.noticed = end.noticed.or(Some(now)));
        self.core.processes.iter_mut().for_each(|process| process.has_ended = true);
        self.core.close_at_end(&self.tables, see);
        self.tell_ends(see, |_| true);
        see(&Sight::Tick, LiveState { tables: &self.tables, core: &self.core });
    }
}

/// Returns the rings of a process.
fn rings_of<'r>(
    tables: &'r LiveTables,
    rings: &'r [SetRing],
    process_index: usize,
) -> impl Iterator<Item = &'r Reader> {
    let of_process = rings.iter().zip(0..tables.len() as u32);
    let of_process = of_process.filter(move |(_, ring)| tables.rings.origin(*ring).process_index == process_index);
    of_process.filter_map(|(ring, _)| ring.reader())
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("state", &self.state()).finish_non_exhaustive()
    }
}
