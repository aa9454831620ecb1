//! A small ring file with given events: the content of a snapshot.

use super::super::error::ReaderError;
use super::super::handle::Reader;
use super::super::info::RingState;
use super::collect::Collected;
use super::starts::SnapshotStarts;
use crate::clock::Clock;
use crate::layout::header::{self, FixedHeader};
use crate::layout::limits::{
    DESCRIPTOR_BYTES, DESCRIPTOR_SHIFTS, DESCRIPTOR_WORDS, HEADER_SECTION_BYTES, PAYLOAD_SHIFTS,
};
use crate::layout::start_table::TAG_WORD;
use crate::layout::{Descriptor, Geometry, extension as ext};
use crate::schema::ExtWordKind;
use std::io::{self, Write};
use std::ops::Range;

/// The size of the pieces in which zeros are written.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The parts of the header's extension that a snapshot copies from its ring. They describe the events and their writer.
/// State, window and chunks are not copied, because they belong to a live ring, and holes are not, because a snapshot
/// has none. The words about shards tell that the snapshot is one shard of several. The names and the schema text are
/// copied separately.
const KEPT: [Range<usize>; 6] = [
    ext::WRITER_PID..ext::STATE,
    ext::SHARD_INDEX..ext::SHARD_COUNT + 8,
    ext::WRITER_TIME_NAMESPACE..ext::WRITER_TIME_NAMESPACE + 8,
    ext::SHARD_GROUP..ext::SHARD_GROUP + 8,
    ext::CLOCK..ext::CLOCK_TICKS_PER_SECOND + 8,
    ext::COUNT_REFUSED_CLAIMS..ext::COUNT_FOREIGN_EVENTS + 8,
];

/// Events, and the header that will precede them.
pub(super) struct Image<'r> {
    reader: &'r Reader,
    collected: Collected,
    geometry: Geometry,
    starts: Option<SnapshotStarts>,
    /// The time at which the events had been collected.
    taken_epoch_nanos: u64,
}

impl<'r> Image<'r> {
    /// Makes the smallest ring for the events that were collected from `reader`. Its sizes are within the limits that
    /// the original C implementation sets.
    pub(super) fn new(reader: &'r Reader, collected: Collected) -> Result<Self, ReaderError> {
        let capacity = collected.seqnos.events().next_power_of_two().max(1 << DESCRIPTOR_SHIFTS.start());
        let payload_bytes = collected.payloads.bytes().next_power_of_two().max(1 << PAYLOAD_SHIFTS.start());
        let context_bytes = reader.info().geometry.context_area_bytes();
        let geometry =
            Geometry::new(capacity, payload_bytes, context_bytes).map_err(|error| ReaderError::bad_header(&error))?;
        let starts = SnapshotStarts::new(reader, &collected.seqnos);
        Ok(Self { reader, collected, geometry, starts, taken_epoch_nanos: Clock::global().now_epoch_nanos() })
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(super) fn collected(&self) -> &Collected {
        &self.collected
    }

    /// Writes the header section, the descriptors, the payloads and the context area.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.header())?;
        self.write_descriptors(out)?;
        self.collected.payloads.read(1, |piece| out.write_all(piece))?;
        write_zeros(out, self.geometry.payload_buf_bytes() - self.collected.payloads.bytes())?;
        self.write_context(out)
    }

    fn header(&self) -> Vec<u8> {
        let info = self.reader.info();
        let mut section = vec![0; HEADER_SECTION_BYTES as usize];
        let fixed = FixedHeader {
            content_type: info.content_type,
            schema_hash: info.schema_hash,
            descriptor_capacity: self.geometry.descriptor_capacity(),
            payload_buf_bytes: self.geometry.payload_buf_bytes(),
            context_area_bytes: self.geometry.context_area_bytes(),
        };
        section[..64].copy_from_slice(&fixed.encode());
        put(&mut section, header::LAST_SEQNO, self.collected.seqnos.events());
        put(&mut section, header::NEXT_PAYLOAD_BYTE, self.collected.payloads.bytes());
        if info.extension.is_some() || self.collected.lost > 0 {
            self.extension(&mut section);
        }
        section
    }

