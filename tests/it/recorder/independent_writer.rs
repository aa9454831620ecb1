//! This crate's reader reads a file of an independent writer: while that writer lives, after it has overrun the
//! reader, and after it has gone. The writer does not use this crate. It follows the algorithm of the original C
//! implementation (the published C event system whose ring format is `RING01`), by the facts in `docs/FORMAT.md`.

use crate::fixtures::*;
use eventring::schema::test::TestEvent;
use std::os::unix::fs::FileExt as _;

/// A writer of the published format. It uses only the standard library and `flock`.
struct Writer {
    file: File,
    capacity: u64,
    payload_bytes: u64,
    last_seqno: u64,
    next_payload_byte: u64,
    window_start: u64,
    align: u64,
}

const WINDOW_INCR: u64 = 1 << 24;

impl Writer {
    fn create(path: &Path, content_type: u16, schema_hash: &[u8; 32], shifts: (u32, u32), align: u64) -> Self {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let (capacity, payload_bytes) = (1 << shifts.0, 1 << shifts.1);
        file.set_len((2 << 20) + capacity * 64 + payload_bytes).unwrap();
        file.write_all_at(b"RING01", 0).unwrap();
        file.write_all_at(&content_type.to_le_bytes(), 6).unwrap();
        file.write_all_at(schema_hash, 8).unwrap();
        let writer =
            Self { file, capacity, payload_bytes, last_seqno: 0, next_payload_byte: 0, window_start: 0, align };
        writer.put(40, capacity);
        writer.put(48, payload_bytes);
        writer
    }

    fn put(&self, offset: u64, value: u64) {
        self.file.write_all_at(&value.to_le_bytes(), offset).unwrap();
    }

