//! Follows a ring while any other program writes to it, and decodes the ring's events.
//!
//! ```console
//! $ cargo run --example reader -- typed-events
//! ```
//!
//! The program waits until there is a ring with this name, and ends when the ring's writer ends.

use eventring::reader::{Cursor, Followed, Follower, Reader, ReaderErrorKind, Seek, WaitStrategy};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "typed-events".into());
    let reader = wait_for_ring(&name)?;
    // The ring carries its own schema. So this program can decode the events without knowing their types.
    let schema = reader.schema()?;

    let mut cursor: Cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut follower = Follower::new(cursor, WaitStrategy::default());
    let mut buffer = Vec::new();
    loop {
        match follower.next_blocking() {
            Followed::Event(event) => {
                let name = schema.event(event.event_type).map_or("unknown", |event| event.name());
                // The payload is copied out of the ring. `valid` returns `None` if the writer has overwritten the
                // payload by now.
                match follower.cursor().payload(&event, &mut buffer).valid() {
                    Some(payload) => println!("{} {name} {}", event.seqno, schema.decode(event.event_type, payload)),
                    None => println!("{} {name}: its payload has been overwritten", event.seqno),
                }
            }
            // Every sequence number is accounted for. A gap that is no loss consists of sequence numbers that never
            // had an event.
            Followed::Gap(gap) if gap.is_loss() => println!("{} events are lost", gap.count),
            Followed::Gap(_) | Followed::TimedOut => {}
            Followed::Ended => break,
        }
    }
    println!("{} events read, {} lost", follower.cursor().read_count(), follower.cursor().lost_count());
    Ok(())
}

fn wait_for_ring(name: &str) -> Result<Reader, Box<dyn Error>> {
    loop {
        match Reader::open(name) {
            Err(error) if error.kind() == ReaderErrorKind::NotFound => sleep(Duration::from_millis(20)),
            opened => return Ok(opened?),
        }
    }
}