    fn extension(&self, section: &mut [u8]) {
        if self.reader.info().extension.is_some() {
            for range in KEPT {
                self.reader.copy_header(range.start, &mut section[range]);
            }
            for (offset, bytes) in
                [(ext::PROGRAM_NAME, ext::PROGRAM_NAME_BYTES), (ext::CONTENT_NAME, ext::CONTENT_NAME_BYTES)]
            {
                self.reader.copy_header(offset, &mut section[offset..offset + bytes]);
            }
        }
        put(section, ext::MAGIC_OFFSET, ext::MAGIC);
        put(section, ext::VERSION_OFFSET, ext::VERSION);
        put(section, ext::STATE, ext::STATE_ENDED);
        put(section, ext::WINDOW_INCR, self.geometry.window_incr_bytes());
        // If the ring is itself a snapshot, events that are missing in it are missing in the new snapshot, too.
        let of_ring = self.reader.info().extension;
        let lost_before = of_ring.as_ref().map_or(0, |extension| extension.snapshot_lost);
        put(section, ext::COUNT_SNAPSHOT_LOST, lost_before.saturating_add(self.collected.lost));
        let taken_before = of_ring.map_or(0, |extension| extension.snapshot_epoch_nanos);
        let is_saved = self.reader.state() == RingState::Saved;
        put(section, ext::SNAPSHOT_EPOCH_NANOS, if is_saved { taken_before } else { self.taken_epoch_nanos });
        if let Some(text) = self.reader.schema_text() {
            section[ext::SCHEMA_TEXT_START..ext::SCHEMA_TEXT_START + text.len()].copy_from_slice(text.as_bytes());
            put(section, ext::SCHEMA_TEXT_OFFSET, ext::SCHEMA_TEXT_START as u64);
            put(section, ext::SCHEMA_TEXT_BYTES, text.len() as u64);
        }
    }

    fn write_descriptors(&mut self, out: &mut impl Write) -> io::Result<()> {
        let words = self.reader.ext_words();
        let seqnos = words.iter().filter(|(_, word)| word.kind() == ExtWordKind::Seqno).map(|(index, _)| index);
        let seqnos: Vec<usize> = seqnos.collect();
        let Collected { descriptors, seqnos: numbers, .. } = &mut self.collected;
        let starts = self.starts.as_ref();
        let mut number = 0;
        descriptors.read(DESCRIPTOR_BYTES as usize, |piece| {
            let (words, _) = piece.as_chunks::<8>();
            for words in words.as_chunks::<DESCRIPTOR_WORDS>().0 {
                number += 1;
                let mut renumbered =
                    Descriptor { seqno: number, ..Descriptor::from_words(words.map(u64::from_le_bytes)) };
                for index in &seqnos {
                    let named = renumbered.content_ext[*index];
                    renumbered.content_ext[*index] = match (numbers.renumber(named), starts) {
                        (0, Some(starts)) if *index == TAG_WORD => starts.tag(named),
                        (number, _) => number,
                    };
                }
                renumbered.to_words().into_iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
            }
            Ok(())
        })?;
        write_zeros(out, self.geometry.descriptor_section_bytes() - number * DESCRIPTOR_BYTES)
    }

    fn write_context(&self, out: &mut impl Write) -> io::Result<()> {
        let bytes = self.geometry.context_area_bytes();
        let mut piece = vec![0; ZEROS.len()];
        let table = self.starts.as_ref().map_or(&[][..], SnapshotStarts::table);
        out.write_all(table)?;
        let mut offset = table.len() as u64;
        while offset < bytes {
            // At most the length of `piece`.
            let piece = &mut piece[..(bytes - offset).min(ZEROS.len() as u64) as usize];
            if !self.reader.read_context(offset, piece) {
                return Err(io::Error::other("the context area has changed its size"));
            }
            out.write_all(piece)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

fn put(section: &mut [u8], offset: usize, value: u64) {
    section[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

fn write_zeros(out: &mut impl Write, mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        // At most the length of the array.
        let now = bytes.min(ZEROS.len() as u64) as usize;
        out.write_all(&ZEROS[..now])?;
        bytes -= now as u64;
    }
    Ok(())
}
