//! Opening rings.

use super::expected::Expected;
use crate::layout::Geometry;
use crate::layout::extension as ext;
use crate::layout::header::{FIXED_BYTES, FixedHeader, MAGIC};
use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::reader::end::SignOfLife;
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::handle::Reader;
use crate::reader::info;
use crate::reader::source::Source;
use crate::ring::memory::MappedMemory;
use crate::schema::{EventType, Resolution};
use crate::shm::{self, AsFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The pause between two attempts to open a ring that does not exist yet. It is short, because a program may live for
/// only a few milliseconds.
pub(in crate::reader) const WAIT_INTERVAL: Duration = Duration::from_millis(2);

/// Options for opening a ring. Made by [`Reader::options`].
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    expected: Option<Expected>,
    snapshot_bytes_max: Option<u64>,
    is_header_enough: bool,
    wait: Option<Duration>,
    copied_epoch_nanos: Option<u64>,
}

/// Default of [`ReaderOptions::snapshot_bytes_max`].
#[cfg(feature = "snapshot")]
pub(in crate::reader) const SNAPSHOT_BYTES_MAX: u64 = 8 << 30;

impl ReaderOptions {
    /// Accepts only rings with the content type and the schema hash of `E`.
    #[must_use]
    pub fn expect_events<E: EventType>(mut self) -> Self {
        self.expected = Some(Expected::exactly::<E>());
        self
    }

