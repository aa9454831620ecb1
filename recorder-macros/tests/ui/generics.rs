//! Structs with parameters: a payload has one layout.
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
