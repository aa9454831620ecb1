//! The rings that are watched, with their shards.

use super::perf::Perf;
use super::ring::Ring;
use super::start::Start;
use crate::exit::{Exit, Failure};
use crate::input::patterns::FollowedPatterns;
use crate::input::programs::open_files::WhyAwaited;
use crate::input::ring_args::Expect;
use crate::input::{LOOK_PAUSE, advice};
use crate::interrupt::Interrupt;
use crate::output::check_reader;

use crate::text::paint::WARNING;
use crate::text::silence::Silence;
use eventring::reader::{Gap, PayloadRead, ReaderError, ReaderOptions, RingItem, RingSet, RingState, Seek};
use eventring::schema::EventType as _;
use eventring::schema::perf::PerfEvent;
use eventring_capture::recording::payloads;
use eventring_capture::{CaptureEvents, CaptureFile, CapturedContent, CapturedPayload, CapturedRecord, RingRole};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two checks for Ctrl-C while the watch waits for a ring.
const INTERVAL: Duration = Duration::from_millis(100);

/// All rings that are watched. First come the rings of the command line, in the order in which the user named them.
/// Then come their shards.
pub(super) struct Rings {
    set: RingSet,
    /// The descriptions of the rings in `set`. Each ring has the same index in both lists.
    rings: Vec<Ring>,
    /// The number of shard errors in the set's list that have been printed.
    shown_shard_errors: usize,
    /// True if the watch goes on with the next rings of the same names, so that it must soon notice the end of a ring.
    reopens: bool,
    /// The time of the last look for next rings of the same names.
    last_look: Instant,
    /// The result of this look, if there were such rings, or an error: the index of the first of them in `set`. `rings`
    /// does not describe them yet.
    found: Option<Result<usize, ReaderError>>,
    /// The patterns of the command line, and the options with which rings are opened that fit them.
    pub(super) patterns: (FollowedPatterns, ReaderOptions),
    /// True if the rings that were found last are none that were made anew, but others that fit a pattern.
    are_others: bool,
    /// The capture whose rings these are; `None` if they are no captured ones.
    captured: Option<Captured>,
    /// The time of the last question whether the rings have writers, and true if they had none.
    no_writers: (Option<Instant>, bool),
}

/// A capture that is shown as its rings would be.
struct Captured {
    events: CaptureEvents,
    /// The payload of the event that was returned last.
    payload: CapturedPayload,
    /// The number of recorders and other rings.
    recorders: usize,
}

impl Captured {
    fn next(&mut self) -> Option<RingItem> {
        let CapturedRecord { ring, content } = self.events.next()?;
        let ring = ring as usize;
        Some(match content {
            CapturedContent::Gap { first_seqno, count, cause } => {
                RingItem::Gap { ring, gap: Gap { first_seqno, count, cause } }
            }
            CapturedContent::Event { descriptor, payload } => {
                self.payload = payload;
                RingItem::Event { ring, event: descriptor }
            }
        })
    }
}

