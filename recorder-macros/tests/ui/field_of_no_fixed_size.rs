//! Fields that have no fixed size on every machine.
use eventring::schema::EventPayload;

#[derive(EventPayload)]
struct Order {
    id: u64,
    note: String,
    position: usize,
    tags: Vec<u8>,
}

fn main() {}
