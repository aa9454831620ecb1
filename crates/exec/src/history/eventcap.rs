//! An EVCAP_01 file.

use super::sections::{EventcapHeader, MAGIC, Section, SectionKind, damaged, read_sections};
use crate::dialect::{Dialect, UnknownSchema};
use eventring::internal::shm;
use eventring::reader::{Descriptor, Gap, GapCause};
use eventring::schema::SchemaModel;
use eventring_capture::CaptureError;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The size of a descriptor, to which events are aligned.
pub(super) const EVENT_ALIGN: usize = 64;

/// A file with bundles of events that the published event system has written: magic `EVCAP_01`. Both of its headers are
/// read. The layout is the published one; nothing of a file is trusted.
#[derive(Debug)]
pub struct EventcapFile {
    path: PathBuf,
    /// Behind a lock, because reading moves its position.
    file: Mutex<File>,
    header: EventcapHeader,
    bundles: Vec<(Bundle, Section)>,
    sections: Vec<Section>,
}

/// Events that follow each other, as a file stores them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bundle {
    /// The number of events that it says it has.
    pub event_count: u64,
    /// The seqno of its first event.
    pub start_seqno: u64,
    /// The number of the block whose events these are; `None` if they are of no single block.
    pub block_number: Option<u64>,
    /// The content type of the ring that the events came from.
    pub content_type: u16,
    /// The schema hash of that ring.
    pub schema_hash: [u8; 32],
    /// True if the events are packed with zstd.
    pub is_packed: bool,
}

impl EventcapFile {
    /// Returns true if the file begins as one of these.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut magic = [0; 8];
        shm::open_file(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == MAGIC)
    }

    /// Opens a file, and reads the descriptors of its sections.
    ///
    /// # Errors
    /// It cannot be read, is no such file, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        Self::open_at(path).map_err(|error| error.at(path))
    }

    fn open_at(path: &Path) -> Result<Self, CaptureError> {
        let file = shm::open_file(path).map_err(|error| CaptureError::io("open it", error))?;
        Self::from_file(file, path)
    }

    /// Reads the descriptors of the sections of an open file. `path` is its name in errors.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_file(file: File, path: &Path) -> Result<Self, CaptureError> {
        let (header, sections) = read_sections(&file)?;
        let schemas: Vec<&Section> = sections.iter().filter(|section| section.kind == SectionKind::Schema).collect();
        let mut bundles = Vec::new();
        for section in sections.iter().filter(|section| section.kind == SectionKind::Bundle) {
            let (schema, count_at, number_at) = match header {
                EventcapHeader::Sdk11 => (schemas.first(), 40, None),
                EventcapHeader::Archive => {
                    let place = section.u64_at(40);
                    (schemas.iter().find(|schema| schema.place == place), 48, Some(80))
                }
            };
            let Some(schema) = schema else { return Err(damaged("a bundle of events names no schema".to_owned())) };
            let bundle = Bundle {
                event_count: section.u64_at(count_at),
                start_seqno: section.u64_at(count_at + 8),
                block_number: number_at.map(|at| section.u64_at(at)).filter(|number| *number != 0),
                content_type: schema.u16_at(46),
                schema_hash: *schema.bytes[48..].first_chunk().unwrap_or(&[0; 32]),
                is_packed: section.bytes[2] != 0,
            };
            bundles.push((bundle, *section));
        }
        bundles.sort_by_key(|(bundle, _)| bundle.start_seqno);
        Ok(Self { path: path.to_path_buf(), file: Mutex::new(file), header, bundles, sections })
    }

    /// Returns true unless the file says that it holds other blocks only.
    pub(crate) fn may_be_block(&self, number: u64) -> bool {
        self.bundles.iter().any(|(bundle, _)| bundle.block_number.is_none_or(|of| of == number))
    }

    /// Returns which of the two headers the file has.
    #[must_use]
    pub fn header(&self) -> EventcapHeader {
        self.header
    }

    /// Returns the bundles of events, by their first seqno.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &Bundle> {
        self.bundles.iter().map(|(bundle, _)| bundle)
    }

    /// Reads the events of a bundle; `index` counts from 0.
    ///
    /// # Errors
    /// There is no such bundle, it is damaged, or cannot be read.
    pub fn read(&self, index: usize) -> Result<BundleEvents, CaptureError> {
        self.read_at(index).map_err(|error| error.at(&self.path))
    }

    fn read_at(&self, index: usize) -> Result<BundleEvents, CaptureError> {
        let Some((bundle, section)) = self.bundles.get(index) else {
            return Err(damaged(format!("it has {} bundles of events, and none of index {index}", self.bundles.len())));
        };
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let content = section.content(&file)?;
        let index_place = section.u64_at(if self.header == EventcapHeader::Sdk11 { 64 } else { 72 });
        let is_index = |other: &&Section| other.kind == SectionKind::SeqnoIndex && other.place == index_place;
        let places = match self.sections.iter().find(is_index) {
            Some(index) => {
                let words = index.content(&file)?;
                Some(
                    words
                        .chunks_exact(8)
                        .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
                        .collect::<Vec<u64>>(),
                )
            }
            None => None,
        };
        BundleEvents::parse(content, bundle, places.as_deref())
    }

    /// Returns the content type and the schema hash of the first bundle; zeros without bundles.
    pub(crate) fn schema(&self) -> (u16, [u8; 32]) {
        self.bundles().next().map_or((0, [0; 32]), |bundle| (bundle.content_type, bundle.schema_hash))
    }

    /// Returns the schema of the events.
    ///
    /// # Errors
    /// These are no execution events, nobody knows the schema, or the file has no events.
    pub fn dialect(&self) -> Result<Dialect, UnknownSchema> {
        let (content_type, schema_hash) = self.schema();
        let model = SchemaModel::of_ring(content_type, schema_hash, None).ok();
        Dialect::of_schema(content_type, schema_hash, model.as_deref())
    }
}

