//! The sources of execution events.

use crate::dialect::{Dialect, UnknownSchema};
use crate::history::{ArchiveEvents, BlockArchive, EventcapEvents, EventcapFile, Stored};
use eventring::reader::{Cursor, Descriptor, Followed, Follower, Gap, PayloadRead, Reader, Seek, WaitStrategy};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring_capture::{
    CaptureError, CaptureEvents, CaptureFile, CapturedContent, CapturedPayload, CapturedRecord, CapturedRing,
};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two looks at a ring. Blocks take many times as long, and a reader that waits costs below one per
/// cent of a processor.
const PAUSE: Duration = Duration::from_millis(2);

/// The execution events of a ring, a capture, an `EVCAP_01` file or an archive of blocks, one after the other.
#[derive(Debug)]
pub struct ExecEvents {
    source: Source,
    dialect: Dialect,
    schema_hash: [u8; 32],
    schema_text: String,
}

#[derive(Debug)]
enum Source {
    Ring { follower: Box<Follower>, buffer: Vec<u8> },
    Capture(Box<CaptureSource>),
    File(Box<EventcapEvents>),
    Archive(Box<ArchiveEvents>),
}

/// The rings of execution events of a capture, one after the other.
#[derive(Debug)]
struct CaptureSource {
    events: CaptureEvents,
    payload: CapturedPayload,
    problems: Vec<String>,
    /// The rings that come next: the schema and the events of each. Nothing is read of them yet.
    rest: VecDeque<(Dialect, CaptureEvents)>,
}

/// The next thing in [`ExecEvents`].
#[derive(Debug)]
pub enum NextEvent<'e> {
    /// An event.
    Event(Descriptor, EventPayload<'e>),
    /// Events that will not come.
    Gap(Gap),
    /// The events that follow are of another ring: their seqnos begin anew.
    NewRing,
    /// Nothing came within the timeout.
    TimedOut,
    /// No more events will come.
    Ended,
}

/// The payload of an event, which is copied only when it is read.
#[derive(Debug)]
pub struct EventPayload<'e>(Unread<'e>);

#[derive(Debug)]
enum Unread<'e> {
    InRing(&'e Cursor, Descriptor, &'e mut Vec<u8>),
    Read(PayloadRead<'e>),
}

impl<'e> EventPayload<'e> {
    /// Reads the payload.
    #[must_use]
    pub fn read(self) -> PayloadRead<'e> {
        match self.0 {
            Unread::InRing(cursor, event, buffer) => cursor.payload(&event, buffer),
            Unread::Read(payload) => payload,
        }
    }
}

impl ExecEvents {
    /// Reads a ring, or a snapshot, from its oldest event on.
    ///
    /// # Errors
    /// The ring has no execution events, or its schema is not known.
    pub fn of_ring(reader: &Reader) -> Result<Self, UnknownSchema> {
        let (info, model) = (reader.info(), reader.schema().ok());
        let dialect = Dialect::of_schema(info.content_type, info.schema_hash, model.as_deref())?;
        let mut cursor = reader.cursor();
        cursor.seek(Seek::Oldest);
        let follower = Box::new(Follower::new(cursor, WaitStrategy::Sleep(PAUSE)));
        let source = Source::Ring { follower, buffer: Vec::new() };
        let schema_text = reader.schema_text().unwrap_or_default();
        Ok(Self { source, dialect, schema_hash: info.schema_hash, schema_text })
    }

