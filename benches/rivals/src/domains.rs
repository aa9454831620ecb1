//! Typed events of a domain that is off, of a domain that is on, and without domains.

use crate::Medians;
use crate::interleave::Cases;
use eventring::global::{GlobalRecorder, RecordsTo};
use eventring::record;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::{EventPayload, EventType};
use std::hint::black_box;

#[derive(EventPayload)]
struct Order {
    id: u64,
    price: u64,
}

/// Events in two domains, of which one is off.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 302, name = "MARKET", recorder = MARKET, domains)]
#[repr(u16)]
enum MarketEvent {
    #[event(domain = "orderbook", payload = Order)]
    Placed = 0x0100,
    #[event(domain = "prices", payload = Order)]
    Quoted = 0x0200,
}

static MARKET: GlobalRecorder = GlobalRecorder::new("market");

/// Events without domains.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 303, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum ShopEvent {
    #[event(payload = Order)]
    Placed = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

/// Installs a recorder for events of `E`.
fn install<E: RecordsTo>() {
    let builder = Recorder::builder(ContentDescription::from_event_type::<E>()).anonymous().compact(true);
    let recorder = builder.shifts(17, 23).build().expect("memory for a ring");
    E::global_recorder().install(recorder).expect("nothing is installed yet");
}

pub fn measure(rounds: usize) -> Medians {
    install::<MarketEvent>();
    install::<ShopEvent>();
    MARKET.disable_domain("prices").expect("a known domain");
    let mut cases = Cases::default();
    cases.add("domain_empty_loop", 100_000, || {
        black_box(1);
    });
    cases.add("record_domain_off", 100_000, || {
        black_box(1);
        record!(MarketEvent::Quoted, &Order { id: black_box(1), price: 2 });
    });
    cases.add("record_domain_on", 20_000, || {
        record!(MarketEvent::Placed, &Order { id: black_box(1), price: 2 });
    });
    cases.add("record_without_domain", 20_000, || {
        record!(ShopEvent::Placed, &Order { id: black_box(1), price: 2 });
    });
    let mut medians = cases.measure(rounds);
    let empty = medians["domain_empty_loop"];
    medians.insert("record_domain_off_over_empty".into(), medians["record_domain_off"] - empty);
    medians
}