/// The events of a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BundleEvents {
    content: Vec<u8>,
    events: Vec<(Descriptor, Range<usize>)>,
}

impl BundleEvents {
    /// Finds the events of a bundle: by its index, if it has one, else one after the other.
    pub(super) fn parse(content: Vec<u8>, bundle: &Bundle, places: Option<&[u64]>) -> Result<Self, CaptureError> {
        // Each event takes a descriptor at least.
        if bundle.event_count > (content.len() / EVENT_ALIGN) as u64 {
            let problem = format!("a bundle of {} bytes says that it has {} events", content.len(), bundle.event_count);
            return Err(damaged(problem));
        }
        let mut events: Vec<(Descriptor, Range<usize>)> = Vec::with_capacity(bundle.event_count as usize);
        for index in 0..bundle.event_count as usize {
            let place = match (places, events.last()) {
                (Some(places), _) => places.get(index).and_then(|place| usize::try_from(*place).ok()),
                (None, None) => Some(0),
                (None, Some((before, payload))) => next_place(&content, before.seqno, payload.end),
            };
            let event = place.and_then(|place| event_at(&content, place));
            let Some(event) = event else {
                return Err(damaged(format!("event {index} of a bundle of {} is not there", bundle.event_count)));
            };
            events.push(event);
        }
        Ok(Self { content, events })
    }

    /// Returns the events and their payloads, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Descriptor, &[u8])> {
        self.events.iter().map(|(event, payload)| (*event, &self.content[payload.clone()]))
    }

    fn get(&self, index: usize) -> Option<(Descriptor, &[u8])> {
        let (event, payload) = self.events.get(index)?;
        Some((*event, &self.content[payload.clone()]))
    }
}

