//! Reading rings without end, or a capture up to a time.
//!
//! | file | idea |
//! |---|---|
//! | `consumer` | the effect of each event on the state, and its observation |
//! | `looks`, `by_looks` | reading only the tables of the present, and not the rings |

mod by_looks;
pub(crate) mod consumer;
pub(crate) mod looks;

use super::core::LiveCore;
use super::observation::{Observation, ProgramEnd};
use super::options::LiveOptions;
use super::state::LiveState;
use consumer::{LiveConsumer, See, replay};
use eventring::reader::{Reader, RingEnd, RingSet, WaitStrategy};
use eventring::recorder::Clock;
use eventring_capture::recording::{
    CaptureRecording, RecordingReplay, RecordingTables, ReplayConsumer, RingEntries, TabledSpans, write_error,
};
use eventring_capture::{CaptureError, CaptureFile, CapturedLife};
use looks::Looks;
use std::io;
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
const END_TIMEOUT: Duration = Duration::from_millis(50);

/// The engine: follows rings, keeps the state of their programs, and says what it sees.
///
/// If a [`ConditionSet`](super::ConditionSet) has made its options, and all conditions are about the present, it reads
/// the tables of the present that the programs have, and nothing of the rings. It then sees a tick whenever a span or
/// task has reached an age, with a state that has such spans alone.
pub struct Live {
    pub(super) options: LiveOptions,
    pub(super) entries: RingEntries,
    replay: RecordingReplay,
    pub(super) core: LiveCore,
    /// The time at which the engine began, in nanoseconds since the epoch.
    attached_nanos: u64,
    pub(super) next_tick: Instant,
    /// For each process, when its end was noticed, and whether the end was told.
    ends: Vec<NoticedEnd>,
    has_present: bool,
    /// The problems of the capture; `None` if rings are read.
    problems: Option<Vec<String>>,
    pub(super) looks: Looks,
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

/// Those who are told what the engine reads.
pub(super) struct Watchers<'w, S, C> {
    pub(super) see: &'w mut S,
    also: &'w mut C,
}

impl<S: See, C: ReplayConsumer> Watchers<'_, S, C> {
    #[inline]
    fn on<'c>(&'c mut self, core: &'c mut LiveCore) -> LiveConsumer<'c, S, C> {
        LiveConsumer { core, see: self.see, also: self.also }
    }
}

impl Live {
    /// Begins to follow rings. The set should begin with the oldest events, as it does by default.
    #[must_use]
    pub fn new(mut set: RingSet, options: &LiveOptions) -> Self {
        set.set_wait(WaitStrategy::Sleep(PAUSE));
        let mut live = Self::with(RingEntries::new(set), replay(options), LiveCore::new(options), options);
        live.grow();
        live.notice_ends(Instant::now());
        live
    }

    fn with(entries: RingEntries, replay: RecordingReplay, core: LiveCore, options: &LiveOptions) -> Self {
        Self {
            options: options.clone(),
            entries,
            replay,
            core,
            attached_nanos: Clock::global().now_epoch_nanos(),
            next_tick: Instant::now() + TICK,
            ends: Vec::new(),
            has_present: false,
            problems: None,
            looks: Looks::default(),
        }
    }

    /// Reads a capture up to a time (nanoseconds since the epoch), or to its end. The state is that of the time.
    ///
    /// # Errors
    /// All rings are perf rings with the schema of another version.
    pub fn of_capture(
        capture: &CaptureFile,
        epoch_nanos: Option<u64>,
        options: &LiveOptions,
    ) -> Result<Self, CaptureError> {
        Self::of_capture_seen(capture, epoch_nanos, options, |_, _| ())
    }