impl Rings {
    /// Opens all rings. A ring that is named twice is opened once. If `reopens` is true, waits for a ring that does not
    /// exist yet, and `silence` prints a notice about the wait. Returns `None` if the user stops the wait.
    pub(super) fn open(
        names: &[PathBuf],
        expect: &Expect,
        start: Option<Start>,
        reopens: bool,
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
            let start = Start::in_ring(start, &reader, is_new);
            set.add(reader, start);
        }
        set.find_shards();
        if let (Some(Start::Last(count)), true) = (start, set.rings().len() > 1) {
            set.seek(Seek::Last(count));
        }
        let mut rings = Self { reopens, ..Self::of_set(set) };
        rings.take_new();
        Ok(Some(rings))
    }

    /// Begins with rings that are not described yet.
    fn of_set(set: RingSet) -> Self {
        Self {
            set,
            rings: Vec::new(),
            shown_shard_errors: 0,
            reopens: false,
            last_look: Instant::now(),
            found: None,
            patterns: Default::default(),
            are_others: false,
            captured: None,
            no_writers: (None, false),
        }
    }

    /// Describes the rings of a capture.
    pub(super) fn of_capture(capture: &CaptureFile) -> Self {
        let mut rings: Vec<Ring> = Vec::new();
        let mut count = 0;
        let mut recorders: HashMap<u32, Perf> = HashMap::new();
        for (ring, index) in capture.rings().iter().zip(0..) {
            let (recorder, shard) = match ring.role {
                RingRole::Shard { recorder, shard } => (recorder, shard),
                RingRole::Single => (index, 0),
            };
            count += usize::from(recorder == index);
            let is_perf = ring.is_perf() && ring.schema_hash == PerfEvent::schema_hash();
            let perf = is_perf.then(|| {
                let tables = recorders.entry(recorder);
                tables.or_insert_with(|| Perf::of_catalog(capture.catalog(recorder))).of_shard(shard)
            });
            let stats = capture.end().and_then(|end| end.stats.rings.get(rings.len()));
            let last_seqno = stats.map_or(0, |stats| stats.last_seqno);
            rings.push(Ring::captured(ring, last_seqno, perf, capture.known_blocks(index)));
        }
        let captured = Captured { events: capture.events(), payload: CapturedPayload::Expired, recorders: count };
        Self { rings, captured: Some(captured), ..Self::of_set(RingSet::options().from_readers([])) }
    }

    /// Adds the rings that have come since the last look and fit a pattern. They are read from their first event on.
    /// Returns true if there are such rings: then [`Self::wait_for_next`] must be called.
    fn look_for_more(&mut self) -> bool {
        if self.found.is_some() {
            return false;
        }
        let first = self.set.rings().len();
        let (patterns, options) = &mut self.patterns;
        for path in patterns.new_rings() {
            // A ring that has gone meanwhile has nothing to show.
            if let Ok(reader) = options.open(&path) {
                self.set.add(reader, Seek::Oldest);
            }
        }
        if self.set.rings().len() == first {
            return false;
        }
        self.set.find_shards();
        self.found = Some(Ok(first));
        self.are_others = true;
        true
    }

    /// Returns true if the watch goes on after its rings have ended, or because another ring has come.
    pub(super) fn go_on(&self) -> bool {
        self.reopens || self.found.is_some()
    }

    /// Returns true if these are the rings of a capture.
    pub(super) fn are_captured(&self) -> bool {
        self.captured.is_some()
    }

    /// Returns the problems that were found in a capture so far.
    pub(super) fn problems(&self) -> &[String] {
        self.captured.as_ref().map_or(&[], |captured| captured.events.problems())
    }

    /// Describes the rings that were added to the set since the last call. Prints the errors of shards that could not
    /// be added.
    fn take_new(&mut self) {
        for error in &self.set.shard_errors()[self.shown_shard_errors..] {
            let why = &error.error;
            say!("{WARNING}warning:{WARNING:#} shard {} is left out: {why}", error.shard);
        }
        self.shown_shard_errors = self.set.shard_errors().len();
        while let Some(ring) = self.set.rings().get(self.rings.len()) {
            let ring = match (ring.recorder(), ring.reader()) {
                (Some(shard0), _) => Ring::shard(&self.rings[shard0], ring),
                (None, reader) => reader.map(Ring::named),
            };
            // A ring without a recorder is one that the command line names, and it has a reader.
            let Some(ring) = ring else { return };
            self.rings.push(ring);
        }
    }

    /// Returns true if all rings have no writer any more. Asks the operating system ten times a second.
    pub(super) fn are_written_no_more(&mut self) -> bool {
        let (asked, answer) = &mut self.no_writers;
        if asked.is_none_or(|asked| asked.elapsed() >= INTERVAL) {
            *asked = Some(Instant::now());
            let mut readers = self.set.rings().iter().filter_map(|ring| ring.reader());
            *answer = readers.all(|reader| !matches!(reader.state(), RingState::Live | RingState::Unknown));
        }
        *answer
    }

    /// Returns the next event or gap, or `None` if none comes within `timeout`.
    pub(super) fn next(&mut self, timeout: Duration) -> Option<RingItem> {
        if let Some(captured) = &mut self.captured {
            return captured.next();
        }
        if self.look_for_more() || (self.reopens && self.look_for_next()) {
            return None;
        }
        let item = if self.reopens { self.next_or_end(timeout) } else { self.set.next_timeout(timeout) };
        if self.found.is_some() {
            return item;
        }
        if self.set.rings().len() > self.rings.len() || self.set.shard_errors().len() > self.shown_shard_errors {
            self.take_new();
        }
        item
    }

    /// Looks for next rings of the names of rings that have ended. Other rings may still be live. Returns true if there
    /// are such rings, or an error: then [`Self::wait_for_next`] must be called.
    fn look_for_next(&mut self) -> bool {
        if self.found.is_none() && self.last_look.elapsed() >= LOOK_PAUSE {
            self.found = self.set.reopen(Duration::ZERO).transpose();
            self.are_others = false;
            self.last_look = Instant::now();
        }
        self.found.is_some()
    }

    /// Returns the next event or gap, or `None` if none comes within `timeout`. Also returns `None` soon after all
    /// rings have ended. (The ring set alone may notice the end a tenth of a second later. Until then, a whole ring of
    /// the same name may be made and removed.)
    fn next_or_end(&mut self, timeout: Duration) -> Option<RingItem> {
        let begin = Instant::now();
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            let item = self.set.next_timeout(left.min(LOOK_PAUSE));
            if item.is_some() || left.is_zero() || self.look_for_next() {
                return item;
            }
            self.set.check_liveness();
            if self.set.has_ended() {
                return None;
            }
        }
    }

    /// Returns true if no more events will come after the last one that was read. Also returns true if there is a next
    /// ring of the name of a ring that has ended.
    pub(super) fn have_ended(&self) -> bool {
        self.captured.is_some() || self.found.is_some() || self.set.has_ended()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Ring> {
        self.rings.iter()
    }

    pub(super) fn get(&self, index: usize) -> &Ring {
        &self.rings[index]
    }

    /// Returns the ring with this index, and access to the payload of the event that [`Rings::next`] returned last.
    pub(super) fn with_payload(&mut self, index: usize) -> (&Ring, LazyPayload<'_>) {
        let payload = match &self.captured {
            Some(captured) => LazyPayload::Captured(captured.payload.as_read()),
            None => LazyPayload::InRing(&mut self.set),
        };
        (&self.rings[index], payload)
    }

    /// Returns how many events of a capture were not selected because their payload was lost.
    pub(super) fn untested(&self) -> u64 {
        self.captured.as_ref().map_or(0, |captured| payloads::count(captured.events.untested()))
    }

    /// Returns true if several rings are watched, so that each line must name its ring.
    pub(super) fn has_several(&self) -> bool {
        !self.patterns.0.is_empty() || self.rings.iter().filter(|ring| !ring.is_missed).count() > 1
    }

    /// Returns the rings that the command line names.
    fn named(&self) -> impl Iterator<Item = &Ring> {
        let named = self.set.rings().iter().zip(&self.rings).filter(|(ring, _)| ring.recorder().is_none());
        named.map(|(_, ring)| ring)
    }

    /// Returns true if the command line names only one ring. Then all rings are shards of one recorder.
    pub(super) fn are_of_one_name(&self) -> bool {
        self.patterns.0.is_empty()
            && self.captured.as_ref().map_or_else(|| self.named().count(), |captured| captured.recorders) == 1
    }

    /// Returns the seqno of each ring that is read next.
    pub(super) fn next_seqnos(&self) -> impl Iterator<Item = u64> {
        self.set.rings().iter().filter_map(|ring| ring.cursor()).map(|cursor| cursor.next_seqno().max(1))
    }

    /// Returns the seqno of the event that the watch waits for, and the last seqno that the ring has handed out.
    /// Returns `None` if there are several rings, or if the recorder may add shards.
    pub(super) fn waits_for(&self) -> Option<(u64, u64)> {
        let [ring] = self.set.rings() else { return None };
        let info = ring.reader()?.info();
        let is_sharded = info.extension.is_some_and(|extension| extension.shard_limit > 0);
        Some((ring.cursor()?.next_seqno(), info.last_seqno)).filter(|_| !is_sharded)
    }

    /// Waits until a new ring has been made under the name of a watched ring. The watch then goes on with the new ring.
    /// If several new rings have been made, it goes on with all of them. Returns the new rings, and true if these are
    /// others that fit a pattern. Returns `None` if the user stops the wait. Also returns `None` if all rings are
    /// snapshots, because no program makes a snapshot again.
    pub(super) fn wait_for_next(
        &mut self,
        interrupt: &Interrupt,
        silence: &mut Silence,
    ) -> anyhow::Result<Option<(bool, impl Iterator<Item = &Ring>)>> {
        let mut found = self.found.take();
        if found.is_none()
            && self.named().all(|ring| ring.reader.as_ref().is_some_and(|reader| reader.state() == RingState::Saved))
        {
            return Ok(None);
        }
        self.are_others &= found.is_some();
        let first = loop {
            let reopened = found.take().map_or_else(|| self.set.reopen(INTERVAL), |found| found.map(Some));
            let named = |error: ReaderError| {
                let name = error.path().map(Path::to_path_buf).unwrap_or_default();
                advice::on_expected(&name, error)
            };
            if let Some(first) = reopened.map_err(named)? {
                break first;
            }
            if interrupt.came() {
                return Ok(None);
            }
            check_reader()?;
            if self.look_for_more() {
                found = self.found.take();
                continue;
            }
            silence.say(|| {
                let names: Vec<&str> = self.named().map(|ring| ring.label.as_str()).collect();
                format!("waiting for {} to be made anew", names.join(" or "))
            });
        };
        self.rings.clear();
        self.shown_shard_errors = self.set.shard_errors().partition_point(|error| error.recorder < first);
        self.take_new();
        silence.ends();
        Ok(Some((self.are_others, self.rings[first..].iter().filter(|ring| !ring.is_missed))))
    }

    /// Returns an error if a page of a ring's file could not be read, for example because the file was truncated.
    pub(super) fn check_whole(&self) -> Result<(), Failure> {
        let lost = self.rings.iter().find_map(|ring| Some((ring, ring.reader.as_ref()?.lost_pages()?)));
        let Some((ring, lost)) = lost else { return Ok(()) };
        Exit::from_lost_pages(lost).fail(format!("{}: {}", ring.label, lost.advice()))
    }

    /// Returns the index of the extension word with the name `word` in execution events. `option` is the command line
    /// option that needs this word: the error message names it.
    pub(super) fn exec_word(&self, option: &str, word: &str) -> Result<usize, Failure> {
        self.need_exec(option)?;
        let exec = self.rings.iter().filter(|ring| ring.is_exec);
        exec.filter_map(|ring| ring.words.index_of(word))
            .next()
            .ok_or_else(|| Exit::WrongContentType.failure(format!("{option}: these events have no word `{word}`")))
    }

    /// Returns an error if no ring has execution events. `option` is a command line option, such as `--block` or
    /// `--txn`, that has a meaning only for these events.
    pub(super) fn need_exec(&self, option: &str) -> Result<(), Failure> {
        if self.rings.iter().any(|ring| ring.is_exec) {
            return Ok(());
        }
        let found = self.rings.first().map_or(0, |ring| ring.schema.0);
        let message =
            format!("{option} needs a ring of execution events (content type 2), this one has content type {found}");
        Exit::WrongContentType.fail(message)
    }
}

/// The payload of the event that was returned last. It is copied out of the ring only when [`Self::read`] is called.
pub(super) enum LazyPayload<'r> {
    InRing(&'r mut RingSet),
    Captured(PayloadRead<'r>),
}

impl LazyPayload<'_> {
    pub(super) fn read(&mut self) -> PayloadRead<'_> {
        match self {
            Self::InRing(set) => set.payload(),
            Self::Captured(payload) => *payload,
        }
    }
}
