//! A schema of a reader, for texts that claim to be another version of it. Everything here has a default, so many
//! texts are compatible.

use eventring::internal::Resolution;
use eventring::schema::{EventPayload, EventType, PayloadField, SchemaModel, Utf8};

#[derive(PayloadField, Default)]
#[repr(u8)]
enum Payment {
    #[default]
    Card = 1,
    #[event(alias = "BILL")]
    Invoice = 2,
}

#[derive(EventPayload)]
struct Part {
    #[event(default)]
    weight: u16,
    #[event(default = 7)]
    shelf: u64,
}

#[derive(EventPayload)]
struct Order {
    #[event(default)]
    id: u64,
    #[event(alias = "cost", default = 1)]
    price_cents: u32,
    #[event(default)]
    payment: Payment,
    #[event(default = [const { Part { weight: 1, shelf: 2 } }; 2])]
    pair: [Part; 2],
    #[event(redact)]
    card: [u8; 4],
    #[event(default)]
    note_bytes: u16,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
enum Shop {
    #[event(
        payload = Order,
        trailing(#[event(default)] note: Utf8 * note_bytes, #[event(alias = "items", default)] parts: Part)
    )]
    OrderPlaced = 2,
    #[event(trailing(#[event(default)] words: u32))]
    Spoken = 3,
}

/// The largest number of bytes by which a payload may grow, beside the fixed struct.
const ADDED_BYTES_MAX: usize = 16 << 20;

/// Reads a payload of any event of the schema as a payload of [`Shop`]. Returns the text of the event ORDER_PLACED, if
/// it is one.
pub fn read_as_another_version(writer: &SchemaModel, payload: &[u8]) -> Option<String> {
    let mut note = None;
    let resolution = Resolution::new(writer, Shop::INFO);
    for code in [1, Shop::OrderPlaced.code(), Shop::Spoken.code(), 4] {
        let mut read = payload.to_vec();
        if !resolution.resolve(code, &mut read) {
            continue;
        }
        assert!(read.len() <= payload.len() + ADDED_BYTES_MAX, "{} bytes", read.len());
        if !resolution.is_compatible() || Shop::from_code(code).is_none() {
            assert_eq!(read, payload, "event {code} is not known here");
        }
        if let Ok(view) = OrderPlacedView::decode(&read) {
            let Order { id, price_cents, payment, pair, card, note_bytes } = view.fixed;
            let Part { weight, shelf } = pair[0];
            let _ = (id, price_cents, payment as u8, card, weight, shelf, view.parts.to_vec().is_ok());
            assert_eq!(view.note.len(), usize::from(note_bytes));
            note = note.or(resolution.is_compatible().then(|| view.note.to_text().into_owned()));
        }
        let _ = SpokenView::decode(&read).map(|view| view.words.to_vec());
    }
    note
}
