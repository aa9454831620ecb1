//! A service that records only if an environment variable is set. Recording is switched on without a new build.
//!
//! ```console
//! $ cargo run --example switch_by_environment                                            # records nothing
//! $ EVENTRING_PERF=service EVENTRING_FILTER=debug cargo run --example switch_by_environment
//! $ ORDERS_RING=orders:16:27 cargo run --example switch_by_environment
//! ```

use eventring::global::GlobalRecorder;
use eventring::{EventPayload, EventType, record};
use std::error::Error;
use tracing::{debug, info_span};

#[derive(EventPayload)]
struct OrderPlaced {
    order_id: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "ORDERS", recorder = ORDERS)]
#[repr(u16)]
enum Orders {
    #[event(payload = OrderPlaced)]
    OrderPlaced = 2,
}

static ORDERS: GlobalRecorder = GlobalRecorder::new("orders");

fn main() -> Result<(), Box<dyn Error>> {
    // If the variable is not set, `spans` is `None`, and a span costs as much as without a subscriber.
    let spans = eventring::tracing::try_init_from_env()?;
    // Another variable, with a name that the program chooses, switches typed events on in the same way.
    let orders = ORDERS.try_init_from_env::<Orders>("ORDERS_RING")?;
    println!("spans: {}", if spans.is_some() { "recorded" } else { "off" });
    println!("orders: {}", if orders.is_some() { "recorded" } else { "off" });

    for order_id in 1..=10 {
        let _span = info_span!("order", order_id).entered();
        debug!("checking the stock");
        // While the recorder is off, this call costs one load and one branch. The payload is not even made.
        record!(Orders::OrderPlaced, &OrderPlaced { order_id });
    }

    // A program can also switch while it runs.
    if let Some(spans) = spans {
        spans.set_enabled(false);
        info_span!("not recorded").in_scope(|| debug!("nor this"));
    }
    Ok(())
}
