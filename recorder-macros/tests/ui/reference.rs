//! A field that is a reference.
use eventring::schema::EventPayload;

#[derive(EventPayload)]
struct Order {
    id: u64,
    note: &'static str,
}

fn main() {}
