//! Opening rings.

use super::cursor::{Cursor, PayloadRead};
use super::error::{ReaderError, ReaderErrorKind};
use super::info::{self, RingInfo, RingState};
use crate::layout::extension as ext;
use crate::layout::header::{FIXED_BYTES, FixedHeader, MAGIC};
use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::layout::{Descriptor, Geometry};
use crate::ring::memory::{MappedMemory, RingMemory};
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe;
use crate::schema::{EventType, ExtWords, SchemaModel, SchemaTextError};
use crate::shm::{self, Liveness, LostPages};
use std::borrow::Cow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What all handles of one opened ring share.
pub(super) struct Source {
    memory: MappedMemory,
    file: shm::RingFile,
    /// The file that was opened, which of a snapshot is not `file`.
    #[cfg_attr(not(feature = "capture"), allow(dead_code, reason = "who writes files asks"))]
    file_id: shm::FileId,
    /// The snapshot's path: `file` is then anonymous memory.
    saved_as: Option<PathBuf>,
    /// Set once it is certain that nothing will be recorded any more.
    finished: OnceLock<RingState>,
}

/// An opened ring: live, left by a dead process, or a snapshot. The mapping is read-only. Cloning gives another handle.
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
    source: Arc<Source>,
}

/// What a ring must be to be opened. Made by [`Reader::options`].
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    expected: Option<Expected>,
    snapshot_bytes_max: Option<u64>,
    is_header_enough: bool,
}

#[derive(Clone, Debug)]
struct Expected {
    content_type: u16,
    content_name: &'static str,
    schema_hash: [u8; 32],
}

/// Snapshots decompress to at most this many bytes unless the options say otherwise.
#[cfg(feature = "snapshot")]
pub(super) const SNAPSHOT_BYTES_MAX: u64 = 8 << 30;

/// Below this, a payload fits any ring (a buffer is at least a page), and is copied in place.
const SMALL_PAYLOAD_BYTES: usize = 32;

impl Reader {
    /// Options that accept any ring (raw mode).
    pub fn options() -> ReaderOptions {
        ReaderOptions::default()
    }

