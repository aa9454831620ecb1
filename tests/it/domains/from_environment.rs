//! The environment variable `EVENTRING_DOMAINS` says which domains a service records.

use crate::fixtures::*;
use eventring::EventType;
use eventring::global::GlobalRecorder;
use eventring::recorder::{DOMAINS_VARIABLE, DomainState};
use eventring_stress::market::{MARKET, Market};

/// A schema without domains.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    DayEnded = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

fn on(domains: Vec<DomainState>) -> String {
    let on: Vec<String> = domains.into_iter().filter(|domain| domain.is_enabled).map(|domain| domain.name).collect();
    // A message to the parent is not empty.
    if on.is_empty() { "nothing".to_owned() } else { on.join(" ") }
}

#[test]
fn the_variable_chooses_domains_of_all_recorders_and_unknown_names_are_refused() {
    let test = plays!({
        let config = |name: &str| format!("{}:16:27", child::place().join(name).display());
        say(MARKET
            .try_init::<Market>(&config("market"))
            .map_or_else(|error| error.to_string(), |_| on(MARKET.domains())));
        say(SHOP.try_init::<Shop>(&config("shop")).map_or_else(|error| error.to_string(), |_| on(SHOP.domains())));
    });
    let directory = directory();
    let serve = |value: Option<&str>| {
        let mut command = play(test, "service", directory.path());
        command.env_remove(DOMAINS_VARIABLE);
        if let Some(value) = value {
            command.env(DOMAINS_VARIABLE, value);
        }
        let mut service = Talk::with(command);
        let heard = (service.hear(), service.hear());
        assert!(service.end().success());
        heard
    };
    for (value, market, shop) in [
        (None, "orderbook trades prices", "shop"),
        (Some(""), "orderbook trades prices", "shop"),
        // The recorder of SHOP has no domains, so it ignores the names of others.
        (Some("trades,!prices"), "trades", "shop"),
        (Some("none"), "nothing", "nothing"),
        (Some("none,market.all"), "orderbook trades prices", "nothing"),
        (Some("market.trades"), "trades", "shop"),
        (Some("!shop.all"), "orderbook trades prices", "nothing"),
    ] {
        assert_eq!(serve(value), (market.to_owned(), shop.to_owned()), "{value:?}");
    }
    let (market, shop) = serve(Some("trade"));
    assert_eq!(
        (market.as_str(), shop.as_str()),
        (
            "initialise the global recorder `market`: cannot use the domains \"trade\": the events MARKET have no domain \"trade\", \
             expected one of: orderbook, trades, prices",
            "shop"
        )
    );
}