    /// Reads a capture as [`Self::of_capture`] does, and calls `see` with everything that it sees.
    ///
    /// # Errors
    /// As [`Self::of_capture`].
    pub fn of_capture_seen(
        capture: &CaptureFile,
        epoch_nanos: Option<u64>,
        options: &LiveOptions,
        mut see: impl FnMut(&Observation<'_>, LiveState<'_>),
    ) -> Result<Self, CaptureError> {
        let recording = CaptureRecording::new(capture)?;
        let (mut replay, mut core) = (replay(options), LiveCore::new(options));
        let mut entries = recording.entries();
        replay.grow(entries.tables());
        core.grow(entries.tables());
        let see = &mut see;
        let until = epoch_nanos.unwrap_or(u64::MAX);
        let nobody = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        replay.begin(
            capture,
            &mut entries,
            (&mut LiveConsumer { core: &mut core, see: nobody, also: &mut () }, true),
        )?;
        if until == u64::MAX {
            let presents = capture.presents()?.into_iter();
            presents.for_each(|of| core.show_locks(of.ring, entries.tables(), of.present.locks));
        }
        // What tables have shown is no event of the capture.
        core.series.restart(0, 0);
        let mut is_cut = false;
        while let Some(entry) = entries.next_entry() {
            is_cut = entry.epoch_nanos().is_some_and(|nanos| nanos > until);
            if is_cut {
                break;
            }
            let mut consumer = LiveConsumer { core: &mut core, see, also: &mut () };
            replay.step(&entry, &mut consumer).map_err(write_error)?;
        }
        let replays = replay.state(entries.tables()).replays;
        core.processes.iter_mut().zip(replays).for_each(|(process, replay)| process.order.sort(replay));
        replay.end_looks(&mut LiveConsumer { core: &mut core, see: &mut *see, also: &mut () });
        let problems = capture.problems().iter().chain(entries.problems()).cloned().collect();
        let end_nanos = if is_cut { until } else { 0 };
        Self::at_end_of(&recording, (replay, core, entries.into_tables()), problems, (end_nanos, until), (options, see))
    }

    /// Shows what tables of the present showed at the end of a capture: its events are not read, and nothing is in
    /// doubt. Returns `None` if it has rings without such tables.
    ///
    /// # Errors
    /// The capture is damaged.
    pub fn of_captured_present(capture: &CaptureFile, options: &LiveOptions) -> Result<Option<Self>, CaptureError> {
        let recording = CaptureRecording::new(capture)?;
        let presents = capture.presents()?;
        let has_tables = |recorder: &u32| presents.iter().any(|of| of.ring == *recorder);
        let rings = recording.rings();
        if !(0..rings.count() as u32).all(|ring| rings.is_perf(ring)) || !rings.recorders().iter().all(has_tables) {
            return Ok(None);
        }
        let (mut replay, mut core) = (replay(options), LiveCore::new(options));
        let tables = recording.entries().into_tables();
        replay.grow(&tables);
        core.grow(&tables);
        // A capture that was killed does not say until when the programs lived.
        let told = presents.iter().map(|of| of.epoch_nanos).filter(|_| capture.end().is_none()).max();
        for of in presents {
            core.show(of.ring, &tables, (TabledSpans::of_capture(of.present, options.open_spans_max), 0));
        }
        let last_nanos = core.processes.iter().map(|process| process.last_nanos).max().max(told).unwrap_or(0);
        let see = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
        let problems = capture.problems().to_vec();
        let times = (last_nanos, u64::MAX);
        Self::at_end_of(&recording, (replay, core, tables), problems, times, (options, see)).map(Some)
    }

    /// Ends what was read of a capture at these times: at least, and at most.
    fn at_end_of(
        recording: &CaptureRecording<'_>,
        (replay, mut core, tables): (RecordingReplay, LiveCore, RecordingTables),
        problems: Vec<String>,
        (mut end_nanos, until): (u64, u64),
        (options, see): (&LiveOptions, &mut impl See),
    ) -> Result<Self, CaptureError> {
        let capture = recording.capture;
        for (process, number) in core.processes.iter_mut().zip(recording.processes()) {
            let life = capture.life_of(*number);
            // A program that still ran at the end of the capture did so until then, with or without events.
            end_nanos = end_nanos.max(life.until_nanos().unwrap_or(0));
            if let CapturedLife::Ended { end, .. } = life
                && until > end.after_epoch_nanos
            {
                let mut end = end;
                end.before_epoch_nanos = end.before_epoch_nanos.min(until);
                process.has_ended = true;
                process.end = Some(end);
            }
        }
        let no_rings = RingSet::options().from_readers(Vec::new());
        let entries = RingEntries::with_tables(no_rings, tables);
        let mut live =
            Self { has_present: true, problems: Some(problems), ..Self::with(entries, replay, core, options) };
        let watchers = &mut Watchers { see, also: &mut () };
        live.advance(end_nanos.min(until), watchers).and_then(|()| live.close_all(watchers)).map_err(write_error)?;
        Ok(live)
    }

