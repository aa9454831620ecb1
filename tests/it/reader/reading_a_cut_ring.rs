//! Somebody truncates the file of a live ring while a reader has it open. The pages beyond the file's new end read as
//! zeros. The reader never returns these zeros as a recorded payload.

use crate::fixtures::*;

const PAYLOAD: [u8; 64] = [0xaa; 64];

/// Makes a ring in a folder of its own.
fn ring() -> (TempDir, PathBuf, Recorder) {
    let place = directory();
    let path = place.path().join("cut");
    let builder = Recorder::builder(ContentDescription::new(300, "SHOP")).config(path.to_str().unwrap());
    let recorder = builder.shifts(16, 27).prefault(false).build().unwrap();
    (place, path, recorder)
}

#[test]
fn payloads_beyond_the_new_end_are_expired_and_never_zeros() {
    let (_place, path, recorder) = ring();
    let record = |events: u64| (0..events).for_each(|n| assert!(recorder.record(2, [n; 4], &PAYLOAD) > 0));
    record(1000);
    let reader = Reader::open(&path).unwrap();
    let mut cursor = reader.cursor();
    cursor.seek(eventring::reader::Seek::Oldest);
    let (mut valid, mut expired, mut buffer) = (0, 0, Vec::new());
    let mut read = |cursor: &mut eventring::reader::Cursor, until: u64| {
        while cursor.next_seqno() <= until {
            let Next::Event(event) = cursor.next() else { break };
            match cursor.payload(&event, &mut buffer) {
                PayloadRead::Valid(bytes) => {
                    assert_eq!(bytes, PAYLOAD, "seqno {}", event.seqno);
                    valid += 1;
                }
                PayloadRead::Expired => expired += 1,
                PayloadRead::Malformed => panic!("{event:?}"),
            }
        }
        (valid, expired)
    };
    assert_eq!(read(&mut cursor, 500), (500, 0));
    // The file now ends after the descriptors, so the whole payload buffer is gone.
    let geometry = recorder.geometry();
    let payloads_at = (2 << 20) + geometry.descriptor_section_bytes();
    File::options().write(true).open(&path).unwrap().set_len(payloads_at).unwrap();
    record(1000);
    assert_eq!(read(&mut cursor, 2000), (500, 1500));
    assert!(reader.was_truncated());
}

#[test]
fn a_writer_whose_descriptors_are_gone_does_not_search_all_of_them_for_each_event() {
    let (_place, path, recorder) = ring();
    // These events bring the ring into its second lap. Then the file is cut, and all slots read as zeros. The writer
    // takes each such slot for the slot of a stalled writer and gives the seqno up. But it must not try a whole lap
    // of slots for each event.
    (0..70_000).for_each(|n| assert!(recorder.record(2, [n; 4], &PAYLOAD) > 0));
    File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    let before = recorder.stats().last_seqno;
    (0..1000).for_each(|n| {
        recorder.record(2, [n; 4], &PAYLOAD);
    });
    let tried = recorder.stats().last_seqno - before;
    assert!((1000..100_000).contains(&tried), "{tried}");
    assert!(recorder.was_truncated());
}
