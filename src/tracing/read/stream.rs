//! Reading a sharded recorder: all its rings as one stream.

use super::catalog::{Catalog, CatalogLosses};
use super::raw::RawRecord;
use super::record::PerfRecord;
use crate::reader::{Descriptor, Gap, Reader, ReaderError, RingItem, RingSet, RingState, Seek, SetRing, ShardError};
use crate::schema::ExtWords;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::tracing::span_id::SpanId;
use std::path::Path;
use std::time::Duration;

/// A reader of all shards of a perf recorder, as one stream in the order of time. Rings of typed events can be merged
/// into the stream.
///
/// The begin of a scope is one event and two records: the creation of a span, and an enter. So is its end: an exit and
/// a close.
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
    /// The rings; shard 0 comes first.
    rings: RingSet,
    /// The rings of typed events. Each has its index in `rings`.
    typed: Vec<TypedRing>,
    catalog: Catalog,
    /// The second record of the last event, if the event stands for two.
    second: Option<PerfItem>,
}

/// A ring of typed events.
#[derive(Debug)]
struct TypedRing {
    ring: usize,
    /// True if each event of the ring carries the id of the span in which it was recorded.
    carries_span: bool,
}

/// The ring that an item came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerfSource {
    /// The shard with this index.
    Shard(u32),
    /// A ring of typed events.
    TypedEvents,
}

/// An item of a [`PerfReader`].
#[derive(Clone, PartialEq, Debug)]
pub enum PerfItem {
    /// The next event of a shard.
    Record(PerfRecord),
    /// The next event of a ring of typed events.
    TypedEvent(TypedEvent),
    /// A loss of events of a ring.
    Gap {
        /// The ring.
        source: PerfSource,
        /// The missing events.
        gap: Gap,
    },
}

/// A typed event in the stream of a perf reader.
#[derive(Clone, PartialEq, Debug)]
pub struct TypedEvent {
    /// The event.
    pub descriptor: Descriptor,
    /// The payload of the event; `None` if the payload was overwritten or is damaged.
    pub payload: Option<Vec<u8>>,
    /// The span that the thread was in when it recorded the event; `None` if it was in no span, or if the events of
    /// this ring carry no span id ([`Reader::ext_words`]).
    pub span: Option<SpanId>,
}

