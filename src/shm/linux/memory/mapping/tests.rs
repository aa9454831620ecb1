//! Tests of mappings of all kinds of ring files.

use super::*;
use crate::shm::{MemfdOptions, OwnedRingFile, create_memfd};

const SECTIONS: Sections =
    Sections { header_bytes: 2 << 20, descriptor_bytes: 4 << 20, payload_bytes: 2 << 20, context_bytes: 5000 };

fn ring(sections: Sections) -> (OwnedRingFile, Mapping) {
    let bytes = sections.file_bytes().unwrap();
    create_memfd("test", bytes, &MemfdOptions::default(), |file| Mapping::map(file, sections, MapOptions::writer()))
        .unwrap()
}

fn store(place: NonNull<u8>, offset: usize, byte: u8) {
    // SAFETY: the tests pass an offset that lies within a writable mapping.
    let place = unsafe { place.add(offset) };
    // SAFETY: as above; no other thread uses the byte.
    unsafe { place.write_volatile(byte) };
}

fn load(place: NonNull<u8>, offset: usize) -> u8 {
    // SAFETY: the tests pass places and offsets within a mapping.
    let place = unsafe { place.add(offset) };
    // SAFETY: as above.
    unsafe { place.read_volatile() }
}

#[test]
fn what_runs_over_the_end_of_the_payload_appears_at_its_start() {
    let (_file, map) = ring(SECTIONS);
    let end = map.payload_bytes();
    for i in 0..16 {
        store(map.payload(), end - 8 + i, 0xa0 + u8::try_from(i).unwrap());
    }
    for i in 0..8 {
        assert_eq!(load(map.payload(), i), 0xa8 + u8::try_from(i).unwrap());
    }
    store(map.payload(), 0, 1);
    assert_eq!(load(map.payload(), end), 1);
    store(map.payload(), 2 * end - 1, 2);
    assert_eq!(load(map.payload(), end - 1), 2);
    // The neighbouring sections are unchanged.
    assert_eq!(load(map.descriptors(), map.descriptor_bytes() - 1), 0);
    assert_eq!(load(map.context(), 0), 0);
}

#[test]
fn every_section_is_where_the_file_has_it() {
    let (file, map) = ring(SECTIONS);
    store(map.header(), 0, 1);
    store(map.header(), map.header_bytes() - 1, 2);
    store(map.descriptors(), 0, 3);
    store(map.payload(), 0, 4);
    store(map.payload(), map.payload_bytes(), 5);
    store(map.context(), 0, 6);
    store(map.context(), map.context_bytes() - 1, 7);
    assert_eq!(map.context_bytes(), 5000);
    for (offset, byte) in [(0, 1), ((2 << 20) - 1, 2), (2 << 20, 3), (6 << 20, 5), (8 << 20, 6), ((8 << 20) + 4999, 7)]
    {
        let mut found = [0];
        rustix::io::pread(&file, &mut found, offset).unwrap();
        assert_eq!(found[0], byte, "at {offset}");
    }
    let reader = Mapping::map(&file, SECTIONS, MapOptions::reader()).unwrap();
    assert_eq!(load(reader.context(), 4999), 7);
    assert_eq!(load(reader.payload(), reader.payload_bytes()), 5);
    assert_eq!(reader.header().addr().get() % (2 << 20), 0);
}

#[test]
fn a_file_that_is_short_within_its_last_page_maps_and_a_shorter_one_does_not() {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    let bytes = SECTIONS.payload_offset().unwrap() + SECTIONS.payload_bytes;
    let sections = Sections { context_bytes: 0, ..SECTIONS };
    file.set_len(bytes - 8).unwrap();
    let map = Mapping::map(&file, sections, MapOptions::reader()).unwrap();
    assert_eq!(load(map.payload(), map.payload_bytes() - 1), 0);
    drop(map);
    file.set_len(bytes - 4096).unwrap();
    let error = Mapping::map(&file, sections, MapOptions::reader()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::Truncated);
    assert!(error.to_string().contains("8384512 bytes, its sections need 8388608"), "{error}");
}

#[test]
fn a_descriptor_for_reading_cannot_be_mapped_for_writing() {
    let path = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    path.as_file().set_len(SECTIONS.file_bytes().unwrap()).unwrap();
    let file = std::fs::File::open(path.path()).unwrap();
    let error = Mapping::map(&file, SECTIONS, MapOptions::writer()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
    assert_eq!(error.path(), Some(path.path()));
    Mapping::map(&file, SECTIONS, MapOptions { prefault: true, ..MapOptions::reader() }).unwrap();
}

#[test]
fn sizes_beyond_the_address_space_are_an_error() {
    let (file, _map) = ring(SECTIONS);
    for payload_bytes in [1 << 62, (1 << 63) - (6 << 20), !4095] {
        let sections = Sections { payload_bytes, ..SECTIONS };
        let error = Mapping::map(&file, sections, MapOptions::reader()).unwrap_err();
        assert!(matches!(error.kind(), ShmErrorKind::BadSections | ShmErrorKind::Truncated), "{error}");
    }
    // A sparse file can have a length of 2^60 bytes. The address space is too small to map such a file.
    let sparse = tempfile::tempfile_in("/dev/shm").unwrap();
    let sections = Sections { payload_bytes: 1 << 60, ..SECTIONS };
    sparse.set_len(sections.file_bytes().unwrap()).unwrap();
    let error = Mapping::map(&sparse, sections, MapOptions::reader()).unwrap_err();
    assert_eq!(error.kind(), ShmErrorKind::NoSpace, "{error}");
}

#[test]
fn a_dropped_mapping_leaves_nothing_in_the_address_space() {
    let (file, map) = ring(SECTIONS);
    let start = map.header().addr().get();
    // After `drop(map)`, other tests may map their own files at `start`. So `is_mapped` compares the inode, too.
    let inode = rustix::fs::fstat(&file).unwrap().st_ino.to_string();
    let is_mapped = || {
        std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
            let (from, rest) = line.split_once('-').unwrap();
            let to = rest.split(' ').next().unwrap();
            let from = usize::from_str_radix(from, 16).unwrap();
            let to = usize::from_str_radix(to, 16).unwrap();
            line.split_whitespace().nth(4) == Some(&inode) && (from..to).contains(&start)
        })
    };
    assert!(is_mapped());
    drop(map);
    assert!(!is_mapped());
}
