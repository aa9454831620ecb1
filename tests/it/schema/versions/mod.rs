//! A program reads rings that were recorded with another version of its schema: each rule of `docs/FORMAT.md`,
//! "Versions of a schema".

mod edits;
mod info;
mod model;
mod payloads;
mod random;
mod refusals;
mod sketch;

use crate::fixtures::*;
use eventring::internal::schema_text_hash;
use eventring::reader::{ReaderError, ReaderOptions};
use eventring::schema::{EventPayload, EventType, PayloadField, Utf8};

#[derive(PayloadField, Clone, Copy, Debug, Default, PartialEq)]
#[repr(u8)]
enum Payment {
    #[default]
    Card = 1,
    #[event(alias = "BILL")]
    Invoice = 2,
}

#[derive(EventPayload, Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    weight: u16,
    #[event(default = 7)]
    shelf: u8,
}

/// The version that the tests read with.
#[derive(EventPayload, Debug, PartialEq)]
struct Order {
    id: u64,
    #[event(alias = "cost", alias = "price")]
    price_cents: u32,
    payment: Payment,
    part: Part,
    #[event(redact)]
    card: [u8; 4],
    #[event(default)]
    note_bytes: u16,
    #[event(default = [1, 2])]
    grid: [u16; 2],
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 300, name = "SHOP", payloads(ShopPayload: Debug))]
#[repr(u16)]
enum Shop {
    RecordError = 1,
    #[event(payload = Order, trailing(#[event(default)] note: Utf8 * note_bytes, #[event(alias = "items")] parts: Part))]
    OrderPlaced = 2,
    #[event(alias = "CLOSED")]
    DayEnded = 3,
}

/// The lines of the oldest version, which has what the reader needs at least.
const OLDEST: &str = "schema-text 1
content 300 SHOP 1
enum Payment u8
value 1 CARD
value 2 BILL
struct Part 2
field weight u16 0 2
struct Order 24
field cost u32 0 4
field payment Payment 4 1
field part Part 6 2
field id u64 8 8
field card bytes4 16 4 redacted
event 2 ORDER_PLACED Order
trailing items Part *
event 3 CLOSED
";

/// A payload of [`OLDEST`]: the fields, and two items.
fn oldest_payload() -> Vec<u8> {
    let order = [&250u32.to_le_bytes()[..], &[2, 0], &9u16.to_le_bytes(), &7u64.to_le_bytes(), &[0; 8]].concat();
    [order, vec![3, 0, 4, 0]].concat()
}

fn ring(text: &str) -> Recorder {
    let content = ContentDescription::new(300, "SHOP").schema_text(text).schema_hash(schema_text_hash(text));
    Recorder::builder(content).anonymous().compact(true).shifts(15, 21).build().unwrap()
}

fn open(ring: &Recorder, options: &ReaderOptions) -> Result<Reader, ReaderError> {
    options.open_fd(ring.as_fd())
}

fn compatible() -> ReaderOptions {
    Reader::options().compatible::<Shop>()
}

/// Records an event in a ring of this schema, and reads it as [`Shop`].
fn read(text: &str, code: u16, payload: &[u8]) -> Option<Vec<u8>> {
    let ring = ring(text);
    let reader = open(&ring, &compatible()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    ring.record(code, [0; 4], payload);
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
    let mut buffer = Vec::new();
    match cursor.payload(&event, &mut buffer) {
        PayloadRead::Valid(payload) => Some(payload.to_vec()),
        PayloadRead::Malformed => None,
        PayloadRead::Expired => panic!("nothing has overwritten it"),
    }
}

/// Returns why a ring of this schema cannot be read as [`Shop`].
fn refusal(text: &str) -> String {
    open(&ring(text), &compatible()).expect_err(text).to_string()
}

/// Replaces lines of [`OLDEST`].
fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(OLDEST.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}