    /// Opens the ring, or the snapshot, of that name or path, whatever its events are.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::options().open(name_or_path)
    }

    /// Opens the ring of that name or path if its events are `E`.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open_typed<E: EventType>(name_or_path: impl AsRef<Path>) -> Result<Self, ReaderError> {
        Self::options().expect_events::<E>().open(name_or_path)
    }

    /// Checks that the ring's events are `E`, as [`Self::open_typed`] does, of a ring that is open: one that was opened raw to see what it
    /// holds, and whose file may be gone by now.
    ///
    /// # Errors
    /// The ring has another content type, or another schema.
    pub fn check_events<E: EventType>(&self) -> Result<(), ReaderError> {
        let info = self.info();
        let checked = Self::options().expect_events::<E>().check_content(info.content_type, info.schema_hash);
        checked.map_err(|error| match self.path() {
            Some(path) => error.at(path),
            None => error,
        })
    }

    pub(super) fn from_source(source: Arc<Source>) -> Self {
        Self { source }
    }

    /// A cursor behind the newest event.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.source.clone())
    }

    /// What the header says now.
    pub fn info(&self) -> RingInfo {
        info::read(&self.source.memory)
    }

    /// How many shards the ring's recorder has made by now, if this is its shard 0; 0 if it is not sharded. One load: cheap enough
    /// for every event.
    #[must_use]
    pub fn shard_count(&self) -> u64 {
        info::shard_count(&self.source.memory)
    }

    /// If this is shard 0 of a recorder that has ended in good order: the last sequence number of its shard `index`, from 1.
    pub(super) fn shard_last_seqno(&self, index: u32) -> Option<u64> {
        info::shard_last_seqno(&self.source.memory, index)
    }

    /// Whether the ring is known to have ended. Asks nobody.
    pub(super) fn is_finished(&self) -> bool {
        self.source.is_finished()
    }

    /// The schema text that the ring carries, if any. It comes from the file: parse it with
    /// [`SchemaModel::parse`](crate::schema::SchemaModel::parse), which trusts nothing.
    pub fn schema_text(&self) -> Option<String> {
        info::schema_text(&self.source.memory)
    }

    /// What decodes the ring's payloads without their types: a published schema, or the schema text that the ring carries.
    ///
    /// # Errors
    /// There is neither, or the text is wrong or of another schema.
    pub fn schema(&self) -> Result<Cow<'static, SchemaModel>, SchemaTextError> {
        let info = self.info();
        SchemaModel::of_ring(info.content_type, info.schema_hash, self.schema_text().as_deref())
    }

    /// Returns the names of the events' extension words, as the ring's schema gives them. Reads the schema text: ask once.
    pub fn ext_words(&self) -> ExtWords {
        crate::schema::ext_words(self.info().content_type, self.schema().ok().as_deref())
    }

    /// Whether anything will be recorded any more. Asks the operating system, so not for every event.
    pub fn state(&self) -> RingState {
        self.source.state()
    }

    /// The process that holds the writer's lock on the file, where the system shows it. For rings of other writers, which do
    /// not name themselves; else see [`RingInfo`].
    pub fn lock_owner_pid(&self) -> Option<u32> {
        if self.source.saved_as.is_some() {
            return None;
        }
        match shm::lock_state(self.source.file.descriptor()) {
            shm::LockState::Held { pid } => pid,
            shm::LockState::Free | shm::LockState::Unknown => None,
        }
    }

    /// Path of the file, if it was opened by name.
    pub fn path(&self) -> Option<&Path> {
        self.source.saved_as.as_deref().or(self.source.file.path())
    }

    /// Which file it is; of a snapshot, the compressed one.
    #[cfg(feature = "capture")]
    pub(crate) fn file_id(&self) -> shm::FileId {
        self.source.file_id
    }

    /// Whether it is the first shard of a sharded recorder. Whoever names another shard gets that alone.
    pub(crate) fn is_shard_0(&self) -> bool {
        self.info().extension.is_some_and(|extension| extension.shard_limit > 0 && extension.shard_index == 0)
    }

    /// The user who owns the file.
    pub(super) fn file_owner(&self) -> u32 {
        self.source.file.owner()
    }

    /// Whether the path now leads to another file: the writer was restarted. Open it again to go on.
    pub fn was_replaced(&self) -> bool {
        let file = &self.source.file;
        self.source.saved_as.is_none() && file.path().is_some_and(Path::exists) && !file.is_still_at_its_path()
    }

    /// Whether somebody truncated the file while it was mapped. What was behind the new end reads as zeros: no events.
    pub fn was_truncated(&self) -> bool {
        self.lost_pages() == Some(LostPages::Truncated)
    }

    /// Whether pages of the file could not be read, and why. What was in them reads as zeros: no events.
    pub fn lost_pages(&self) -> Option<LostPages> {
        self.source.lost_pages()
    }

    /// Copies bytes of the context area; false if the range is not inside of it.
    pub fn read_context(&self, offset: u64, out: &mut [u8]) -> bool {
        self.source.memory.load_context_bytes(offset, out)
    }

    /// Copies bytes of the header section; false if the range is not inside of it.
    #[cfg(feature = "snapshot")]
    pub(super) fn copy_header(&self, offset: usize, out: &mut [u8]) -> bool {
        self.source.memory.load_header_bytes(offset, out)
    }

    /// A word of the context area, loaded with acquire ordering: what was written before it was published is then visible.
    pub fn context_word(&self, offset: u64) -> Option<u64> {
        self.source.memory.context_value_acquired(offset)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl ReaderOptions {
    /// Opens only rings with the content type and the schema hash of `E`.
    #[must_use]
    pub fn expect_events<E: EventType>(mut self) -> Self {
        self.expected = Some(Expected {
            content_type: E::CONTENT_TYPE,
            content_name: E::CONTENT_NAME,
            schema_hash: E::schema_hash(),
        });
        self
    }

    /// A snapshot that decompresses to more than this many bytes is refused. Default: 8 GiB.
    #[must_use]
    pub fn snapshot_bytes_max(mut self, bytes: u64) -> Self {
        self.snapshot_bytes_max = Some(bytes);
        self
    }

    /// Of a snapshot, decompresses the header section (2 MiB) and no more, whatever else there may be, or may be missing: [`Reader::info`], the state and the schema
    /// are there, and no event can be read. For those who look at many files, which anybody may have made. Rings are opened as ever.
    #[must_use]
    pub fn header_only(mut self) -> Self {
        self.is_header_enough = true;
        self
    }

    /// Opens the ring of that name or path. A name without `/` is looked up in the ring directories, then in the current
    /// directory; a name with a `/` is a path. A file that is a zstd frame is opened as a snapshot (feature `snapshot`).
    ///
    /// # Errors
    /// There is no such file, no permission, it is not a ring, is damaged or truncated, or is not what the options expect.
    pub fn open(&self, name_or_path: impl AsRef<Path>) -> Result<Reader, ReaderError> {
        let file = find(name_or_path.as_ref()).map_err(ReaderError::shm)?;
        let path = file.path().unwrap_or(name_or_path.as_ref()).to_path_buf();
        let opened = if starts_as_zstd(&file) { self.open_snapshot(&file, &path) } else { self.map_ring(file) };
        opened.map_err(|error| error.at(&path))
    }

    /// Opens the ring behind a file descriptor (a memfd, or one that was handed over).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_fd(&self, fd: impl AsFd) -> Result<Reader, ReaderError> {
        let file =
            fd.as_fd().try_clone_to_owned().map_err(|error| ReaderError::io("duplicate the descriptor", error))?;
        self.map_ring(shm::RingFile::from_descriptor(file).map_err(ReaderError::shm)?)
    }

    #[cfg(feature = "snapshot")]
    fn open_snapshot(&self, file: &shm::RingFile, path: &Path) -> Result<Reader, ReaderError> {
        let bytes_max = self.snapshot_bytes_max.unwrap_or(SNAPSHOT_BYTES_MAX);
        let image = super::snapshot::decompress(file.descriptor(), bytes_max, self.is_header_enough)?;
        let image = shm::RingFile::from_descriptor(image).map_err(ReaderError::shm)?;
        self.map(image, file.id(), Some(path.to_path_buf()))
    }

    #[cfg(not(feature = "snapshot"))]
    fn open_snapshot(&self, _: &shm::RingFile, _: &Path) -> Result<Reader, ReaderError> {
        Err(ReaderError::new(
            ReaderErrorKind::Unsupported,
            "the file is a zstd-compressed snapshot, and this program was built without the feature `snapshot`; \
             decompress it first, or enable the feature",
        ))
    }

    fn map_ring(&self, file: shm::RingFile) -> Result<Reader, ReaderError> {
        let file_id = file.id();
        self.map(file, file_id, None)
    }

    /// Maps and checks.
    fn map(&self, file: shm::RingFile, file_id: shm::FileId, saved_as: Option<PathBuf>) -> Result<Reader, ReaderError> {
        let (fixed, has_extension) = read_header(&file)?;
        let geometry = Geometry::new(fixed.descriptor_capacity, fixed.payload_buf_bytes, fixed.context_area_bytes)
            .map_err(|error| ReaderError::bad_header(&error))?;
        let sections = shm::Sections {
            header_bytes: HEADER_SECTION_BYTES,
            descriptor_bytes: geometry.descriptor_section_bytes(),
            payload_bytes: geometry.payload_buf_bytes(),
            context_bytes: geometry.context_area_bytes(),
        };
        // The image of a snapshot is ours: nobody writes to it, and how large it may be was asked.
        let options = shm::MapOptions { map_holes: saved_as.is_some(), ..shm::MapOptions::reader() };
        let mapping = shm::Mapping::map(file.descriptor(), sections, options).map_err(ReaderError::shm)?;
        // Behind the mapping, which has found the file long enough: a ring that is cut off is that in the first place.
        self.check_content(fixed.content_type, fixed.schema_hash)?;
        let memory = MappedMemory::new(mapping, geometry, has_extension).ok_or_else(|| {
            ReaderError::new(ReaderErrorKind::BadHeader, "the mapped sections differ from the header")
        })?;
        let source = Source { memory, file, file_id, saved_as, finished: OnceLock::new() };
        source.state();
        Ok(Reader { source: Arc::new(source) })
    }

    fn check_content(&self, content_type: u16, schema_hash: [u8; 32]) -> Result<(), ReaderError> {
        let Some(expected) = &self.expected else { return Ok(()) };
        if content_type != expected.content_type {
            return Err(ReaderError::new(
                ReaderErrorKind::WrongContentType { found: content_type, expected: expected.content_type },
                format!(
                    "the ring has content type {} ({}), expected {} ({}); open a ring of that type, or open this one raw",
                    content_type,
                    crate::layout::header::content_type_name(content_type),
                    expected.content_type,
                    expected.content_name,
                ),
            ));
        }
        if schema_hash != expected.schema_hash {
            return Err(ReaderError::new(
                ReaderErrorKind::WrongSchema { found: schema_hash, expected: expected.schema_hash },
                format!(
                    "the ring's {} events have schema hash {}, expected {}: writer and reader were built with \
                     different versions of the events; use matching versions, or open the ring raw",
                    expected.content_name,
                    hex(&schema_hash),
                    hex(&expected.schema_hash),
                ),
            ));
        }
        Ok(())
    }
}

