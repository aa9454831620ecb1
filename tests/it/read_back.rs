//! All events of a ring or snapshot that has lost none, and readers of rings of this process.

use crate::fixtures::*;

/// An event's seqno, type, extension and payload.
pub type Event = (u64, u16, [u64; 4], Vec<u8>);

/// Reads every event with its payload. There must be no gap.
pub fn events(reader: &Reader) -> Vec<Event> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let mut buffer = Vec::new();
    let mut events = Vec::new();
    loop {
        match cursor.next() {
            Next::Event(event) => {
                let payload = cursor.payload(&event, &mut buffer).valid().expect("expired").to_vec();
                events.push((event.seqno, event.event_type, event.content_ext, payload));
            }
            Next::NotReady => return events,
            Next::Gap(gap) => panic!("{gap:?}"),
        }
    }
}

/// Opens the ring of a recorder of this process.
pub fn reader_of(recorder: &Recorder) -> Reader {
    Reader::options().open_fd(recorder.as_fd()).unwrap()
}
