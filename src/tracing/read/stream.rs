//! Reading a sharded recorder: all its rings as one stream.

use super::catalog::{Catalog, CatalogLosses};
use super::decode::decode_record;
use super::record::{PerfRecord, SpanId};
use crate::clock::Clock;
use crate::reader::{
    Cursor, Descriptor, FoundShard, Gap, MergedItem, Merger, Reader, ReaderError, RingState, Seek, ShardFinder,
};
use crate::schema::ExtWords;
use crate::schema::perf::{PerfEvent, PerfExt};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is asked whether the writer lives, while nothing comes.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long to sleep between looks while nothing comes.
const IDLE_SLEEP: Duration = Duration::from_micros(500);

/// All shards of a perf recorder as one stream in the order of time, optionally with an exec ring merged in.
///
/// ```
/// use eventring::tracing::{PerfContent, PerfItem, PerfReader, PerfRecorder, RecorderSubscriber};
///
/// let recorder = PerfRecorder::builder().anonymous().build()?;
/// tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
///     tracing::info_span!("request", path = "/").in_scope(|| tracing::info!("hello"));
/// });
///
/// let mut reader = PerfReader::from_shards(recorder.open_readers()?);
/// let mut names = Vec::new();
/// while let Some(item) = reader.next_timeout(std::time::Duration::from_millis(5)) {
///     let PerfItem::Record(record) = item else { continue };
///     if let PerfContent::SpanNew { call_site, fields, .. } = record.content {
///         names.push(format!("{} {}", call_site.name, fields.get("path").unwrap()));
///     }
/// }
/// assert_eq!(names, ["request /"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PerfReader {
    shards: Vec<Reader>,
    /// Which ring each of the merger's inputs is.
    sources: Vec<PerfSource>,
    /// Which of them, beside shards, say in which span their events were recorded.
    carry_span: Vec<usize>,
    merger: Merger,
    catalog: Catalog,
    /// `None` without shard 0.
    finder: Option<ShardFinder>,
    shard_errors: Vec<(u32, ReaderError)>,
    /// To be told.
    missed: VecDeque<PerfItem>,
    next_liveness_check: Instant,
}

/// Which ring an item came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerfSource {
    /// The shard with this index.
    Shard(u32),
    /// The exec ring, or another one of business events.
    Exec,
}

/// What [`PerfReader::next`] gives.
#[derive(Clone, PartialEq, Debug)]
pub enum PerfItem {
    /// The next event of a shard.
    Record(PerfRecord),
    /// The next event of the exec ring.
    Exec(ExecRecord),
    /// A ring has lost events.
    Gap {
        /// Which.
        source: PerfSource,
        /// What is missing.
        gap: Gap,
    },
}

/// An event of the exec ring, or another one of business events, in the stream of a perf reader.
#[derive(Clone, PartialEq, Debug)]
pub struct ExecRecord {
    /// The event.
    pub descriptor: Descriptor,
    /// Its payload; `None` if that was overwritten or is damaged.
    pub payload: Option<Vec<u8>>,
    /// The span that the thread was in when it recorded the event, if the ring's events say so ([`Reader::ext_words`]).
    pub span: Option<SpanId>,
}

