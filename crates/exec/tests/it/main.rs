//! Blocks of real recordings and of wrong ones.

#[cfg(feature = "alloy")]
mod alloy;
mod described;
mod disorder;
mod history;
#[cfg(feature = "stream")]
mod news;
mod oracle;
mod streams;

use eventring::reader::{Next, Reader, Seek};
use eventring_stress::chain::Event;

eventring_stress::names_lead_nowhere!();

/// Returns all events of a recording.
fn events(reader: &Reader) -> Vec<Event> {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let (mut events, mut buffer) = (Vec::new(), Vec::new());
    while let Next::Event(event) = cursor.next() {
        events.push((event, cursor.payload(&event, &mut buffer).valid().unwrap().to_vec()));
    }
    assert_eq!(events.len() as u64, reader.info().last_seqno);
    events
}

/// Two invented blocks that are kept with the project, with events of every type.
fn kept() -> Reader {
    Reader::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst")).unwrap()
}