impl Source {
    #[inline(always)]
    pub(super) fn memory(&self) -> &MappedMemory {
        &self.memory
    }

    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        self.finished.get().is_some()
    }

    fn state(&self) -> RingState {
        if let Some(lost) = self.lost_pages() {
            let state = match lost {
                LostPages::NoMemory => RingState::NoMemory,
                LostPages::Unreadable => RingState::Unreadable,
                _ => RingState::Truncated,
            };
            // Cursors shall not wait for what cannot come.
            let _ = self.finished.set(state);
            return state;
        }
        self.reach_all();
        if let Some(state) = self.finished.get() {
            return *state;
        }
        let state = if self.saved_as.is_some() {
            RingState::Saved
        } else if info::is_ended(&self.memory) {
            RingState::Ended
        } else {
            match self.file.writer_liveness(info::identity(&self.memory).as_ref()) {
                Liveness::Alive => return RingState::Live,
                Liveness::Dead if mutation::active(Mutation::DeathUnnoticed) => return RingState::Live,
                Liveness::Unknown => return RingState::Unknown,
                // It may have ended in good order after the look above.
                Liveness::Dead if info::is_ended(&self.memory) || info::is_exiting(&self.memory) => RingState::Ended,
                Liveness::Dead => RingState::WriterDied,
            }
        };
        *self.finished.get_or_init(|| state)
    }

    fn lost_pages(&self) -> Option<LostPages> {
        self.memory.mapping().lost_pages(self.file.descriptor())
    }

    #[inline(always)]
    pub(super) fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        let bytes = descriptor.payload_size as usize;
        let is_as_long = buffer.len() == bytes;
        // Two ways that do the same, each of which need not ask what the other must. In a sparse file no payload is ordinary.
        if is_as_long && self.memory.is_ordinary_payload(bytes) {
            return self.copy_payload(descriptor, buffer);
        }
        if is_as_long && bytes < SMALL_PAYLOAD_BYTES && !self.memory.is_sparse() {
            return self.copy_payload(descriptor, buffer);
        }
        // Not the descriptor itself, which would have to be in memory.
        match self.payload_of_any_size(descriptor.payload_size, descriptor.payload_buf_offset, buffer) {
            Some(true) => PayloadRead::Valid(buffer),
            Some(false) => PayloadRead::Expired,
            None => PayloadRead::Malformed,
        }
    }

    /// As [`Self::payload`]: whether it is valid, or nothing of the kind can be.
    #[inline(never)]
    fn payload_of_any_size(&self, size: u32, offset: u64, buffer: &mut Vec<u8>) -> Option<bool> {
        if u64::from(size) > self.memory.geometry().payload_buf_bytes()
            && !mutation::active(Mutation::TrustedPayloadSize)
        {
            return None;
        }
        if self.memory.is_sparse() && !self.reach_payload(offset, size) {
            return Some(false);
        }
        // Only what grows is zeroed.
        buffer.resize(size as usize, 0);
        let descriptor = Descriptor { payload_size: size, payload_buf_offset: offset, ..Descriptor::default() };
        Some(self.copy_payload(&descriptor, buffer).valid().is_some())
    }

    /// Fills `out`, which is as long as the payload.
    #[inline(always)]
    fn copy_payload<'b>(&self, descriptor: &Descriptor, out: &'b mut [u8]) -> PayloadRead<'b> {
        // Asked after the copy: of a file that was cut, the copy has met zeros, and that is noted before they appear.
        if observe::payload(&self.memory, descriptor, out) && !self.memory.mapping().was_truncated() {
            PayloadRead::Valid(out)
        } else {
            PayloadRead::Expired
        }
    }
}

