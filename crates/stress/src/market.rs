//! Events of a market, in three domains.

use eventring::global::GlobalRecorder;
use eventring::recorder::{ContentDescription, Recorder, RecorderBuilder};
use eventring::schema::Utf8;
use eventring::{EventPayload, EventType};

#[derive(EventPayload)]
pub struct Price {
    pub cents: u64,
}

pub static MARKET: GlobalRecorder = GlobalRecorder::new("market");

/// Events of a market.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "MARKET", recorder = MARKET, domains)]
#[repr(u16)]
#[allow(dead_code, reason = "each test file uses some of them")]
pub enum Market {
    #[event(domain = "orderbook", payload = Price)]
    Bid = 0x0100,
    /// An event of the domain of its high byte.
    DayEnded = 0x0101,
    #[event(domain = "trades", payload = Price, trailing(note: Utf8))]
    Traded = 0x0200,
    #[event(domain = "prices", payload = Price)]
    Quoted = 0x40ff,
}

/// Returns the configuration of a recorder in anonymous memory.
pub fn builder() -> RecorderBuilder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<Market>()).anonymous();
    builder.compact(true).shifts(15, 21).prefault(false)
}

/// Makes a recorder in anonymous memory.
#[allow(dead_code, reason = "each test file uses some of it")]
pub fn recorder() -> Recorder {
    builder().build().unwrap()
}
