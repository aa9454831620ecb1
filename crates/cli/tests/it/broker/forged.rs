//! Batches that no forwarder of this version makes: captures with other bytes, and right checksums.

use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

const FILE_HEADER_BYTES: usize = 48;
const BLOCK_HEADER_BYTES: usize = 120;
const RING: u32 = 1;
const END: u32 = 4;
const INDEX: u32 = 5;

/// Makes a batch of a capture of one ring: gives it the name of a host, and changes the content of the block that
/// describes the ring, and of that with the account.
pub fn batch(capture: &[u8], host: &str, ring: impl Fn(&mut Vec<u8>), account: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = capture[..FILE_HEADER_BYTES].to_vec();
    let mut index = Vec::new();
    let mut rest = &capture[FILE_HEADER_BYTES..];
    loop {
        let (header, after) = rest.split_at(BLOCK_HEADER_BYTES);
        let [kind, stored_bytes, plain_bytes] = [4, 8, 12].map(|at| word(header, at));
        let (stored, after) = after.split_at(stored_bytes as usize);
        rest = after;
        if kind == INDEX {
            let offset = out.len() as u64;
            put_block(&mut out, header, &index);
            let file_bytes = out.len() as u64 + 32;
            [offset, file_bytes, 0].into_iter().for_each(|word| out.extend(word.to_le_bytes()));
            out.extend(b"EVRCEND1");
            return out;
        }
        let is_changed = [RING, END].contains(&kind);
        let mut content = match is_changed && stored_bytes != plain_bytes {
            true => zstd::bulk::decompress(stored, plain_bytes as usize).unwrap(),
            false => stored.to_vec(),
        };
        if kind == RING {
            ring(&mut content);
            content.extend((host.len() as u32).to_le_bytes());
            content.extend(host.as_bytes());
            // The key of the process, no filter, and all span trees.
            content.extend(7_u64.to_le_bytes());
            [0, 1_000_000_u32].into_iter().for_each(|word| content.extend(word.to_le_bytes()));
        } else if kind == END {
            account(&mut content);
        }
        index.extend((out.len() as u64).to_le_bytes());
        let header = match is_changed {
            true => put_block(&mut out, header, &content),
            false => {
                out.extend([header, stored].concat());
                header.to_vec()
            }
        };
        index.extend(header);
    }
}

/// Appends a block that is not compressed. Returns its header.
fn put_block(out: &mut Vec<u8>, header: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    [8, 12].into_iter().for_each(|at| header[at..][..4].copy_from_slice(&(content.len() as u32).to_le_bytes()));
    header[56..64].fill(0);
    let mut hasher = XxHash3_64::new();
    [&header[..], content].into_iter().for_each(|part| hasher.write(part));
    header[56..64].copy_from_slice(&hasher.finish().to_le_bytes());
    out.extend([&header[..], content].concat());
    header
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..][..4].try_into().unwrap())
}