    /// Reserves an event, and writes its payload and all of its descriptor except the seqno. Returns the offset of
    /// the descriptor, and the seqno. The event is committed when the seqno is stored at this offset.
    fn begin(&mut self, event_type: u16, ext: [u64; 4], payload: &[u8]) -> (u64, u64) {
        self.last_seqno += 1;
        self.put(64, self.last_seqno);
        let offset = self.next_payload_byte;
        self.next_payload_byte += (payload.len() as u64).next_multiple_of(self.align);
        self.put(72, self.next_payload_byte);
        let width = self.payload_bytes - WINDOW_INCR;
        if self.next_payload_byte - self.window_start > width {
            self.window_start = (self.next_payload_byte - width).next_multiple_of(WINDOW_INCR);
            self.put(128, self.window_start);
        }
        let descriptor = (2 << 20) + (self.last_seqno - 1) % self.capacity * 64;
        self.put(descriptor, 0);
        let mut rest = [0; 56];
        rest[..2].copy_from_slice(&event_type.to_le_bytes());
        rest[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        let words = [1_700_000_000_000_000_000 + self.last_seqno, offset, ext[0], ext[1], ext[2], ext[3]];
        words.iter().zip(rest[8..].chunks_mut(8)).for_each(|(word, at)| at.copy_from_slice(&word.to_le_bytes()));
        self.file.write_all_at(&rest, descriptor + 8).unwrap();
        let start = (2 << 20) + self.capacity * 64;
        let at = offset % self.payload_bytes;
        let up_to_end = payload.len().min((self.payload_bytes - at) as usize);
        self.file.write_all_at(&payload[..up_to_end], start + at).unwrap();
        self.file.write_all_at(&payload[up_to_end..], start).unwrap();
        (descriptor, self.last_seqno)
    }

    fn commit(&self, (descriptor, seqno): (u64, u64)) {
        self.put(descriptor, seqno);
    }

    fn record(&mut self, event_type: u16, ext: [u64; 4], payload: &[u8]) -> u64 {
        let begun = self.begin(event_type, ext, payload);
        self.commit(begun);
        begun.1
    }
}

fn exec_hash() -> [u8; 32] {
    <ExecEvent as eventring::schema::EventType>::schema_hash()
}

#[test]
fn a_live_file_of_another_writer_is_followed_to_its_end() {
    let (_directory, [path]) = places(["ring"]);
    let mut writer = Writer::create(&path, 2, &exec_hash(), (16, 27), 16);
    let reader = Reader::open_typed::<ExecEvent>(&path).unwrap();
    assert_eq!((reader.state(), reader.lock_owner_pid()), (RingState::Live, Some(std::process::id())));
    let info = reader.info();
    assert!(info.extension.is_none() && info.content_name.is_none());
    assert_eq!((info.content_type, info.schema_hash, info.last_seqno), (2, exec_hash(), 0));

    let mut follower = Follower::new(reader.cursor(), WaitStrategy::Adaptive);
    assert_eq!(follower.next_timeout(Duration::from_millis(150)), Followed::TimedOut);
    assert_eq!(writer.record(18, [1, 2, 3, 4], b"some payload"), 1);
    let Followed::Event(event) = follower.next_blocking() else { panic!() };
    assert_eq!((event.seqno, event.event_type, event.content_ext), (1, 18, [1, 2, 3, 4]));
    assert_eq!(event.record_epoch_nanos, 1_700_000_000_000_000_001);
    let mut buffer = Vec::new();
    assert_eq!(follower.cursor().payload(&event, &mut buffer), PayloadRead::Valid(b"some payload"));

    // This event is reserved here and committed later. Until it is committed, the reader must wait for it.
    let begun = writer.begin(19, [0; 4], b"");
    assert_eq!(follower.cursor_mut().next(), Next::NotReady);
    writer.commit(begun);
    assert!(matches!(follower.cursor_mut().next(), Next::Event(event) if event.seqno == 2));

    // The writer goes away without ending the ring. It leaves one event that was reserved and never committed.
    writer.begin(19, [0; 4], b"never finished");
    writer.record(20, [0; 4], b"");
    drop(writer);
    assert_eq!(
        follower.next_blocking(),
        Followed::Gap(Gap { first_seqno: 3, count: 1, cause: GapCause::NeverCommitted })
    );
    assert!(matches!(follower.next_blocking(), Followed::Event(event) if event.seqno == 4));
    assert_eq!(follower.next_blocking(), Followed::Ended);
    // Nothing in the file tells a good end from a death.
    assert_eq!(reader.state(), RingState::Ended);
}

#[test]
fn payloads_that_straddle_the_end_and_those_that_have_expired_are_told_apart() {
    let (_directory, [path]) = places(["ring"]);
    let mut writer = Writer::create(&path, 1, &[0; 32], (16, 27), 16);
    let reader = Reader::open_typed::<TestEvent>(&path).unwrap();
    // The payload size is odd, so that one of the payloads crosses the end of the payload buffer.
    let payload = |i: u64| -> Vec<u8> {
        let mut payload = vec![i as u8; 3_000_001];
        payload[3_000_000] = 99;
        payload
    };
    (1..=60).for_each(|i| assert_eq!(writer.record(3, [i; 4], &payload(i)), i));
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    let (mut valid, mut expired, mut straddling) = (0, 0, 0);
    for seqno in 1..=60 {
        let Next::Event(event) = cursor.next() else { panic!() };
        assert_eq!((event.seqno, event.content_ext), (seqno, [seqno; 4]));
        match cursor.payload(&event, &mut buffer) {
            PayloadRead::Valid(found) => {
                assert!(found == payload(seqno), "seqno {seqno}");
                let end = event.payload_buf_offset % (1 << 27) + u64::from(event.payload_size);
                straddling += u64::from(end > 1 << 27);
                valid += 1;
            }
            PayloadRead::Expired => {
                assert_eq!(valid, 0, "an older one was valid");
                expired += 1;
            }
            PayloadRead::Malformed => panic!(),
        }
    }
    assert_eq!((valid + expired, straddling), (60, 1));
    assert!(valid >= 30, "{valid}");
}

#[test]
fn a_ring_that_has_gone_round_gives_an_exact_gap() {
    let (_directory, [path]) = places(["ring"]);
    // Older files begin with the same magic number, but their payloads are aligned to 8 bytes. Readers must read
    // them, too.
    let mut writer = Writer::create(&path, 2, &exec_hash(), (16, 27), 8);
    let reader = Reader::open(&path).unwrap();
    let mut cursor = reader.cursor();
    let total = (1 << 16) + 5000;
    for i in 1..=total {
        writer.record(20, [i, 0, 0, 0], &i.to_le_bytes());
    }
    drop(writer);
    // Nothing in the file tells a good end from a death.
    assert_eq!(reader.state(), RingState::Ended);
    assert_eq!(cursor.next(), Next::Gap(Gap { first_seqno: 1, count: 5000, cause: GapCause::Overwritten }));
    let mut buffer = Vec::new();
    for seqno in 5001..=total {
        let Next::Event(event) = cursor.next() else { panic!() };
        assert_eq!((event.seqno, event.payload_buf_offset), (seqno, (seqno - 1) * 8));
        assert_eq!(cursor.payload(&event, &mut buffer), PayloadRead::Valid(&seqno.to_le_bytes()));
    }
    assert_eq!((cursor.read_count(), cursor.lost_count()), (1 << 16, 5000));
}
