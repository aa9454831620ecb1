//! Reading a sharded recorder: all its rings as one stream.

use super::catalog::{Catalog, CatalogLosses};
use super::decode::decode_record;
use super::record::{PerfRecord, SpanId};
use crate::reader::{Cursor, Descriptor, Gap, MergedItem, Merger, Reader, ReaderError, RingState, Seek};
use crate::schema::SPAN_WORD;
use crate::schema::perf::{PerfEvent, PerfExt};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often new shards are looked for while events flow, in items.
const DISCOVERY_ITEMS: u32 = 1 << 10;
/// How often it is asked whether the writer lives, while nothing comes.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long to sleep between looks while nothing comes.
const IDLE_SLEEP: Duration = Duration::from_micros(500);
/// A header that says there are more shards than this is damaged.
const SHARDS_MAX: u64 = 1 << 12;

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
    shard_errors: Vec<(u32, ReaderError)>,
    items_until_discovery: u32,
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
    /// The span that the thread was in when it recorded the event, if the ring's events say so ([`Reader::carries_span`]).
    pub span: Option<SpanId>,
}

impl PerfReader {
    /// Opens the recorder of that name or path, live or dead, with all its shards; begins with the oldest events.
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
        reader.discover(start);
        Ok(reader)
    }

    /// The stream of these shards, shard 0 first, from their oldest events. If they have paths, shards that are created later
    /// are found.
    #[must_use]
    pub fn from_shards(shards: Vec<Reader>) -> Self {
        Self::new(shards, Seek::Oldest)
    }

    fn new(shards: Vec<Reader>, start: Seek) -> Self {
        let mut reader = Self {
            shards: Vec::new(),
            sources: Vec::new(),
            carry_span: Vec::new(),
            merger: Merger::new([]),
            catalog: Catalog::new(),
            shard_errors: Vec::new(),
            items_until_discovery: DISCOVERY_ITEMS,
            next_liveness_check: Instant::now(),
        };
        shards.into_iter().for_each(|shard| reader.add_shard(shard, start));
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
        if exec.carries_span() {
            self.carry_span.push(self.sources.len());
        }
        self.sources.push(PerfSource::Exec);
        self.merger.add(cursor_at(exec, start));
        self
    }

    fn add_shard(&mut self, shard: Reader, start: Seek) {
        self.sources.push(PerfSource::Shard(self.shards.len() as u32));
        self.merger.add(cursor_at(&shard, start));
        self.shards.push(shard);
    }

    fn update_catalog(&mut self) {
        if let Some(shard0) = self.shards.first() {
            self.catalog.update(shard0);
        }
    }

    /// Opens shards that were created since the last look; true if there are any.
    fn discover(&mut self, start: Seek) -> bool {
        self.items_until_discovery = DISCOVERY_ITEMS;
        let known = self.shards.len();
        let Some(shard0) = self.shards.first() else { return false };
        let Some(extension) = shard0.info().extension else { return false };
        // A shard that cannot be opened is not tried again: those behind it would get the wrong index.
        if !self.shard_errors.is_empty() || extension.shard_count.min(SHARDS_MAX) <= known as u64 {
            return false;
        }
        let Some(path) = shard0.path().map(Path::to_path_buf) else { return false };
        for index in known as u64..extension.shard_count.min(SHARDS_MAX) {
            match Reader::open_typed::<PerfEvent>(shard_path(&path, index)) {
                Ok(shard) => self.add_shard(shard, start),
                Err(error) => {
                    self.shard_errors.push((index as u32, error));
                    break;
                }
            }
        }
        self.shards.len() > known
    }

    /// The next item; `None` while there is none. Never waits.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a stream goes on")]
    pub fn next(&mut self) -> Option<PerfItem> {
        self.items_until_discovery = self.items_until_discovery.saturating_sub(1);
        if self.items_until_discovery == 0 {
            // What it has recorded so far comes late, but comes.
            self.discover(Seek::Oldest);
        }
        let item = self.merged();
        if item.is_none() && self.discover(Seek::Oldest) { self.merged() } else { item }
    }

    fn merged(&mut self) -> Option<PerfItem> {
        let (input, descriptor, payload) = match self.merger.next() {
            MergedItem::NotReady => return None,
            MergedItem::Gap { input, gap } => return Some(PerfItem::Gap { source: self.sources[input], gap }),
            MergedItem::Event { input, descriptor, payload } => (input, descriptor, payload),
        };
        let PerfSource::Shard(shard) = self.sources[input] else {
            let carries_span = self.carry_span.contains(&input);
            let span = if carries_span { SpanId::new(descriptor.content_ext[SPAN_WORD]) } else { None };
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
        self.merger.has_ended()
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

    /// The shards' readers, by index.
    #[must_use]
    pub fn shards(&self) -> &[Reader] {
        &self.shards
    }

    /// The rings' cursors and which they are, in no order: for counts of what was read and lost.
    pub fn cursors(&self) -> impl Iterator<Item = (PerfSource, &Cursor)> {
        self.sources.iter().copied().zip(self.merger.cursors())
    }

    /// Shards that exist and could not be opened, and why.
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

/// The file of shard `index` (from 1) of the recorder whose shard 0 is at `path`.
pub(in crate::tracing) fn shard_path(path: &Path, index: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{index}"));
    name.into()
}
