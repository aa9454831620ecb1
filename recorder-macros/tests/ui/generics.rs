//! Structs with parameters. A payload has one layout, so they are refused.
use eventring::schema::EventPayload;

#[derive(EventPayload)]
struct Order<T> {
    id: T,
}

#[derive(EventPayload)]
struct Note<'a> {
    text: &'a str,
}

fn main() {}
