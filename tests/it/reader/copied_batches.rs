//! Batches of events that a cursor copies together have the same events and payloads as events that it reads one by
//! one.

use crate::fixtures::*;
use eventring::reader::EventBatch;
use proptest::prelude::*;

/// The size of the payload buffer of the rings of these tests: the smallest one.
const PAYLOAD_SHIFT: u32 = 21;

fn ring() -> (Recorder, Reader) {
    let builder = Recorder::builder(ContentDescription::new(300, "BATCHES")).anonymous().compact(true);
    let recorder = builder.shifts(15, PAYLOAD_SHIFT).prefault(false).build().unwrap();
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    (recorder, reader)
}

/// An event as the tests compare it: seqno, and the payload or the name of the reason why there is none.
type Seen = (u64, Result<Vec<u8>, &'static str>);

fn seen(seqno: u64, payload: PayloadRead<'_>) -> Seen {
    (
        seqno,
        match payload {
            PayloadRead::Valid(bytes) => Ok(bytes.to_vec()),
            PayloadRead::Expired => Err("expired"),
            PayloadRead::Malformed => Err("malformed"),
        },
    )
}

fn one_by_one(mut cursor: Cursor) -> Vec<Seen> {
    let (mut all, mut buffer) = (Vec::new(), Vec::new());
    loop {
        match cursor.next() {
            Next::Event(event) => all.push(seen(event.seqno, cursor.payload(&event, &mut buffer))),
            Next::Gap(_) => {}
            Next::NotReady => return all,
        }
    }
}

fn in_batches(mut cursor: Cursor, bytes_max: usize) -> Vec<Seen> {
    let (mut all, mut batch) = (Vec::new(), EventBatch::new(bytes_max, u32::MAX));
    loop {
        batch.clear();
        let next = cursor.copy_batch(&mut batch);
        all.extend(batch.descriptors().iter().enumerate().map(|(n, event)| seen(event.seqno, batch.payload(n))));
        if next == Some(Next::NotReady) {
            return all;
        }
    }
}

fn oldest(reader: &Reader) -> Cursor {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    cursor
}

fn payload(n: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (n * 31 + i * 7) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_batch_has_the_events_that_single_reads_have(
        sizes in prop::collection::vec(prop_oneof![0..200_usize, 0..70_000_usize], 1..300),
        bytes_max in 1..200_000_usize,
    ) {
        let (recorder, reader) = ring();
        for (n, bytes) in sizes.iter().enumerate() {
            prop_assert_ne!(recorder.record(2, [0; 4], &payload(n, *bytes)), 0);
        }
        let expected = one_by_one(oldest(&reader));
        prop_assert_eq!(in_batches(oldest(&reader), bytes_max), expected);
    }
}

#[test]
fn payloads_that_have_expired_are_marked_and_their_events_are_there() {
    let (recorder, reader) = ring();
    for n in 0..200 {
        recorder.record(2, [0; 4], &payload(n, 30_000));
    }
    let seen = in_batches(oldest(&reader), 1 << 20);
    assert_eq!(seen, one_by_one(oldest(&reader)));
    let expired = seen.iter().filter(|(_, payload)| *payload == Err("expired")).count();
    assert!(expired > 100 && expired < 150, "{expired}");
}

#[test]
fn a_payload_that_is_too_large_for_the_batch_is_left_out() {
    let (recorder, reader) = ring();
    for bytes in [100, 101, 0, 100] {
        recorder.record(2, [0; 4], &vec![7; bytes]);
    }
    let mut batch = EventBatch::new(1 << 20, 100);
    assert_eq!(oldest(&reader).copy_batch(&mut batch), Some(Next::NotReady));
    let left_out: Vec<bool> = (0..batch.len()).map(|n| batch.is_left_out(n)).collect();
    assert_eq!(left_out, [false, true, false, false]);
    assert_eq!(batch.payload(1), PayloadRead::Expired);
    assert_eq!(batch.payload(2), PayloadRead::Valid(&[]));
    assert_eq!(batch.payload(3), PayloadRead::Valid(&[7; 100]));
}

#[test]
fn batches_that_are_copied_beside_fast_writers_have_no_torn_payload_and_every_seqno_is_accounted_for() {
    const EVENTS_PER_WRITER: u64 = 300_000;
    let (recorder, reader) = ring();
    let is_over = AtomicBool::new(false);
    let (read, missing, valid) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer: u64| {
                let recorder = &recorder;
                scope.spawn(move || {
                    for n in 0..EVENTS_PER_WRITER {
                        let value = (n << 2 | writer).to_le_bytes();
                        let bytes = value.repeat(1 + (n % 40) as usize);
                        recorder.record(2, [u64::from_le_bytes(value), 0, 0, 0], &bytes);
                    }
                })
            })
            .collect();
        let reading = scope.spawn(|| {
            let (mut cursor, mut batch) = (oldest(&reader), EventBatch::new(1 << 18, u32::MAX));
            let (mut read, mut missing, mut valid) = (0, 0, 0);
            loop {
                let ends = is_over.load(Ordering::Acquire);
                batch.clear();
                let next = cursor.copy_batch(&mut batch);
                read += batch.len() as u64;
                for (n, event) in batch.descriptors().iter().enumerate() {
                    if let PayloadRead::Valid(bytes) = batch.payload(n) {
                        valid += 1;
                        let (words, rest) = bytes.as_chunks::<8>();
                        assert!(rest.is_empty() && words.len() as u64 == 1 + (event.content_ext[0] >> 2) % 40);
                        assert!(words.iter().all(|word| u64::from_le_bytes(*word) == event.content_ext[0]), "torn");
                    }
                }
                match next {
                    Some(Next::Gap(gap)) => {
                        assert_ne!(gap.cause, GapCause::NeverCommitted);
                        missing += gap.count;
                    }
                    Some(Next::NotReady) if ends => return (read, missing, valid),
                    _ => {}
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Release);
        reading.join().unwrap()
    });
    let last_seqno = reader.info().last_seqno;
    assert_eq!(read + missing, last_seqno);
    assert!(last_seqno >= 3 * EVENTS_PER_WRITER && valid > 0, "{last_seqno} {valid}");
}
