//! A handle of an opened ring.

use super::cursors::cursor::{Cursor, Next, Seek};
use super::end::RingEnd;
use super::error::ReaderError;
use super::info::{self, RingInfo, RingState};
use super::source::Source;
use super::source::options::ReaderOptions;
use crate::layout::Geometry;
use crate::ring::memory::RingMemory as _;
use crate::schema::{EventType, ExtWords, SchemaModel, SchemaTextError};
use crate::shm::{self, LostPages};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The number of newest seqnos among which the last event is looked for.
const LAST_EVENTS: u64 = 16;

/// An opened ring: a live ring, a ring that a dead process has left, or a snapshot. It is mapped read-only. A clone is
/// another handle of the same mapping.
///
/// ```
/// use eventring::reader::{Next, Reader};
/// use eventring::recorder::{ContentDescription, Recorder};
///
/// let recorder = Recorder::builder(ContentDescription::new(300, "GREETINGS")).anonymous().build()?;
/// let mut cursor = Reader::options().open_fd(recorder.as_fd())?.cursor();
/// recorder.record(2, [0; 4], b"hello");
///
/// let Next::Event(event) = cursor.next() else { panic!() };
/// let mut buffer = Vec::new();
/// assert_eq!((event.seqno, event.event_type), (1, 2));
/// assert_eq!(cursor.payload(&event, &mut buffer).valid(), Some(&b"hello"[..]));
/// assert_eq!(cursor.next(), Next::NotReady);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Reader {
    pub(super) source: Arc<Source>,
}

impl Reader {
    /// Returns options that accept any ring.
    pub fn options() -> ReaderOptions {
        ReaderOptions::default()
    }

    /// Checks that the ring's events are `E`, as [`Self::open_typed`] does. Call this for a ring that you have opened
    /// without the check and cannot open again, for example because its file may have been removed.
    ///
    /// # Errors
    /// Returns an error if the ring has another content type or another schema.
    pub fn check_events<E: EventType>(&self) -> Result<(), ReaderError> {
        let info = self.info();
        let options = Self::options().expect_events::<E>();
        let checked = options.check_content(info.content_type, info.schema_hash, || self.schema_text());
        checked.map(drop).map_err(|error| match self.path() {
            Some(path) => error.at(path),
            None => error,
        })
    }

    pub(super) fn from_source(source: Source) -> Self {
        Self { source: Arc::new(source) }
    }