/// Reads the event at a place of a bundle.
fn event_at(content: &[u8], place: usize) -> Option<(Descriptor, Range<usize>)> {
    let bytes: &[u8; EVENT_ALIGN] = content.get(place..)?.first_chunk()?;
    let word = |at: usize| bytes[8 * at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let event = Descriptor::from_words(std::array::from_fn(word));
    let begin = place + EVENT_ALIGN;
    let end = begin.checked_add(event.payload_size as usize).filter(|end| *end <= content.len())?;
    (event.seqno != 0).then_some((event, begin..end))
}

/// Returns the place of the event after one that ends at `end`. The newer kind of file has the distance to the event
/// before at the end of each; whether it is there is seen from what follows. A distance is not taken for an event,
/// because no event has the type 0.
fn next_place(content: &[u8], seqno: u64, end: usize) -> Option<usize> {
    let without = end.next_multiple_of(EVENT_ALIGN);
    let with_distance = (end.next_multiple_of(8) + 8).next_multiple_of(EVENT_ALIGN);
    let follows = |place: &usize| {
        event_at(content, *place).is_some_and(|(event, _)| event.seqno > seqno && event.event_type != 0)
    };
    [without, with_distance].into_iter().find(follows)
}

/// The events of all bundles of a file, one after the other.
#[derive(Debug)]
pub(crate) struct EventcapEvents {
    file: EventcapFile,
    next_bundle: usize,
    events: BundleEvents,
    next_event: usize,
    /// The seqno that would follow without a gap; 0 before the first event.
    next_seqno: u64,
    pub(crate) problems: Vec<String>,
}

/// The next thing in stored events.
pub(crate) enum Stored<'s> {
    Event(Descriptor, &'s [u8]),
    Gap(Gap),
    NewRing,
}

impl EventcapEvents {
    pub(crate) fn new(file: EventcapFile) -> Self {
        Self {
            file,
            next_bundle: 0,
            events: BundleEvents::default(),
            next_event: 0,
            next_seqno: 0,
            problems: Vec::new(),
        }
    }

    pub(crate) fn file(&self) -> &EventcapFile {
        &self.file
    }

    /// Goes on behind the events of another file.
    pub(super) fn after(self, next_seqno: u64) -> Self {
        Self { next_seqno, ..self }
    }

    pub(super) fn next_seqno(&self) -> u64 {
        self.next_seqno
    }

    /// Returns true if [`Self::next`] returns something.
    pub(super) fn has_more(&self) -> bool {
        self.next_event < self.events.events.len() || self.next_bundle < self.file.bundles.len()
    }

    pub(crate) fn next(&mut self) -> Option<Stored<'_>> {
        while self.next_event >= self.events.events.len() {
            let (bundle, _) = self.file.bundles.get(self.next_bundle)?;
            let (first_seqno, count) = (bundle.start_seqno, bundle.event_count);
            self.next_bundle += 1;
            self.next_event = 0;
            match self.file.read(self.next_bundle - 1) {
                Ok(events) => self.events = events,
                Err(error) => {
                    self.events = BundleEvents::default();
                    self.problems.push(error.to_string());
                    return Some(Stored::Gap(Gap { first_seqno, count, cause: GapCause::Damaged }));
                }
            }
        }
        let seqno = self.events.events[self.next_event].0.seqno;
        let expected = std::mem::replace(&mut self.next_seqno, seqno);
        if expected != 0 && seqno < expected {
            return Some(Stored::NewRing);
        }
        if expected != 0 && seqno > expected {
            // The file of a block leaves out what is not of the block.
            let is_of_block = self.file.bundles[self.next_bundle - 1].0.block_number.is_some();
            let cause = if is_of_block { GapCause::Skipped } else { GapCause::Overwritten };
            return Some(Stored::Gap(Gap { first_seqno: expected, count: seqno - expected, cause }));
        }
        self.next_seqno = seqno.saturating_add(1);
        self.next_event += 1;
        self.events.get(self.next_event - 1).map(|(event, payload)| Stored::Event(event, payload))
    }
}