    /// Reads a capture. If it has several rings of execution events, for example because the node was started again,
    /// they are read one after the other.
    ///
    /// # Errors
    /// The capture has no ring of execution events, or the schema of one is not known.
    pub fn of_capture(file: &CaptureFile) -> Result<Self, UnknownSchema> {
        let of_ring = |(at, ring): (u32, &CapturedRing)| {
            let model = ring.schema().ok();
            let dialect = Dialect::of_schema(ring.content_type, ring.schema_hash, model.as_deref())?;
            Ok((dialect, file.events_of_ring(at)))
        };
        let rings = (0..).zip(file.rings()).filter(|(_, ring)| ring.is_exec());
        let mut rest = rings.clone().map(of_ring).collect::<Result<VecDeque<_>, UnknownSchema>>()?;
        let (Some((dialect, events)), Some((_, first))) = (rest.pop_front(), rings.clone().next()) else {
            let other = file.rings().first().map_or((0, [0; 32]), |ring| (ring.content_type, ring.schema_hash));
            return Err(Dialect::from_schema_hash(other.0, other.1).err().unwrap_or_else(UnknownSchema::no_ring));
        };
        let (schema_hash, schema_text) = (first.schema_hash, first.schema_text.clone());
        let source = CaptureSource { events, payload: CapturedPayload::Expired, problems: Vec::new(), rest };
        Ok(Self { source: Source::Capture(Box::new(source)), dialect, schema_hash, schema_text })
    }

    /// Reads an `EVCAP_01` file.
    ///
    /// # Errors
    /// It has no execution events, or their schema is not known.
    pub fn of_eventcap(file: EventcapFile) -> Result<Self, UnknownSchema> {
        let (dialect, (_, schema_hash)) = (file.dialect()?, file.schema());
        let source = Source::File(Box::new(EventcapEvents::new(file)));
        Ok(Self { source, dialect, schema_hash, schema_text: String::new() })
    }

    /// Reads the blocks that an archive has now, by their numbers.
    ///
    /// # Errors
    /// The schema of the first block is not known.
    pub fn of_archive(archive: &BlockArchive) -> Result<Self, UnknownSchema> {
        let numbers = archive.numbers().unwrap_or_default();
        let events = ArchiveEvents::new(archive.clone(), numbers);
        let (dialect, schema_hash) = match events.first() {
            Some(first) => (first.dialect()?, first.schema().1),
            None => (Dialect::TODAY, ExecEvent::schema_hash()),
        };
        let source = Source::Archive(Box::new(events));
        Ok(Self { source, dialect, schema_hash, schema_text: String::new() })
    }

    /// Returns true if what is read is an archive, which has final blocks only, and no news of consensus.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        match &self.source {
            Source::Archive(_) => true,
            Source::File(file) => file.file().bundles().all(|bundle| bundle.block_number.is_some()),
            Source::Ring { .. } | Source::Capture(_) => false,
        }
    }

    /// Returns the schema of the events.
    #[must_use]
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Returns the schema's hash.
    #[must_use]
    pub fn schema_hash(&self) -> [u8; 32] {
        self.schema_hash
    }

    /// Returns the schema text that came with the events; empty if none did.
    #[must_use]
    pub fn schema_text(&self) -> &str {
        &self.schema_text
    }

    /// Returns what was found wrong with the files so far, a line each. In place of what cannot be read comes a gap.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        match &self.source {
            Source::Ring { .. } => &[],
            Source::Capture(capture) if capture.problems.is_empty() => capture.events.problems(),
            Source::Capture(capture) => &capture.problems,
            Source::File(file) => &file.problems,
            Source::Archive(archive) => &archive.problems,
        }
    }

    /// Returns the next event, or what stands in its place. Waits for it until `deadline`, if it is one of a live ring.
    pub fn next_until(&mut self, deadline: Instant) -> NextEvent<'_> {
        match &mut self.source {
            Source::Ring { follower, buffer } => {
                match follower.next_timeout(deadline.saturating_duration_since(Instant::now())) {
                    Followed::Event(event) => {
                        NextEvent::Event(event, EventPayload(Unread::InRing(follower.cursor(), event, buffer)))
                    }
                    Followed::Gap(gap) => NextEvent::Gap(gap),
                    Followed::TimedOut => NextEvent::TimedOut,
                    Followed::Ended => NextEvent::Ended,
                }
            }
            Source::Capture(capture) => match capture.events.next() {
                Some(record) => capture.item(record),
                None => match capture.next_ring() {
                    Some(dialect) => {
                        self.dialect = dialect;
                        NextEvent::NewRing
                    }
                    None => NextEvent::Ended,
                },
            },
            Source::File(file) => stored(file.next()),
            Source::Archive(archive) => stored(archive.next()),
        }
    }

    /// [`Self::next_until`], of what does not wait.
    pub fn next_timeout(&mut self, timeout: Duration) -> NextEvent<'_> {
        self.next_until(Instant::now() + timeout)
    }

    /// Goes on with the ring of the same name that was made after this one had ended, from its oldest event on. Returns
    /// `None` if there is none yet, or if this is no ring.
    ///
    /// # Errors
    /// The ring has no execution events, or their schema is not known.
    pub fn reopen(&mut self) -> Option<Result<(), UnknownSchema>> {
        let next = self.follower()?.cursor().reader().reopen().ok().flatten()?;
        Some(Self::of_ring(&next).map(|next| *self = next))
    }

    /// Returns the position in the ring, if this is one.
    pub(crate) fn follower(&mut self) -> Option<&mut Follower> {
        match &mut self.source {
            Source::Ring { follower, .. } => Some(follower),
            _ => None,
        }
    }

    /// Begins with a block of this number, or the next one, if this is an archive. Returns false if it is not.
    pub(crate) fn begin_at(&mut self, number: u64) -> bool {
        let Source::Archive(archive) = &mut self.source else { return false };
        archive.begin_at(number);
        true
    }
}