    /// Shows the present of rings as their tables of the present have it: nothing is read of the rings, nothing is in
    /// doubt, and there are no counts of what was before. Returns `None` if a ring is no perf ring, or has no tables.
    #[must_use]
    pub fn of_present(set: RingSet, options: &LiveOptions) -> Option<Self> {
        Self::with_present(RingEntries::new(set), options)
    }

    /// Shows the present of the same rings again, as [`Self::of_present`] does.
    #[must_use]
    pub fn present_again(self, options: &LiveOptions) -> Option<Self> {
        Self::with_present(self.entries, options)
    }

    fn with_present(entries: RingEntries, options: &LiveOptions) -> Option<Self> {
        let mut live = Self::with(entries, replay(options), LiveCore::new(options), options);
        live.grow();
        let recorders = live.tables().rings.recorders().to_vec();
        let is_of_spans = |ring: u32| live.tables().rings.is_perf(ring);
        if recorders.is_empty() || !(0..live.tables().rings.count() as u32).all(is_of_spans) {
            return None;
        }
        let asked_nanos = Clock::global().now_epoch_nanos();
        for recorder in recorders {
            let spans = live.entries.open_spans(recorder, options.open_spans_max)?;
            live.core.show(recorder, live.entries.tables(), spans);
        }
        let last_nanos = live.core.processes.iter().map(|process| process.last_nanos).max().unwrap_or(0);
        let to = &mut Watchers { see: &mut |_: &Observation<'_>, _: LiveState<'_>| (), also: &mut () };
        live.notice_ends(Instant::now());
        let have_ended = live.ends.iter().all(|end| end.noticed.is_some());
        live.advance(if have_ended { last_nanos } else { asked_nanos.max(last_nanos) }, to).ok()?;
        if have_ended {
            live.end(to).ok()?;
        }
        live.has_present = true;
        Some(live)
    }

    /// Reads from the tables of the programs which threads wait for locks now
    /// ([`LiveState::thread_locks`](super::LiveState::thread_locks)).
    pub fn look_at_locks(&mut self) {
        for recorder in self.tables().rings.recorders().to_vec() {
            if let Some(cells) = self.entries.locks(recorder) {
                self.core.show_locks(recorder, self.entries.tables(), cells);
            }
        }
    }

    /// Follows a further ring, with all its shards, from its oldest events on.
    pub fn add(&mut self, ring: Reader) {
        let index = self.entries.set().rings().len();
        self.entries.add(ring);
        self.grow();
        // All rings of a program may have ended before it makes another one: then it ends again.
        if index < self.tables().rings.count() {
            let process_index = self.tables().rings.origin(index as u32).process_index;
            self.ends[process_index] = NoticedEnd::default();
            self.core.processes[process_index].has_ended = false;
            self.core.processes[process_index].end = None;
        }
    }

    /// Holds back events that were recorded after this time (nanoseconds since the epoch), as
    /// [`RingSet::hold_after`] does: a ring that is not found yet may have the spans in which they were recorded.
    pub fn hold_after(&mut self, epoch_nanos: Option<u64>) {
        self.entries.hold_after(epoch_nanos);
    }

