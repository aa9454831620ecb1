//! The tracing feature makes a program's file only a little larger: memory that is zero when the program starts takes
//! no space in the file.

use crate::fixtures::*;

/// Size of the span cells that a program has from its start.
const CELLS_BYTES: u64 = 1 << 20;

/// A section of this program's ELF file.
struct Section {
    is_written_to: bool,
    is_thread_local: bool,
    is_in_file: bool,
    bytes: u64,
}

/// Returns the sections of a 64-bit little-endian ELF file.
fn sections(file: &[u8]) -> Vec<Section> {
    assert_eq!(file[..6], *b"\x7fELF\x02\x01", "an ELF file of 64 bits, little-endian");
    let number = |at: usize, bytes: usize| {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&file[at..at + bytes]);
        u64::from_le_bytes(word)
    };
    let (start, each, count) = (number(0x28, 8) as usize, number(0x3a, 2) as usize, number(0x3c, 2) as usize);
    (0..count)
        .map(|index| {
            let header = start + index * each;
            let (kind, flags) = (number(header + 4, 4), number(header + 8, 8));
            // 3 is SHF_WRITE and SHF_ALLOC, and 0x400 is SHF_TLS. The kind 8 is SHT_NOBITS: the section is not in the
            // file.
            let (is_written_to, is_thread_local) = (flags & 3 == 3, flags & 0x400 != 0);
            Section { is_written_to, is_thread_local, is_in_file: kind != 8, bytes: number(header + 0x20, 8) }
        })
        .collect()
}

#[test]
fn the_cells_of_spans_are_in_no_file() {
    alone!();
    // The test records a span, so that the linker puts the span cells into this program.
    let builder = PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(13).prefault(false);
    let recorder = builder.build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || drop(tracing::info_span!("one")));
    assert!(recorder.stats().shards[0].last_seqno > 1);

    let file = std::fs::read("/proc/self/exe").unwrap();
    let sections = sections(&file);
    let largest = |is_in_file: bool| {
        let wanted =
            |section: &&Section| section.is_written_to && !section.is_thread_local && section.is_in_file == is_in_file;
        sections.iter().filter(wanted).map(|section| section.bytes).max()
    };
    // This is the control: the cells are somewhere in memory.
    assert!(largest(false) >= Some(CELLS_BYTES), "zeroed memory: {:?}", largest(false));
    assert!(largest(true) < Some(CELLS_BYTES), "in the file: {:?} bytes", largest(true));
}
