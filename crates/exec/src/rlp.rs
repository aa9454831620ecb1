//! The encoding of lists of byte strings that Ethereum hashes (RLP: the yellow paper, appendix B).

use tiny_keccak::{Hasher as _, Keccak};

/// The entries of a list.
#[derive(Default)]
pub(crate) struct RlpList(Vec<u8>);

impl RlpList {
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        if !matches!(bytes, [small] if *small < 0x80) {
            put_head(&mut self.0, 0x80, bytes.len());
        }
        self.0.extend(bytes);
        self
    }

    /// Adds a number, of which these are the bytes, the highest first.
    pub(crate) fn number(self, bytes: &[u8]) -> Self {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        self.bytes(&bytes[zeros..])
    }

    pub(crate) fn hash(self) -> [u8; 32] {
        let mut head = Vec::new();
        put_head(&mut head, 0xc0, self.0.len());
        keccak(&[&head, &self.0])
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, length: usize) {
    if length < 56 {
        return out.push(kind + length as u8);
    }
    let zeros = length.leading_zeros() as usize / 8;
    let length = &length.to_be_bytes()[zeros..];
    out.push(kind + 55 + length.len() as u8);
    out.extend(length);
}

/// Returns the Keccak-256 of the parts together.
pub(crate) fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = [0; 32];
    let mut keccak = Keccak::v256();
    parts.iter().for_each(|part| keccak.update(part));
    keccak.finalize(&mut hash);
    hash
}
