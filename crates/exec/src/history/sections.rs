//! The header of an EVCAP_01 file, and its sections.
//!
//! Two headers have the same magic, and differ in the word at byte 8. In the first header (SDK 1.1), this word is the
//! offset of the section table. In the second header (archives), this word holds counts, which are no valid offset.

use eventring_capture::{CaptureError, CaptureErrorKind};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

pub(super) const MAGIC: [u8; 8] = *b"EVCAP_01";
pub(super) const SECTION_BYTES: u64 = 128;
/// The largest number of sections. An archive's file has three.
const SECTIONS_MAX: u64 = 1 << 16;
/// The largest content of a section in memory, in bytes.
const CONTENT_MAX: u64 = 1 << 30;

/// Which of the two headers a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventcapHeader {
    /// That of the published SDK 1.1: 32 bytes, with one section table.
    Sdk11,
    /// That of January 2026, which archives of blocks have: section tables of a fixed size.
    Archive,
}

impl fmt::Display for EventcapHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sdk11 => "EVCAP_01 with the header of the SDK 1.1",
            Self::Archive => "EVCAP_01 with the header of January 2026",
        })
    }
}

/// The kind of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SectionKind {
    Schema,
    Bundle,
    SeqnoIndex,
    Other,
}

/// A section of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) kind: SectionKind,
    /// Where its descriptor lies in the file, by which other sections name it.
    pub(super) place: u64,
    pub(super) bytes: [u8; SECTION_BYTES as usize],
}

impl Section {
    pub(super) fn u64_at(&self, at: usize) -> u64 {
        self.bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    pub(super) fn u16_at(&self, at: usize) -> u16 {
        self.u64_at(at) as u16
    }

    /// Reads the content, and unpacks it.
    ///
    /// # Errors
    /// The file is damaged, or cannot be read.
    pub(super) fn content(&self, file: &File) -> Result<Vec<u8>, CaptureError> {
        let (offset, length, stored) = (self.u64_at(16), self.u64_at(24), self.u64_at(32));
        if length > CONTENT_MAX || stored > CONTENT_MAX {
            return Err(damaged(format!(
                "a section has {length} bytes, {stored} of them stored; {CONTENT_MAX} is the most"
            )));
        }
        let compression = self.bytes[2];
        // Whoever does not pack may leave the second length at 0.
        let stored = if compression == 0 { length } else { stored };
        let stored_end = offset.checked_add(stored).filter(|end| *end <= file.metadata().map_or(0, |data| data.len()));
        if stored_end.is_none() {
            return Err(damaged(format!("a section ends after the file: {stored} bytes from byte {offset} on")));
        }
        let mut bytes = vec![0; stored as usize];
        read_exact_at(file, &mut bytes, offset).map_err(|error| CaptureError::io("read it", error))?;
        match compression {
            0 => Ok(bytes),
            // A file without its second length is unpacked to its end.
            1 | 2 => unpacked(&bytes, length),
            other => Err(damaged(format!("a section is packed in the way {other}, expected 0, 1 or 2"))),
        }
    }
}

fn unpacked(packed: &[u8], length: u64) -> Result<Vec<u8>, CaptureError> {
    let failed = |error: io::Error| damaged(format!("a section cannot be unpacked: {error}"));
    let mut content = Vec::new();
    let packed = zstd::Decoder::new(packed).map_err(failed)?;
    packed.take(length + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 != length {
        return Err(damaged(format!("a section has {} bytes, its descriptor says {length}", content.len())));
    }
    Ok(content)
}

pub(super) fn damaged(problem: String) -> CaptureError {
    CaptureError::new(
        CaptureErrorKind::Damaged,
        format!("it is damaged: {problem}; copy it anew from where it was made"),
    )
}

fn read_exact_at(mut file: &File, bytes: &mut [u8], place: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

/// Reads the header and the descriptors of all sections.
///
/// # Errors
/// It is no such file, it is damaged, or cannot be read.
pub(super) fn read_sections(file: &File) -> Result<(EventcapHeader, Vec<Section>), CaptureError> {
    let failed = |error| CaptureError::io("read it", error);
    let file_bytes = file.metadata().map_err(failed)?.len();
    let mut head = [0; 64];
    let read = file_bytes.min(64) as usize;
    read_exact_at(file, &mut head[..read], 0).map_err(failed)?;
    if read < 32 || head[..8] != MAGIC {
        let message = "it does not begin with EVCAP_01; name a file of that kind";
        return Err(CaptureError::new(CaptureErrorKind::NotACapture, message));
    }
    let word = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().unwrap_or(&[0; 8]));
    let (table, table_bytes, count) = (word(8), word(16), word(24));
    let fits = |place: u64, bytes: u64| place.checked_add(bytes).is_some_and(|end| end <= file_bytes);
    if table >= 32 && count <= SECTIONS_MAX && table_bytes >= count * SECTION_BYTES && fits(table, table_bytes) {
        return Ok((EventcapHeader::Sdk11, read_table(file, table, count, EventcapHeader::Sdk11)?));
    }
    let (used, shift, tables) = (word(8) as u32, head[12], u64::from(head[13]));
    let entries = 1_u64.checked_shl(u32::from(shift)).filter(|entries| shift < 17 && *entries * tables <= SECTIONS_MAX);
    let Some(entries) = entries.filter(|entries| u64::from(used) <= entries * tables) else {
        return Err(damaged(format!(
            "its header is neither of the two known: found {:02x?} from byte 8 on",
            &head[8..16]
        )));
    };
    let mut sections = Vec::new();
    for index in 0..tables {
        let mut place = [0; 8];
        read_exact_at(file, &mut place, 64 + 8 * index).map_err(failed)?;
        let place = u64::from_le_bytes(place);
        if !fits(place, entries * SECTION_BYTES) {
            return Err(damaged(format!("section table {index} lies after the end of the file: at byte {place}")));
        }
        sections.extend(read_table(file, place, entries, EventcapHeader::Archive)?);
    }
    Ok((EventcapHeader::Archive, sections))
}

fn read_table(file: &File, place: u64, count: u64, header: EventcapHeader) -> Result<Vec<Section>, CaptureError> {
    let mut table = vec![0; (count * SECTION_BYTES) as usize];
    read_exact_at(file, &mut table, place).map_err(|error| CaptureError::io("read it", error))?;
    let section = |(bytes, place): (&[u8], u64)| {
        let bytes: [u8; SECTION_BYTES as usize] = *bytes.first_chunk()?;
        use SectionKind as K;
        let kinds: &[K] = match header {
            EventcapHeader::Sdk11 => &[K::Other, K::Schema, K::Bundle, K::SeqnoIndex],
            EventcapHeader::Archive => &[K::Schema, K::Bundle, K::SeqnoIndex],
        };
        let code = u16::from_le_bytes([bytes[0], bytes[1]]);
        let kind = *kinds.get(usize::from(code.checked_sub(1)?)).unwrap_or(&K::Other);
        Some(Section { kind, place, bytes })
    };
    let places = (0..).map(|index| place + index * SECTION_BYTES);
    Ok(table.chunks(SECTION_BYTES as usize).zip(places).filter_map(section).collect())
}