impl PerfReader {
    /// Opens the recorder with this name or path, with all its shards, and reads from the oldest events on. The
    /// recorder may be running or have ended. If the recorder makes a shard later, the reader finds the shard before
    /// the stream reaches the shard's first event.
    ///
    /// # Errors
    /// Returns an error if shard 0 cannot be opened or is not a perf ring. If another shard cannot be opened, the
    /// reader continues without it and lists it in [`Self::shard_errors`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::open_at(name_or_path, Seek::Oldest)
    }

    /// Opens a recorder like [`Self::open`], but reads from `start` on: [`Seek::Oldest`] or [`Seek::Newest`].
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn open_at(name_or_path: impl AsRef<Path>, start: Seek) -> Result<Self, ReaderError> {
        let shard0 = Reader::open_typed::<PerfEvent>(name_or_path)?;
        Ok(Self::new([shard0], start))
    }

    /// Makes a reader of these shards, from their oldest events on. Shard 0 comes first. If the shards have paths,
    /// the reader also finds shards that the recorder makes later.
    #[must_use]
    pub fn from_shards(shards: Vec<Reader>) -> Self {
        Self::new(shards, Seek::Oldest)
    }

    fn new(shards: impl IntoIterator<Item = Reader>, start: Seek) -> Self {
        let mut rings = RingSet::options().from_readers([]);
        rings.add_recorder(shards, start);
        rings.find_shards();
        let mut reader = Self { rings, typed: Vec::new(), catalog: Catalog::new(), second: None };
        reader.update_catalog();
        reader
    }

    /// Merges in a ring of typed events, from its oldest events on.
    #[must_use]
    pub fn with_typed_events(self, ring: &Reader) -> Self {
        self.with_typed_events_at(ring, Seek::Oldest)
    }

    /// Merges in a ring of typed events, from `start` on.
    #[must_use]
    pub fn with_typed_events_at(mut self, ring: &Reader, start: Seek) -> Self {
        let index = self.rings.add(ring.clone(), start);
        self.typed.push(TypedRing { ring: index, carries_span: ring.ext_words().has_span() });
        self
    }

    fn shard0(&self) -> Option<&Reader> {
        self.rings.rings().first().and_then(SetRing::reader)
    }

    fn update_catalog(&mut self) {
        if let Some(shard0) = self.rings.rings().first().and_then(SetRing::reader) {
            self.catalog.update(shard0);
        }
    }

    /// Returns the next item. Returns `None` if there is no item at present, and never waits.
    ///
    /// An event that is only a few milliseconds old is held back: an earlier event may still come from another shard.
    /// A later call returns it.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a stream goes on")]
    pub fn next(&mut self) -> Option<PerfItem> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let item = self.rings.next()?;
        Some(self.decode(item))
    }

    /// Returns the next item. Waits for it until `timeout` has passed. Returns `None` if no item came in that time,
    /// or if no item will ever come ([`Self::has_ended`]).
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<PerfItem> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let item = self.rings.next_timeout(timeout)?;
        Some(self.decode(item))
    }

    fn decode(&mut self, item: RingItem) -> PerfItem {
        let (ring, event) = match item {
            RingItem::Gap { ring, gap } => return PerfItem::Gap { source: self.source(ring), gap },
            RingItem::Event { ring, event } => (ring, event),
        };
        if let Some(typed) = self.typed(ring) {
            let span = SpanId::new(ExtWords::SPAN.span_id(event.content_ext)).filter(|_| typed.carries_span);
            let payload = self.rings.payload().valid().map(<[u8]>::to_vec);
            return PerfItem::TypedEvent(TypedEvent { descriptor: event, payload, span });
        }
        let ext = PerfExt::from_words(event.content_ext);
        let knows_call_site = ext.call_site_id == 0 || self.catalog.knows_call_site(ext.call_site_id);
        if !(knows_call_site && self.catalog.knows_thread(ext.thread_id)) {
            self.update_catalog();
        }
        let shard = self.rings.rings()[ring].shard();
        let record = RawRecord::new(&mut self.catalog, shard, &event, self.rings.payload());
        let Some([first, second]) = record.parts() else { return PerfItem::Record(record.decode(&self.catalog)) };
        self.second = Some(PerfItem::Record(second.decode(&self.catalog)));
        PerfItem::Record(first.decode(&self.catalog))
    }

    /// Returns the ring of typed events with this index in `rings`. A recorder of typed events may have several shards:
    /// for each of them, returns the entry of its shard 0. Returns `None` for a shard of the perf recorder.
    fn typed(&self, ring: usize) -> Option<&TypedRing> {
        let ring = self.rings.rings()[ring].recorder().unwrap_or(ring);
        self.typed.iter().find(|typed| typed.ring == ring)
    }

    fn source(&self, ring: usize) -> PerfSource {
        match self.typed(ring) {
            Some(_) => PerfSource::TypedEvents,
            None => PerfSource::Shard(self.rings.rings()[ring].shard()),
        }
    }

    /// Asks the operating system whether the recording programs still live. [`Self::next_timeout`] does this itself
    /// while no item comes.
    pub fn check_liveness(&self) {
        self.rings.check_liveness();
    }

    /// Returns the state of shard 0. The call asks the operating system, so do not make it for every event.
    #[must_use]
    pub fn state(&self) -> RingState {
        self.shard0().map_or(RingState::Unknown, Reader::state)
    }

    /// Returns true if everything was read and nothing will come any more. The reader notices the end of a program
    /// only in [`Self::next_timeout`] and [`Self::check_liveness`].
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.rings.has_ended()
    }

    /// Returns the known call sites and threads.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns losses that the recorder itself has counted: call sites and threads that did not fit the tables,
    /// shards that could not be made, and spans that were not recorded.
    #[must_use]
    pub fn catalog_losses(&self) -> CatalogLosses {
        self.shard0().map(CatalogLosses::read).unwrap_or_default()
    }

    /// Returns all rings of the reader: the shards, and the rings of typed events. Each ring knows how many of its
    /// events were read and how many were lost.
    #[must_use]
    pub fn rings(&self) -> &[SetRing] {
        self.rings.rings()
    }

    /// Returns the shards that the recorder has made, but that the reader could not open. When the recorder has ended,
    /// the stream returns a [`PerfItem::Gap`] for each of these shards. The gap shows how many events the shard had.
    #[must_use]
    pub fn shard_errors(&self) -> &[ShardError] {
        self.rings.shard_errors()
    }
}
