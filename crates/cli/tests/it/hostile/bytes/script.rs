//! A small valid ring, and changes to it. If only a few bytes of a ring are changed, the ring passes a reader's first
//! checks, and so reaches the code after these checks.

use eventring::internal::layout::descriptor::{
    WORD_PAYLOAD_OFFSET, WORD_SEQNO, WORD_TYPE_AND_SIZE, pack_type_and_size,
};
use eventring::internal::layout::extension as ext;
use eventring::internal::layout::header;
use eventring::internal::layout::header::FixedHeader;
use eventring::internal::layout::limits::HEADER_SECTION_BYTES;
use eventring::internal::layout::start_table as table;

const CAPACITY: usize = 64;
const PAYLOAD_BYTES: usize = 4096;
const CONTEXT_BYTES: usize = 8192;
const HEADER_BYTES: usize = HEADER_SECTION_BYTES as usize;
/// Seqno of the last event, in the ring's second lap.
const LAST_SEQNO: u64 = 100;
/// The upper limit of the file's length.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Makes the image of a ring file: the valid ring of `good`, changed by `script`.
///
/// The first byte of the script chooses the content type, and by its highest bit whether the ring has a block table.
/// The rest is a sequence of changes. Each change has a section (0 header, 1 descriptors, 2 payload, 3 context, 4
/// schema text, 5 file length), an offset in that section (u16), a count (u8), and as many new bytes as the count says.
pub fn image(script: &[u8]) -> Vec<u8> {
    let (kind, mut rest) = script.split_first().map_or((0, script), |(kind, rest)| (*kind, rest));
    let mut image = good(1 + u16::from(kind % 4));
    if kind & 0x80 != 0 {
        add_block_table(&mut image);
    }
    while let [section, low, high, count, tail @ ..] = rest {
        let offset = usize::from(u16::from_le_bytes([*low, *high]));
        let count = usize::from(*count).min(tail.len());
        let (bytes, next) = tail.split_at(count);
        rest = next;
        let start = match section % 6 {
            0 => 0,
            1 => HEADER_BYTES,
            2 => HEADER_BYTES + CAPACITY * 64,
            3 => HEADER_BYTES + CAPACITY * 64 + PAYLOAD_BYTES,
            4 => ext::SCHEMA_TEXT_START,
            _ => {
                let mut length = [0; 8];
                length[..count.min(8)].copy_from_slice(&bytes[..count.min(8)]);
                image.resize((u64::from_le_bytes(length) % FILE_BYTES_MAX) as usize, 0);
                continue;
            }
        } + offset;
        if let Some(place) = image.get_mut(start..start + count) {
            place.copy_from_slice(bytes);
        }
    }
    image
}

fn good(content_type: u16) -> Vec<u8> {
    let mut image = vec![0; HEADER_BYTES + CAPACITY * 64 + PAYLOAD_BYTES + CONTEXT_BYTES];
    let fixed = FixedHeader {
        content_type,
        schema_hash: [0; 32],
        descriptor_capacity: CAPACITY as u64,
        payload_buf_bytes: PAYLOAD_BYTES as u64,
        context_area_bytes: CONTEXT_BYTES as u64,
    };
    image[..64].copy_from_slice(&fixed.encode());
    let mut put = |offset: usize, word: u64| image[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    put(header::LAST_SEQNO, LAST_SEQNO);
    put(header::NEXT_PAYLOAD_BYTE, LAST_SEQNO * 32);
    put(ext::MAGIC_OFFSET, ext::MAGIC);
    put(ext::VERSION_OFFSET, ext::VERSION);
    put(ext::STATE, ext::STATE_ENDED);
    put(ext::WINDOW_INCR, PAYLOAD_BYTES as u64 / 8);
    put(ext::HOLES, 96);
    for seqno in (LAST_SEQNO - CAPACITY as u64 + 1..=LAST_SEQNO).filter(|seqno| *seqno != 96) {
        let slot = HEADER_BYTES + (seqno as usize - 1) % CAPACITY * 64;
        put(slot + WORD_SEQNO * 8, seqno);
        put(slot + WORD_TYPE_AND_SIZE * 8, pack_type_and_size(2 + (seqno % 20) as u16, (seqno % 32) as u32));
        put(slot + WORD_PAYLOAD_OFFSET * 8, (seqno - 1) * 32);
        put(slot + 32, 70);
    }
    image
}

/// Gives the ring a larger context area with a block table. The table describes the block of all events, and another
/// one.
fn add_block_table(image: &mut Vec<u8>) {
    let context = HEADER_BYTES + CAPACITY * 64 + PAYLOAD_BYTES;
    image.resize(context + (1 << table::CONTEXT_SHIFT), 0);
    let mut put = |offset: usize, word: u64| image[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    put(header::CONTEXT_AREA_SIZE, 1 << table::CONTEXT_SHIFT);
    put(context + table::MAGIC_OFFSET as usize, table::MAGIC);
    put(context + table::STARTED_OFFSET as usize, 2);
    for (entry, tag) in [(0, 70), (1, 99)] {
        put(context + table::tag_offset(entry) as usize, tag);
        put(context + table::record_offset(entry, 0) as usize, tag);
    }
}