impl PerfReader {
    /// Opens the recorder of that name or path, live or dead, with all its shards; begins with the oldest events. Shards that are
    /// made later are found before their first event is due.
    ///
    /// # Errors
    /// Shard 0 cannot be opened, or is not a perf ring. Other shards that cannot be opened are in [`Self::shard_errors`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::open_at(name_or_path, Seek::Oldest)
    }

    /// As [`Self::open`], from a place of one's choice: [`Seek::Oldest`] or [`Seek::Newest`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(name_or_path: impl AsRef<Path>, start: Seek) -> Result<Self, ReaderError> {
        let shard0 = Reader::open_typed::<PerfEvent>(name_or_path)?;
        let mut reader = Self::new(vec![shard0], start);
        while let Some(found) = reader.finder.as_mut().and_then(ShardFinder::next) {
            if let Some(missed) = reader.meet(found, start) {
                reader.missed.push_back(missed);
            }
        }
        Ok(reader)
    }

    /// The stream of these shards, shard 0 first, from their oldest events. If they have paths, shards that are created later
    /// are found.
    #[must_use]
    pub fn from_shards(shards: Vec<Reader>) -> Self {
        Self::new(shards, Seek::Oldest)
    }

    fn new(shards: Vec<Reader>, start: Seek) -> Self {
        let finder = shards.first().map(|shard0| ShardFinder::new(shard0, shards.len() as u32));
        let mut reader = Self {
            shards: Vec::new(),
            sources: Vec::new(),
            carry_span: Vec::new(),
            merger: Merger::new([]),
            catalog: Catalog::new(),
            finder,
            shard_errors: Vec::new(),
            missed: VecDeque::new(),
            next_liveness_check: Instant::now(),
        };
        shards.into_iter().enumerate().for_each(|(index, shard)| reader.add_shard(index as u32, shard, start));
        reader.update_catalog();
        reader
    }

    /// Merges in an exec ring, or one of the program's own events, from its oldest events.
    #[must_use]
    pub fn with_exec(self, exec: &Reader) -> Self {
        self.with_exec_at(exec, Seek::Oldest)
    }

    /// As [`Self::with_exec`], from a place of one's choice.
    #[must_use]
    pub fn with_exec_at(mut self, exec: &Reader, start: Seek) -> Self {
        if exec.ext_words().has_span() {
            self.carry_span.push(self.sources.len());
        }
        self.sources.push(PerfSource::Exec);
        self.merger.add(cursor_at(exec, start));
        self
    }

    fn add_shard(&mut self, index: u32, shard: Reader, start: Seek) {
        self.sources.push(PerfSource::Shard(index));
        self.merger.add(cursor_at(&shard, start));
        self.shards.push(shard);
    }

    fn update_catalog(&mut self) {
        if let Some(shard0) = self.shards.first() {
            self.catalog.update(shard0);
        }
    }

    /// Adds a shard, or takes down why there is none; gives what is to be told of it.
    fn meet(&mut self, found: FoundShard, start: Seek) -> Option<PerfItem> {
        match found {
            FoundShard::Opened { index, reader } => self.add_shard(index, reader, start),
            FoundShard::Unreadable { index, error } => self.shard_errors.push((index, error)),
            FoundShard::Missed { index, seqnos } => {
                let gap = Gap::of_missed_shard(seqnos);
                return Some(PerfItem::Gap { source: PerfSource::Shard(index), gap });
            }
        }
        None
    }

    /// Whether more shards may be found, or are to be told of.
    fn may_grow(&self) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.can_find() && !finder.has_ended())
    }

    /// The next item; `None` while there is none. Never waits: events so young that an earlier one of another shard may still be on its
    /// way are held back, for a few milliseconds, and come at a later call.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a stream goes on")]
    pub fn next(&mut self) -> Option<PerfItem> {
        if let Some(missed) = self.missed.pop_front() {
            return Some(missed);
        }
        if !self.may_grow() {
            return self.merged(None);
        }
        // Before the look for shards: one that is not found has no event that was stamped earlier.
        let now = Clock::global().now_epoch_nanos();
        while let Some(found) = self.finder.as_mut().and_then(ShardFinder::next) {
            // Of a shard that was made while we watched, nothing may be missed: also not what has been overwritten already.
            if let Some(missed) = self.meet(found, Seek::Seqno(1)) {
                return Some(missed);
            }
        }
        self.merged(Some(now))
    }

    /// With the time of the look for shards, if more may come.
    fn merged(&mut self, now: Option<u64>) -> Option<PerfItem> {
        let item = match now {
            Some(now) => self.merger.next_at(now),
            None => self.merger.next(),
        };
        let (input, descriptor, payload) = match item {
            MergedItem::NotReady => return None,
            MergedItem::Gap { input, gap } => return Some(PerfItem::Gap { source: self.sources[input], gap }),
            MergedItem::Event { input, descriptor, payload } => (input, descriptor, payload),
        };
        let PerfSource::Shard(shard) = self.sources[input] else {
            let carries_span = self.carry_span.contains(&input);
            let span = SpanId::new(ExtWords::SPAN.span_id(descriptor.content_ext)).filter(|_| carries_span);
            return Some(PerfItem::Exec(ExecRecord { descriptor, payload: payload.valid().map(<[u8]>::to_vec), span }));
        };
        let ext = PerfExt::from_words(descriptor.content_ext);
        let knows_call_site = ext.call_site_id == 0 || self.catalog.knows_call_site(ext.call_site_id);
        if !(knows_call_site && self.catalog.knows_thread(ext.thread_id))
            && let Some(shard0) = self.shards.first()
        {
            self.catalog.update(shard0);
        }
        Some(PerfItem::Record(decode_record(&mut self.catalog, shard, &descriptor, payload)))
    }

    /// The next item, waiting for it at most `timeout`. `None` if nothing came, or nothing will come any more
    /// ([`Self::has_ended`]).
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<PerfItem> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(item) = self.next() {
                return Some(item);
            }
            let now = Instant::now();
            if now >= self.next_liveness_check {
                self.next_liveness_check = now + LIVENESS_INTERVAL;
                self.check_liveness();
                // Its last events may have come since the look above.
                if let Some(item) = self.next() {
                    return Some(item);
                }
            }
            if self.has_ended() || deadline.is_some_and(|deadline| now >= deadline) {
                return None;
            }
            std::thread::sleep(IDLE_SLEEP);
        }
    }

    /// Asks the operating system whether the writers live. Ends of rings are noticed by [`Self::next_timeout`], and by this.
    pub fn check_liveness(&self) {
        self.merger.cursors().for_each(|cursor| {
            cursor.reader().state();
        });
    }

    /// The state of shard 0; asks the operating system.
    #[must_use]
    pub fn state(&self) -> RingState {
        self.shards.first().map_or(RingState::Unknown, Reader::state)
    }

    /// Whether everything was read and nothing will come any more, as far as was noticed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.merger.has_ended() && !self.may_grow() && self.missed.is_empty()
    }

    /// What is known of call sites and threads.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What did not fit the tables, and which shards could not be made, as counted by the recorder.
    #[must_use]
    pub fn catalog_losses(&self) -> CatalogLosses {
        self.shards.first().map(CatalogLosses::of).unwrap_or_default()
    }

    /// The readers of the shards that were opened, by index.
    #[must_use]
    pub fn shards(&self) -> &[Reader] {
        &self.shards
    }

    /// The rings' cursors and which they are, in no order: for counts of what was read and lost.
    pub fn cursors(&self) -> impl Iterator<Item = (PerfSource, &Cursor)> {
        self.sources.iter().copied().zip(self.merger.cursors())
    }

    /// Shards that are needed and could not be opened, and why. What they held is told by a [`PerfItem::Gap`] when the recorder has
    /// ended.
    #[must_use]
    pub fn shard_errors(&self) -> &[(u32, ReaderError)] {
        &self.shard_errors
    }
}

fn cursor_at(reader: &Reader, start: Seek) -> Cursor {
    let mut cursor = reader.cursor();
    cursor.seek(start);
    cursor
}
