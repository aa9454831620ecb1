//! Tests of copies to and from shared memory. Every version of the copier must pass them.

use super::copy::Copier;

const MARGIN: usize = 64;

/// Checks copies of every length up to 700 bytes at 17 alignments, and of some larger lengths at one alignment. A copy
/// must write all bytes of its target, and no other bytes.
pub(super) fn every_byte_is_copied_and_no_other(copier: Copier) {
    for bytes in (0..=700).chain([4_095, 4_096, 65_537, (1 << 20) - 1, 1 << 20, (1 << 20) + 33]) {
        let alignments = if bytes > 700 { 1 } else { 17 };
        for at in 0..alignments {
            let source: Vec<u8> = (0..bytes + at).map(|i| (i * 7 + bytes) as u8 | 1).collect();
            let from = &source[at..];
            let expected = |byte: usize| {
                if (MARGIN + at..MARGIN + at + bytes).contains(&byte) { from[byte - MARGIN - at] } else { 0 }
            };
            for write in [true, false] {
                let mut target = vec![0u8; bytes + at + 2 * MARGIN];
                let to = target[MARGIN + at..].as_mut_ptr();
                if write {
                    // SAFETY: `from` has `bytes` bytes. `to` has `bytes` bytes, then a margin. Only this thread uses
                    // them.
                    unsafe { copier.write_shared(to, from.as_ptr(), bytes) };
                } else {
                    // SAFETY: as above.
                    unsafe { copier.read_shared(to, from.as_ptr(), bytes) };
                }
                let wrong = target.iter().enumerate().find(|(byte, value)| **value != expected(*byte));
                assert_eq!(wrong, None, "{bytes} bytes, alignment {at}, write {write}");
            }
        }
    }
}

#[test]
fn every_byte_is_copied_and_no_other_whatever_the_length_and_the_alignment() {
    every_byte_is_copied_and_no_other(Copier::new());
}
