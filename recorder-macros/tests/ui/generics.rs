//! Structs with generic parameters. They are refused, because a payload has exactly one layout.
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