    /// Accepts rings with the events `E`, also if they were recorded with another version of the schema that is
    /// compatible. Payloads are then mapped to those of `E` by the names of their fields: [`Cursor::payload`],
    /// [`ReadyEvent::payload`] and [`RingSet::payload`] return payloads that the types of `E` decode. What the ring
    /// has and `E` does not is skipped. Events that `E` does not have come with their code and their bytes.
    /// [`Cursor::copy_batch`] and snapshots copy the payloads as they were recorded, and [`Reader::schema`] is the
    /// ring's own schema. So programs that copy or export rings open them without this option.
    ///
    /// Compatible are events, fields, arrays and values of enums that only one side has. A field or array that only `E`
    /// has needs the attribute `default`, and a name that was changed the attribute `alias`
    /// ([`EventPayload`](crate::schema::EventPayload), [`EventType`]). `docs/FORMAT.md`, "Versions of a schema", has
    /// all rules.
    ///
    /// ```
    /// # #[cfg(feature = "macros")] {
    /// use eventring::reader::{Next, Reader, Seek};
    /// use eventring::recorder::{ContentDescription, Recorder};
    /// use eventring::{EventPayload, EventType, record};
    ///
    /// mod first_release {
    ///     # use eventring::{EventPayload, EventType};
    ///     #[derive(EventPayload)]
    ///     pub struct OrderPlaced {
    ///         pub id: u64,
    ///         pub price: u32,
    ///     }
    ///
    ///     #[derive(EventType, Clone, Copy)]
    ///     #[event(content_type = 300, name = "SHOP")]
    ///     #[repr(u16)]
    ///     pub enum Shop {
    ///         #[event(payload = OrderPlaced)]
    ///         OrderPlaced = 2,
    ///     }
    /// }
    ///
    /// #[derive(EventPayload, Debug, PartialEq)]
    /// struct OrderPlaced {
    ///     id: u64,
    ///     #[event(alias = "price")]
    ///     price_cents: u32,
    ///     #[event(default = 1)]
    ///     pieces: u32,
    /// }
    ///
    /// #[derive(EventType, Clone, Copy)]
    /// #[event(content_type = 300, name = "SHOP")]
    /// #[repr(u16)]
    /// enum Shop {
    ///     #[event(payload = OrderPlaced)]
    ///     OrderPlaced = 2,
    ///     DayEnded = 3,
    /// }
    ///
    /// let recorder = Recorder::builder(ContentDescription::from_event_type::<first_release::Shop>()).anonymous().build()?;
    /// let order = first_release::OrderPlaced { id: 7, price: 250 };
    /// record!(recorder => first_release::Shop::OrderPlaced, &order);
    ///
    /// let mut cursor = Reader::options().compatible::<Shop>().open_fd(recorder.as_fd())?.cursor();
    /// cursor.seek(Seek::Oldest);
    /// let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
    /// let mut buffer = Vec::new();
    /// let payload = cursor.payload(&event, &mut buffer).valid().expect("nothing has overwritten it");
    /// assert_eq!(OrderPlaced::decode_exact(payload)?, OrderPlaced { id: 7, price_cents: 250, pieces: 1 });
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Cursor::payload`]: crate::reader::Cursor::payload
    /// [`Cursor::copy_batch`]: crate::reader::Cursor::copy_batch
    /// [`ReadyEvent::payload`]: crate::reader::ReadyEvent::payload
    /// [`RingSet::payload`]: crate::reader::RingSet::payload
    #[must_use]
    pub fn compatible<E: EventType>(mut self) -> Self {
        self.expected = Some(Expected::compatible_with::<E>());
        self
    }

    /// Refuses a snapshot that decompresses to more than this many bytes. Default: 8 GiB.
    #[must_use]
    pub fn snapshot_bytes_max(mut self, bytes: u64) -> Self {
        self.snapshot_bytes_max = Some(bytes);
        self
    }

    /// Decompresses only the header section (2 MiB) of a snapshot, even if the rest is missing or damaged. The reader
    /// then has [`Reader::info`], the state and the schema, but finds no events. The option is for programs that
    /// examine many files of unknown origin. It has no effect on rings.
    #[must_use]
    pub fn header_only(mut self) -> Self {
        self.is_header_enough = true;
        self
    }

    /// Says that the file is a copy that was made by this time, in nanoseconds since the epoch: if its writer is dead
    /// now, it was dead then.
    #[doc(hidden)]
    #[must_use]
    pub fn copied_by(mut self, epoch_nanos: u64) -> Self {
        self.copied_epoch_nanos = Some(epoch_nanos);
        self
    }

    /// Makes [`Self::open`] wait up to `timeout` if the ring does not exist yet, or is being made in place
    /// ([`ReaderError::may_come`]). Default: no waiting. If a [`RingSet`]
    /// begins with the oldest events and had to wait for a ring, it counts overwritten events of this ring as lost.
    ///
    /// [`RingSet`]: crate::reader::RingSet
    #[must_use]
    pub fn wait(mut self, timeout: Duration) -> Self {
        self.wait = Some(timeout);
        self
    }

    /// Opens the ring of this name or path. A name without `/` is looked up in the ring directories, and then in the
    /// current directory. A name with a `/` is a path. With the feature `server`, `pid:N/RING` is a ring that the
    /// server of process N serves; `pid:N` is enough if it has only one. The path of a server's socket may stand in
    /// place of `pid:N`. `pid:N` also means a ring of process N whose file was removed, if this user may look into the
    /// process. If the file is a zstd frame, it is opened as a snapshot
    /// (feature `snapshot`).
    ///
    /// # Errors
    /// Returns an error if the file does not exist, if this process may not read the file, or if the file is damaged
    /// or truncated. Also returns an error if the file is not a ring, or if the options do not accept the ring.
    pub fn open(&self, name_or_path: impl AsRef<Path>) -> Result<Reader, ReaderError> {
        let name = name_or_path.as_ref();
        let Some(timeout) = self.wait else { return self.open_now(name, false) };
        let start = Instant::now();
        let mut was_awaited = false;
        loop {
            match self.open_now(name, was_awaited) {
                Err(error) if error.may_come() && start.elapsed() < timeout => {
                    was_awaited = true;
                    std::thread::sleep(WAIT_INTERVAL.min(timeout.saturating_sub(start.elapsed())));
                }
                opened => return opened,
            }
        }
    }

    /// Opens the ring that has replaced an older ring of this name. Returns `None` if there is no ring of this name
    /// now.
    pub(in crate::reader) fn open_successor(&self, name: &Path) -> Result<Option<Reader>, ReaderError> {
        match self.open_now(name, true) {
            Err(error) if error.may_come() => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_now(&self, name: &Path, was_awaited: bool) -> Result<Reader, ReaderError> {
        self.open_once(name, was_awaited).map_err(|error| match error.path() {
            // No ring has the name, only some file here.
            Some(path) if path != name && *path == here(name) => error.of_later_ring(),
            _ => error,
        })
    }

    fn open_once(&self, name: &Path, was_awaited: bool) -> Result<Reader, ReaderError> {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(opened) = super::served::open(self, name) {
            return match opened {
                Err(error) if error.kind() == ReaderErrorKind::NotFound => {
                    super::removed::open(self, name).unwrap_or(Err(error))
                }
                opened => opened,
            };
        }
        let file = match find(name) {
            Ok(file) => file,
            // A server may have made its socket since the look above.
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Err(error) if error.kind() == shm::ShmErrorKind::NotARegularFile => {
                return super::served::open(self, name).unwrap_or_else(|| Err(ReaderError::shm(error)));
            }
            Err(error) => return Err(ReaderError::shm(error)),
        };
        let path = file.path().unwrap_or(name).to_path_buf();
        let opened = if starts_as_zstd(&file) { self.open_snapshot(&file, &path) } else { self.map_ring(file) };
        let source = opened.map_err(|error| error.at(&path))?;
        let opened_as = Some((name.to_path_buf(), self.clone()));
        Ok(Reader::from_source(Arc::new(Source { opened_as, was_awaited, ..source })))
    }

    /// Opens a ring by a file descriptor: that of a memfd, or of a ring file that another process has opened and sent.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_fd(&self, fd: impl AsFd) -> Result<Reader, ReaderError> {
        let file = shm::duplicate(fd).map_err(|error| ReaderError::io("duplicate the descriptor", error))?;
        let source = self.map_descriptor(file)?;
        Ok(Reader::from_source(Arc::new(source)))
    }

    fn map_descriptor(&self, descriptor: std::fs::File) -> Result<Source, ReaderError> {
        self.map_ring(shm::RingFile::from_descriptor(descriptor).map_err(ReaderError::shm)?)
    }

    /// Opens a ring that a server has handed out.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::reader) fn open_served(
        &self,
        descriptor: shm::OwnedFd,
        served_by: super::served::ServedBy,
        opened_as: Option<(PathBuf, Self)>,
    ) -> Result<Reader, ReaderError> {
        let source = self.map_descriptor(descriptor.into())?;
        Ok(Reader::from_source(Arc::new(Source { served_by: Some(served_by), opened_as, ..source })))
    }

    /// Opens a ring whose file was removed.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(in crate::reader) fn open_held(
        &self,
        descriptor: shm::OwnedFd,
        held_by: super::removed::OpenedBy,
        opened_as: Option<(PathBuf, Self)>,
    ) -> Result<Reader, ReaderError> {
        let source = self.map_descriptor(descriptor.into())?;
        Ok(Reader::from_source(Arc::new(Source { held_by: Some(held_by), opened_as, ..source })))
    }

    #[cfg(feature = "snapshot")]
    fn open_snapshot(&self, file: &shm::RingFile, path: &Path) -> Result<Source, ReaderError> {
        let bytes_max = self.snapshot_bytes_max.unwrap_or(SNAPSHOT_BYTES_MAX);
        let image = crate::reader::snapshot::decompress(file.descriptor(), bytes_max, self.is_header_enough)?;
        let image = shm::RingFile::from_descriptor(image).map_err(ReaderError::shm)?;
        self.map(image, file.id(), Some(path.to_path_buf()))
    }

    #[cfg(not(feature = "snapshot"))]
    fn open_snapshot(&self, _: &shm::RingFile, _: &Path) -> Result<Source, ReaderError> {
        Err(ReaderError::new(
            ReaderErrorKind::Unsupported,
            "the file is a zstd-compressed snapshot, and this program was built without the feature `snapshot`; \
             decompress it first, or enable the feature",
        ))
    }

    fn map_ring(&self, file: shm::RingFile) -> Result<Source, ReaderError> {
        let file_id = file.id();
        self.map(file, file_id, None)
    }

    /// Maps the file, and checks its header.
    fn map(&self, file: shm::RingFile, file_id: shm::FileId, saved_as: Option<PathBuf>) -> Result<Source, ReaderError> {
        let (fixed, geometry, has_extension) = read_header(&file)?;
        let sections = shm::Sections {
            header_bytes: HEADER_SECTION_BYTES,
            descriptor_bytes: geometry.descriptor_section_bytes(),
            payload_bytes: geometry.payload_buf_bytes(),
            context_bytes: geometry.context_area_bytes(),
        };
        // The image of a snapshot is mapped as a whole, with its holes. A load from a mapped hole takes memory, at most
        // the size of the image. This size was checked.
        let options = shm::MapOptions { map_holes: saved_as.is_some(), ..shm::MapOptions::reader() };
        let mapping = shm::Mapping::map(file.descriptor(), sections, options).map_err(ReaderError::shm)?;
        // The content type and schema are checked only after the mapping, because the mapping checks the file's
        // length. So the error for a truncated ring says that it is truncated.
        let mut memory = MappedMemory::new(mapping, geometry, has_extension).ok_or_else(|| {
            ReaderError::new(ReaderErrorKind::BadHeader, "the mapped sections differ from the header")
        })?;
        let text = || info::schema_text(&memory);
        let resolution = self.check_content(fixed.content_type, fixed.schema_hash, text)?;
        if resolution.is_some() {
            memory.switch_fast_paths_off();
        }
        let finished = OnceLock::new();
        let source = Source {
            memory,
            resolution,
            file,
            file_id,
            saved_as,
            opened_as: None,
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            served_by: None,
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            held_by: None,
            was_awaited: false,
            finished,
            sign_of_life: SignOfLife { copied_epoch_nanos: self.copied_epoch_nanos, ..SignOfLife::default() },
        };
        source.state();
        Ok(source)
    }

    /// Checks the content of a ring whose schema text `text` returns. Returns how its payloads become those that are
    /// expected, if they differ.
    pub(in crate::reader) fn check_content(
        &self,
        content_type: u16,
        schema_hash: [u8; 32],
        text: impl FnOnce() -> Option<String>,
    ) -> Result<Option<Resolution>, ReaderError> {
        self.expected.as_ref().map_or(Ok(None), |expected| expected.check(content_type, schema_hash, text))
    }
}

/// Bytes from the start of a file, up to the version of the extension.
pub(in crate::reader) type StartOfFile = [u8; ext::VERSION_OFFSET + 8];

/// Reads the fixed part of the header with `read` calls, before anything is mapped. The last value is true if the file
/// has eventring's extension of the header.
fn read_header(file: &shm::RingFile) -> Result<(FixedHeader, Geometry, bool), ReaderError> {
    let mut start: StartOfFile = [0; ext::VERSION_OFFSET + 8];
    let bytes = file.read_at(&mut start, 0).map_err(ReaderError::shm)?;
    // The sizes and the schema come after the magic number, or all of them come at once.
    let is_unfinished =
        (start.strip_prefix(&MAGIC).unwrap_or(&start)).iter().take(64 - MAGIC.len()).all(|byte| *byte == 0);
    let refused = |error: ReaderError| if is_unfinished { error.of_later_ring() } else { error };
    decode_header(&start, bytes).map_err(refused)
}

pub(in crate::reader) fn decode_header(
    start: &StartOfFile,
    bytes: usize,
) -> Result<(FixedHeader, Geometry, bool), ReaderError> {
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
    let geometry = Geometry::new(fixed.descriptor_capacity, fixed.payload_buf_bytes, fixed.context_area_bytes)
        .map_err(|error| ReaderError::bad_header(&error))?;
    let word = |offset: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&start[offset..offset + 8]);
        u64::from_le_bytes(word)
    };
    // In another major version, the fields of the extension may have other meanings. So a file with another major
    // version is read as if it had no extension.
    let version = word(ext::VERSION_OFFSET) as u32;
    Ok((fixed, geometry, word(ext::MAGIC_OFFSET) == ext::MAGIC && u64::from(version) >> 16 == ext::VERSION >> 16))
}

/// Returns the error for a file with this magic number. The message does not show bytes of a file that may be anything.
pub(in crate::reader) fn not_a_ring(found: [u8; 6]) -> ReaderError {
    let expected = MAGIC.escape_ascii();
    if found[..4] == MAGIC[..4] && found[4..].iter().all(u8::is_ascii_digit) {
        let shown = found.escape_ascii();
        let message = format!("the ring has version {shown}, expected {expected}; use a reader of that version");
        return ReaderError::new(ReaderErrorKind::WrongVersion, message);
    }
    let message = format!(
        "the file is not an event ring: it does not begin with \"{expected}\"; name the file that a recorder or `eventring snapshot` has made"
    );
    ReaderError::new(ReaderErrorKind::NotARing, message)
}

/// Opens the ring's file, from the places that [`ReaderOptions::open`] lists.
fn find(name_or_path: &Path) -> Result<shm::RingFile, shm::ShmError> {
    let name = shm::RingName::new(name_or_path.as_os_str())?;
    let is_path = matches!(name, shm::RingName::Path(_));
    // Symbolic links are followed only in a path, because the user has chosen the path. In a ring directory, anybody
    // may have made a link, so links are not followed there.
    let options = shm::OpenOptions { follow_symlinks: is_path, ..shm::OpenOptions::default() };
    let found = shm::RingFile::open(&name, &shm::RingDirectories::from_environment(), &options);
    match found {
        Err(error) if !is_path && error.kind() == shm::ShmErrorKind::NotFound && name_or_path.is_file() => {
            let options = shm::OpenOptions { follow_symlinks: true, ..options };
            shm::RingFile::open_path(here(name_or_path), &options)
        }
        found => found,
    }
}

/// Returns the path of what has this name in the current directory.
fn here(name: &Path) -> PathBuf {
    Path::new(".").join(name)
}

fn starts_as_zstd(file: &shm::RingFile) -> bool {
    let mut magic = [0; 4];
    matches!(file.read_at(&mut magic, 0), Ok(4)) && magic == [0x28, 0xb5, 0x2f, 0xfd]
}