    /// Returns the state of the programs.
    #[must_use]
    pub fn state(&self) -> LiveState<'_> {
        LiveState { replayed: self.replay.state(self.tables()), core: &self.core }
    }

    /// Returns the rings. A capture has none.
    #[must_use]
    pub fn rings(&self) -> &RingSet {
        self.entries.set()
    }

    /// Returns the problems of a capture, a line each. Rings have none.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        self.problems.as_deref().unwrap_or_default()
    }

    /// Returns true if the engine has read all events that were recorded before it began. From then on, the state is
    /// that of the present.
    #[must_use]
    pub fn has_reached_present(&self) -> bool {
        self.has_present || self.is_looking() || self.state().now_epoch_nanos() >= self.attached_nanos
    }

    /// Reads events for this time, or until the programs have ended. Waits if there are none. Calls `see` with
    /// everything that it sees.
    pub fn read(&mut self, time: Duration, mut see: impl FnMut(&Observation<'_>, LiveState<'_>)) -> LiveProgress {
        // Nobody writes, so nothing fails.
        self.read_for(time, &mut Watchers { see: &mut see, also: &mut () }).unwrap_or(LiveProgress::Ended)
    }

    /// Reads events as [`Self::read`] does, and gives everything to a consumer of replays. Spans have undecoded fields
    /// and no slices, whatever the consumer needs.
    ///
    /// # Errors
    /// The consumer fails.
    #[doc(hidden)]
    pub fn drive(&mut self, time: Duration, consumer: &mut impl ReplayConsumer) -> io::Result<LiveProgress> {
        consumer.follow(&mut self.replay.parts);
        self.read_for(time, &mut Watchers { see: &mut |_: &Observation<'_>, _: LiveState<'_>| (), also: consumer })
    }

    fn read_for<S: See, C: ReplayConsumer>(
        &mut self,
        time: Duration,
        to: &mut Watchers<'_, S, C>,
    ) -> io::Result<LiveProgress> {
        if self.problems.is_some() {
            return Ok(LiveProgress::Ended);
        }
        if self.is_looking() {
            return self.look_for(time, to);
        }
        let until = Instant::now() + time;
        let mut events = 0;
        loop {
            // The rings are asked once more after the clock was read. If this thread does not run for a while between
            // the two, events may have come meanwhile that are not read yet.
            if !self.take_next(None, to)?
                && let asked_nanos =
                    Clock::global().now_epoch_nanos().min(self.entries.held_after().unwrap_or(u64::MAX))
                && !self.take_next(None, to)?
            {
                self.catch_up(asked_nanos, to)?;
                let wait = until.min(self.next_tick).saturating_duration_since(Instant::now());
                if !self.take_next(Some(wait.min(PAUSE)), to)? {
                    if self.entries.set().has_ended() {
                        self.end(to)?;
                        return Ok(LiveProgress::Ended);
                    }
                    self.tick(to, true)?;
                    if Instant::now() >= until {
                        return Ok(LiveProgress::UpToDate);
                    }
                    continue;
                }
            }
            events += 1;
            if events % EVENTS_BETWEEN_LOOKS == 0 {
                self.tick(to, false)?;
                if Instant::now() >= until {
                    return Ok(LiveProgress::Behind);
                }
            }
        }
    }

    /// Reads all events that were recorded before the engine began, at most for this time. Returns true if it has read
    /// them all.
    pub fn read_history(&mut self, time: Duration, mut see: impl FnMut(&Observation<'_>, LiveState<'_>)) -> bool {
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

    fn tables(&self) -> &RecordingTables {
        self.entries.tables()
    }

    /// Makes room for the rings and processes that are known.
    pub(super) fn grow(&mut self) {
        self.replay.grow(self.entries.tables());
        self.core.grow(self.entries.tables());
        if self.options.present.is_some() {
            self.core.tables.grow(&self.entries);
        }
        self.ends.resize(self.core.processes.len(), NoticedEnd::default());
    }

    /// Takes the next entry. Returns false if there is none yet.
    #[inline]
    fn take_next<S: See, C: ReplayConsumer>(
        &mut self,
        wait: Option<Duration>,
        to: &mut Watchers<'_, S, C>,
    ) -> io::Result<bool> {
        let Some(entry) = self.entries.next_entry(wait) else { return Ok(false) };
        self.replay.step(&entry, &mut to.on(&mut self.core))?;
        if let Some(thread) = self.replay.ended_thread(&entry) {
            self.entries.forget_thread(thread);
        }
        Ok(true)
    }

    /// Notes that all events were read that there were at this time.
    fn catch_up<S: See, C: ReplayConsumer>(&mut self, asked_nanos: u64, to: &mut Watchers<'_, S, C>) -> io::Result<()> {
        if self.ends.len() < self.core.processes.len() {
            self.grow();
        }
        match self.ends.iter().any(|end| end.noticed.is_none()) {
            true => self.advance(asked_nanos.saturating_sub(SURE_NANOS), to),
            false => self.close_all(to),
        }
    }

    fn advance<S: See, C: ReplayConsumer>(&mut self, now_nanos: u64, to: &mut Watchers<'_, S, C>) -> io::Result<()> {
        if now_nanos > self.state().now_epoch_nanos() {
            self.core.advance(now_nanos);
        }
        self.replay.advance(now_nanos, self.entries.tables(), &mut to.on(&mut self.core))
    }

    fn close_all<S: See, C: ReplayConsumer>(&mut self, to: &mut Watchers<'_, S, C>) -> io::Result<()> {
        self.replay.close_all(self.entries.tables(), &mut to.on(&mut self.core))
    }

    fn tick<S: See, C: ReplayConsumer>(&mut self, to: &mut Watchers<'_, S, C>, is_up_to_date: bool) -> io::Result<()> {
        let now = Instant::now();
        if now < self.next_tick {
            return Ok(());
        }
        self.next_tick = now + TICK;
        self.grow();
        self.replay.make_room(self.entries.tables(), &mut to.on(&mut self.core))?;
        self.notice_ends(now);
        if is_up_to_date {
            self.tell_ends(to, |noticed| now.duration_since(noticed) >= END_TIMEOUT)?;
        }
        (to.see)(&Observation::Tick, self.state());
        Ok(())
    }

    /// Asks the operating system which programs have ended.
    pub(super) fn notice_ends(&mut self, now: Instant) {
        for (index, end) in self.ends.iter_mut().enumerate().filter(|(_, end)| end.noticed.is_none()) {
            let (tables, all) = (self.entries.tables(), self.entries.set().rings());
            let rings = || tables.rings.of_process(index).filter_map(|ring| all[ring as usize].reader());
            if !rings().any(|ring| ring.state().may_be_written()) {
                end.noticed = Some(now);
                self.core.processes[index].has_ended = true;
                self.core.processes[index].end = rings().filter_map(Reader::end).reduce(RingEnd::and);
            }
        }
    }

    /// Tells the ends of programs for which `is_due` returns true.
    fn tell_ends<S: See, C: ReplayConsumer>(
        &mut self,
        to: &mut Watchers<'_, S, C>,
        is_due: impl Fn(Instant) -> bool,
    ) -> io::Result<()> {
        for index in 0..self.ends.len() {
            let NoticedEnd { noticed: Some(noticed), is_told: false } = self.ends[index] else { continue };
            if !is_due(noticed) {
                continue;
            }
            self.ends[index].is_told = true;
            self.close_all(to)?;
            let process = &self.core.processes[index];
            let (bounds, epoch_nanos) = (process.end(), process.now_nanos(0));
            let has_died = bounds.is_some_and(|end| end.has_died);
            let program = &self.tables().rings.programs()[index];
            (to.see)(&Observation::ProgramEnded(ProgramEnd { program, has_died, epoch_nanos, bounds }), self.state());
            self.replay.end_process(index, epoch_nanos, self.entries.tables(), to.also)?;
        }
        Ok(())
    }

    pub(super) fn end<S: See, C: ReplayConsumer>(&mut self, to: &mut Watchers<'_, S, C>) -> io::Result<()> {
        self.has_present = true;
        let now = Instant::now();
        self.grow();
        self.notice_ends(now);
        self.ends.iter_mut().for_each(|end| end.noticed = end.noticed.or(Some(now)));
        self.core.processes.iter_mut().for_each(|process| process.has_ended = true);
        self.close_all(to)?;
        self.tell_ends(to, |_| true)?;
        (to.see)(&Observation::Tick, self.state());
        Ok(())
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("state", &self.state()).finish_non_exhaustive()
    }
}
