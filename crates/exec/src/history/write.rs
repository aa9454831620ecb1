//! Writing a file of the newer kind: a schema, an index, and one bundle of events.

use super::eventcap::EVENT_ALIGN;
use super::sections::{MAGIC, SECTION_BYTES};
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::reader::Descriptor;
use eventring_capture::{CaptureError, CaptureErrorKind, OutputEntry, ReadFiles};
use std::io::Write as _;
use std::path::Path;

/// Where the section table lies, and where the contents begin.
const TABLE_AT: u64 = 4096;
const CONTENTS_AT: u64 = 8192;
/// The power of two of the entries in the table.
const TABLE_SHIFT: u8 = 2;
/// The level of zstd: events are written once, while they come.
const LEVEL: i32 = 3;

/// Writes the events of a block as an `EVCAP_01` file with the header of January 2026. The file appears at once, whole.
/// `events` are those of the block, with their seqnos in the ring, in ascending order.
///
/// # Errors
/// The file cannot be written, or there are no events.
pub fn write_bundle<P: AsRef<[u8]>>(
    path: &Path,
    schema_hash: [u8; 32],
    block_number: u64,
    events: &[(Descriptor, P)],
) -> Result<u64, CaptureError> {
    let Some((first, _)) = events.first() else {
        return Err(CaptureError::new(CaptureErrorKind::BadOptions, "a bundle needs one event at least").at(path));
    };
    let (content, places) = bundle(events);
    let packed = zstd::bulk::compress(&content, LEVEL);
    let packed = packed.map_err(|error| CaptureError::io_writing("pack it", error).at(path))?;
    let index: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    let index_at = CONTENTS_AT;
    let bundle_at = (index_at + index.len() as u64).next_multiple_of(EVENT_ALIGN as u64);
    let place = |entry: u64| TABLE_AT + entry * SECTION_BYTES;

    let mut schema = section(1, 0, place(0), [0, 0, 0]);
    schema[40..46].copy_from_slice(b"RING01");
    schema[46..48].copy_from_slice(&CONTENT_TYPE_EXEC.to_le_bytes());
    schema[48..80].copy_from_slice(&schema_hash);
    let index_section = section(3, 0, place(1), [index_at, index.len() as u64, index.len() as u64]);
    let mut bundle_section = section(2, 1, place(2), [bundle_at, content.len() as u64, packed.len() as u64]);
    let of_bundle = [place(0), events.len() as u64, first.seqno, 0, place(1), block_number];
    put_words(&mut bundle_section[40..], &of_bundle);

    let mut bytes = vec![0; bundle_at as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
    (bytes[12], bytes[13]) = (TABLE_SHIFT, 1);
    bytes[64..72].copy_from_slice(&TABLE_AT.to_le_bytes());
    for (entry, section) in [(0, schema), (1, index_section), (2, bundle_section)] {
        bytes[place(entry) as usize..][..SECTION_BYTES as usize].copy_from_slice(&section);
    }
    bytes[index_at as usize..][..index.len()].copy_from_slice(&index);
    bytes.extend(&packed);
    let place = OutputEntry::open(path)?;
    let unfinished = place.create_unfinished()?;
    let written = unfinished.file().write_all(&bytes);
    written.map_err(|error| CaptureError::io_writing("write it", error).at(path))?;
    unfinished.publish(true, &ReadFiles::default())?;
    Ok(bytes.len() as u64)
}

/// Returns the content of a bundle, and the places of its events.
fn bundle<P: AsRef<[u8]>>(events: &[(Descriptor, P)]) -> (Vec<u8>, Vec<u64>) {
    let (mut content, mut places) = (Vec::new(), Vec::with_capacity(events.len()));
    for (event, payload) in events {
        content.resize(content.len().next_multiple_of(EVENT_ALIGN), 0);
        let place = content.len() as u64;
        let distance = places.last().map_or(0, |before| place - before);
        places.push(place);
        content.extend(event.to_words().into_iter().flat_map(u64::to_le_bytes));
        content.extend(payload.as_ref());
        content.resize(content.len().next_multiple_of(8), 0);
        content.extend(distance.to_le_bytes());
    }
    (content, places)
}

fn section(kind: u16, compression: u8, place: u64, content: [u64; 3]) -> [u8; SECTION_BYTES as usize] {
    let mut bytes = [0; SECTION_BYTES as usize];
    bytes[..2].copy_from_slice(&kind.to_le_bytes());
    bytes[2] = compression;
    put_words(&mut bytes[8..], &[place]);
    put_words(&mut bytes[16..], &content);
    bytes
}

fn put_words(to: &mut [u8], words: &[u64]) {
    to.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
}