    /// Returns a cursor that stands after the newest event.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.source.clone())
    }

    /// Returns a copy of the header's present content.
    pub fn info(&self) -> RingInfo {
        info::read(&self.source.memory)
    }

    /// Returns how many shards the ring's recorder has made by now. Call this for shard 0, because the other shards do
    /// not know the number. Returns 0 if the ring is not sharded. The call costs one load, so it may be made for every
    /// event.
    #[must_use]
    pub fn shard_count(&self) -> u64 {
        info::shard_count(&self.source.memory)
    }

    /// Returns the last sequence number of shard `index` (from 1). Returns `None` if this ring is not shard 0, or if
    /// its recorder has not ended in good order.
    pub(super) fn shard_last_seqno(&self, index: u32) -> Option<u64> {
        info::shard_last_seqno(&self.source.memory, index)
    }

    /// Returns true if the ring is known to have ended. Makes no system call, so it may return false although the ring
    /// has ended.
    pub fn is_finished(&self) -> bool {
        self.source.is_finished()
    }

    /// Returns the schema text in the ring's file, if there is one. Anybody may have written the file, so parse the
    /// text with [`SchemaModel::parse`](crate::schema::SchemaModel::parse), which checks everything.
    pub fn schema_text(&self) -> Option<String> {
        info::schema_text(&self.source.memory)
    }

    /// Returns the schema with which a program can decode the ring's payloads without knowing their Rust types. It is
    /// a published schema (one that eventring contains), or the schema text in the ring's file.
    ///
    /// # Errors
    /// Returns an error if the schema is not published and the ring has no usable schema text: it has no text, the
    /// text cannot be parsed, or the text belongs to another schema.
    pub fn schema(&self) -> Result<Cow<'static, SchemaModel>, SchemaTextError> {
        let info = self.info();
        SchemaModel::of_ring(info.content_type, info.schema_hash, self.schema_text().as_deref())
    }

    /// Returns the names of the events' extension words, as the ring's schema gives them. Each call reads and parses
    /// the schema text. So call this once, and keep the result.
    pub fn ext_words(&self) -> ExtWords {
        crate::schema::ext_words(self.info().content_type, self.schema().ok().as_deref())
    }

    /// Returns the ring's state, from which you see whether more events can come. This asks the operating system, so
    /// do not call it for every event.
    pub fn state(&self) -> RingState {
        self.source.state()
    }

    /// Returns the end of the recording, if it is over. Returns `None` while the writer lives, and if its state is not
    /// known, as for a snapshot. The call asks the operating system, as [`Self::state`] does. A reader that asks often
    /// learns the time of a death better.
    #[must_use]
    pub fn end(&self) -> Option<RingEnd> {
        self.state();
        Some(self.source.finished.get()?.end?.seen_at(self.last_event_epoch_nanos()))
    }

    /// Returns the time of the last event, in nanoseconds since the epoch; 0 if none of the newest was committed.
    #[must_use]
    pub fn last_event_epoch_nanos(&self) -> u64 {
        let mut cursor = self.cursor();
        cursor.seek(Seek::Seqno(self.info().last_seqno.saturating_sub(LAST_EVENTS - 1).max(1)));
        let mut last_nanos = 0;
        for _ in 0..2 * LAST_EVENTS {
            match cursor.next() {
                Next::Event(event) => last_nanos = event.record_epoch_nanos.max(last_nanos),
                Next::Gap(_) => {}
                Next::NotReady => break,
            }
        }
        last_nanos
    }

    /// Returns the pid of the process that holds the writer's lock on the file. Returns `None` if no process holds it,
    /// or if the system does not show which one. Use this for rings of other implementations, because their headers do
    /// not name the writer. For eventring's own rings, see [`RingInfo`].
    pub fn lock_owner_pid(&self) -> Option<u32> {
        if self.source.saved_as.is_some() {
            return None;
        }
        match shm::lock_state(self.source.file.descriptor()) {
            shm::LockState::Held { pid } => pid,
            shm::LockState::Free | shm::LockState::Unknown => None,
        }
    }

    /// Returns the path of the file, if it was opened by name.
    pub fn path(&self) -> Option<&Path> {
        self.source.saved_as.as_deref().or(self.source.file.path())
    }

    /// Returns the name or path by which the ring was opened, as the caller wrote it.
    pub fn name(&self) -> Option<&Path> {
        self.source.opened_as.as_ref().map(|(name, _)| name.as_path())
    }

    /// Opens the ring's file once more, only for reading. For a snapshot, this is the image in memory. For the program
    /// `eventring`, which serves rings.
    ///
    /// # Errors
    /// Returns an error if /proc is not mounted, or if this process may not read the file.
    #[doc(hidden)]
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub fn open_read_only(&self) -> std::io::Result<shm::OwnedFd> {
        shm::open_read_only(self.source.file.descriptor())
    }

    /// Returns the process that serves the ring, in words, if it runs neither as the user of this process nor as root.
    #[doc(hidden)]
    #[must_use]
    pub fn serving_stranger(&self) -> Option<String> {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        return self.source.served_by.as_ref()?.stranger();
        #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
        None
    }

    /// Returns the path that the ring's file had, if the file was removed before this reader opened the ring.
    #[doc(hidden)]
    #[must_use]
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub fn was_at(&self) -> Option<&Path> {
        self.source.held_by.as_ref().map(|held_by| held_by.was_at.as_path())
    }

    /// Returns the identity of the ring's file. For a snapshot, this is the identity of the compressed file.
    pub fn file_id(&self) -> shm::FileId {
        self.source.file_id
    }

    /// Returns true if the ring is shard 0 of a sharded recorder. From shard 0, a reader finds the other shards. From
    /// another shard, it reads only that shard.
    pub fn is_shard_0(&self) -> bool {
        self.info().extension.is_some_and(|extension| extension.shard_limit > 0 && extension.shard_index == 0)
    }

    /// Takes the pages of the ring out of the memory of this process, until they are read again.
    pub fn release_pages(&self) {
        self.source.memory().mapping().release_pages();
    }

    /// Returns the sizes of the ring's sections.
    pub fn geometry(&self) -> Geometry {
        *self.source.memory().geometry()
    }

    /// Returns the unwrapped offset at which the next payload will begin, or later. The call costs one load.
    pub fn next_payload_byte(&self) -> u64 {
        info::next_payload_byte(&self.source.memory)
    }

    /// Returns true if there is now another file at the ring's path, because the writer was restarted.
    /// [`Self::reopen`] opens the new file.
    pub fn was_replaced(&self) -> bool {
        let file = &self.source.file;
        self.source.saved_as.is_none() && file.path().is_some_and(Path::exists) && !file.is_still_at_its_path()
    }

    /// Returns true if the file was truncated while it was mapped. Readers then find zeros in place of the bytes after
    /// the new end, and do not take these zeros for events.
    pub fn was_truncated(&self) -> bool {
        self.lost_pages() == Some(LostPages::Truncated)
    }

    /// Returns the reason why pages of the file could not be read, or `None` if all pages could be read. Readers find
    /// zeros in place of lost pages, and do not take these zeros for events.
    pub fn lost_pages(&self) -> Option<LostPages> {
        self.source.lost_pages()
    }

    /// Copies bytes of the context area. Returns false if the range is not inside this area.
    pub fn read_context(&self, offset: u64, out: &mut [u8]) -> bool {
        self.source.memory.load_context_bytes(offset, out)
    }

    /// Copies bytes of the header section. Returns false if the range is not inside this section.
    pub(super) fn copy_header(&self, offset: usize, out: &mut [u8]) -> bool {
        self.source.memory.load_header_bytes(offset, out)
    }

    /// Loads a word of the context area, with acquire ordering. A writer publishes such a word with a release store.
    /// So everything that the writer stored before it stored this value is visible after the load. Returns `None` if
    /// `offset` is not a multiple of 8, or if the word is not inside the area.
    pub fn context_word(&self, offset: u64) -> Option<u64> {
        self.source.memory.context_value_acquired(offset)
    }
}

impl Cursor {
    /// Returns the reader of the cursor's ring.
    pub fn reader(&self) -> Reader {
        Reader { source: self.source.clone() }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path()).finish_non_exhaustive()
    }
}