impl CaptureSource {
    fn item(&mut self, record: CapturedRecord) -> NextEvent<'_> {
        match record.content {
            CapturedContent::Event { descriptor, payload } => {
                self.payload = payload;
                let read = match &self.payload {
                    CapturedPayload::Valid(bytes) => PayloadRead::Valid(bytes),
                    CapturedPayload::Malformed => PayloadRead::Malformed,
                    _ => PayloadRead::Expired,
                };
                NextEvent::Event(descriptor, EventPayload(Unread::Read(read)))
            }
            CapturedContent::Gap { first_seqno, count, cause } => NextEvent::Gap(Gap { first_seqno, count, cause }),
        }
    }

    /// Goes on with the next ring. Returns its schema.
    fn next_ring(&mut self) -> Option<Dialect> {
        let (dialect, events) = self.rest.pop_front()?;
        let read = std::mem::replace(&mut self.events, events);
        let new = read.problems().iter().filter(|problem| !self.problems.contains(problem));
        let new: Vec<String> = new.cloned().collect();
        self.problems.extend(new);
        Some(dialect)
    }
}

fn stored(next: Option<Stored<'_>>) -> NextEvent<'_> {
    match next {
        Some(Stored::Event(event, payload)) => {
            NextEvent::Event(event, EventPayload(Unread::Read(PayloadRead::Valid(payload))))
        }
        Some(Stored::Gap(gap)) => NextEvent::Gap(gap),
        Some(Stored::NewRing) => NextEvent::NewRing,
        None => NextEvent::Ended,
    }
}

/// Reads the events of an `EVCAP_01` file, or of a directory that is an archive of blocks.
///
/// # Errors
/// It can be neither, or cannot be read; the inner error says that its events are not known.
pub fn stored_events(path: &Path) -> Result<Result<ExecEvents, UnknownSchema>, CaptureError> {
    if path.is_dir() {
        return Ok(ExecEvents::of_archive(&BlockArchive::open(path)?));
    }
    EventcapFile::open(path).map(ExecEvents::of_eventcap)
}

/// Returns true if [`stored_events`] reads it: a directory, or a file that begins with `EVCAP_01`.
#[must_use]
pub fn is_stored(path: &Path) -> bool {
    path.is_dir() || EventcapFile::is_one(path)
}
