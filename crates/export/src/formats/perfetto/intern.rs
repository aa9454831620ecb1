//! Interned texts. A text that repeats is written to a packet sequence once, with a number. Later packets of the
//! sequence refer to the number.

use super::fields;
use super::wire::{begin, bytes, end, uint};
use eventring::tracing::IdMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// The largest number of bytes of a text that is interned. A longer text is written each time it occurs.
const TEXT_BYTES_MAX: usize = 256;

/// The number of interned texts at which a sequence forgets all of them and begins anew. This bounds the memory of the
/// writer.
const TEXTS_MAX: usize = 4096;
/// The number of bytes of interned texts at which a sequence does the same.
const TEXTS_BYTES_MAX: usize = 1 << 18;

/// The number of texts that are remembered to have occurred once.
const ONCE_MAX: usize = 2048;

/// A kind of interned text. Each kind has numbers of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Category,
    EventName,
    AnnotationName,
    AnnotationValue,
    CorrelationId,
    /// The file of a source location. Its number never appears in the trace.
    File,
}

/// The interned texts of one packet sequence.
pub(super) struct Interner {
    /// The numbers of the texts, by kind.
    known: [IdMap<Box<str>, u64>; 6],
    /// The numbers of places in the source, by the number of the file and the line.
    sources: IdMap<u64, u64>,
    /// Hashes of texts that have occurred once.
    once: Box<[u64]>,
    texts: usize,
    text_bytes: usize,
    /// The `InternedData` that the next packet must have.
    new: Vec<u8>,
}

impl Interner {
    pub fn new() -> Self {
        Self {
            known: Default::default(),
            sources: IdMap::default(),
            once: vec![0; ONCE_MAX].into(),
            texts: 0,
            text_bytes: 0,
            new: Vec::new(),
        }
    }

    /// Returns the number of a text. Returns `None` if the text should be written itself: it is long, or it occurs for
    /// the first time. Most texts that occur once never occur again, such as log messages with numbers in them.
    pub(super) fn iid(&mut self, kind: Kind, text: &str) -> Option<u64> {
        if let Some(iid) = self.known[kind as usize].get(text) {
            return Some(*iid);
        }
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let field = match kind {
            Kind::Category => fields::EVENT_CATEGORIES,
            Kind::EventName => fields::EVENT_NAMES,
            Kind::AnnotationName => fields::DEBUG_ANNOTATION_NAMES,
            Kind::AnnotationValue => fields::DEBUG_ANNOTATION_STRING_VALUES,
            Kind::CorrelationId => fields::CORRELATION_IDS,
            // Readers name the arguments of a place that is not interned in another way.
            Kind::File => return Some(self.insert(kind, text)),
        };
        // A hasher without a random seed: a capture has one trace, byte for byte.
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one((kind as u8, text));
        let once = &mut self.once[hash as usize % ONCE_MAX];
        if *once != hash {
            *once = hash;
            return None;
        }
        let iid = self.insert(kind, text);
        let entry = begin(&mut self.new, field);
        uint(&mut self.new, fields::INTERNED_IID, iid);
        bytes(&mut self.new, fields::INTERNED_TEXT, text.as_bytes());
        end(&mut self.new, entry);
        Some(iid)
    }

    /// Returns the number of a place in the source. Returns `None` if the name of the file is too long.
    pub(super) fn source(&mut self, file: &str, line: u32) -> Option<u64> {
        let file_iid = self.iid(Kind::File, file)?;
        let place = file_iid << 32 | u64::from(line);
        if let Some(iid) = self.sources.get(&place) {
            return Some(*iid);
        }
        let iid = self.sources.len() as u64 + 1;
        self.sources.insert(place, iid);
        self.texts += 1;
        let entry = begin(&mut self.new, fields::SOURCE_LOCATIONS);
        uint(&mut self.new, fields::INTERNED_IID, iid);
        source_location(&mut self.new, file, line);
        end(&mut self.new, entry);
        Some(iid)
    }

    /// Moves the `InternedData` that is new since the last packet to this packet.
    pub(super) fn move_new_to(&mut self, out: &mut Vec<u8>) {
        if !self.new.is_empty() {
            bytes(out, fields::INTERNED_DATA, &self.new);
            self.new.clear();
        }
    }

    /// Returns true if the sequence should begin anew before the next event.
    pub(super) fn is_full(&self) -> bool {
        self.texts >= TEXTS_MAX || self.text_bytes >= TEXTS_BYTES_MAX
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    fn insert(&mut self, kind: Kind, text: &str) -> u64 {
        let known = &mut self.known[kind as usize];
        let iid = known.len() as u64 + 1;
        known.insert(text.into(), iid);
        self.texts += 1;
        self.text_bytes += text.len();
        iid
    }
}

/// Appends the file and the line of a `SourceLocation`.
pub(super) fn source_location(out: &mut Vec<u8>, file: &str, line: u32) {
    bytes(out, fields::SOURCE_FILE_NAME, file.as_bytes());
    if line > 0 {
        uint(out, fields::SOURCE_LINE_NUMBER, line.into());
    }
}