/// Reads the fixed header with ordinary file reads, before anything is mapped; says whether the extension is there.
fn read_header(file: &shm::RingFile) -> Result<(FixedHeader, bool), ReaderError> {
    let mut start = [0; ext::VERSION_OFFSET + 8];
    let bytes = file.read_at(&mut start, 0).map_err(ReaderError::shm)?;
    if bytes < FIXED_BYTES && bytes >= MAGIC.len() && start[..MAGIC.len()] == MAGIC {
        return Err(ReaderError::new(
            ReaderErrorKind::Truncated,
            format!(
                "the file has only {bytes} bytes, expected a ring of at least {HEADER_SECTION_BYTES} bytes: its end is missing; copy it again, whole"
            ),
        ));
    }
    if bytes < FIXED_BYTES {
        return Err(ReaderError::new(
            ReaderErrorKind::NotARing,
            format!(
                "the file has only {bytes} bytes, expected a ring of at least {HEADER_SECTION_BYTES} bytes; name the file that a recorder or `eventring snapshot` has made"
            ),
        ));
    }
    let mut fixed = [0; 64];
    fixed.copy_from_slice(&start[..64]);
    let fixed = FixedHeader::decode(&fixed).map_err(not_a_ring)?;
    let word = |offset: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&start[offset..offset + 8]);
        u64::from_le_bytes(word)
    };
    // Another major version may mean anything: then the file is read as one without extension.
    let version = word(ext::VERSION_OFFSET) as u32;
    Ok((fixed, word(ext::MAGIC_OFFSET) == ext::MAGIC && u64::from(version) >> 16 == ext::VERSION >> 16))
}

pub(super) fn not_a_ring(found: [u8; 6]) -> ReaderError {
    let shown = found.escape_ascii();
    let expected = MAGIC.escape_ascii();
    if found[..4] == MAGIC[..4] {
        let message = format!("the ring has version {shown}, expected {expected}; use a reader of that version");
        return ReaderError::new(ReaderErrorKind::WrongVersion, message);
    }
    let message = format!(
        "the file is not an event ring: it begins with \"{shown}\", expected \"{expected}\"; name the file that a recorder or `eventring snapshot` has made"
    );
    ReaderError::new(ReaderErrorKind::NotARing, message)
}

/// Looks where [`ReaderOptions::open`] says.
fn find(name_or_path: &Path) -> Result<shm::RingFile, shm::ShmError> {
    let name = shm::RingName::new(name_or_path.as_os_str())?;
    let is_path = matches!(name, shm::RingName::Path(_));
    // In a ring directory a link could be anybody's; a path is the user's word.
    let options = shm::OpenOptions { follow_symlinks: is_path, ..shm::OpenOptions::default() };
    let found = shm::RingFile::open(&name, &shm::RingDirectories::from_environment(), &options);
    match found {
        Err(error) if !is_path && error.kind() == shm::ShmErrorKind::NotFound && name_or_path.is_file() => {
            let options = shm::OpenOptions { follow_symlinks: true, ..options };
            shm::RingFile::open_path(Path::new(".").join(name_or_path), &options)
        }
        found => found,
    }
}

fn starts_as_zstd(file: &shm::RingFile) -> bool {
    let mut magic = [0; 4];
    matches!(file.read_at(&mut magic, 0), Ok(4)) && magic == [0x28, 0xb5, 0x2f, 0xfd]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
