//! In a forked child, a domain that is off evaluates nothing, and the child's own recorder has domains of its own.

use crate::fixtures::*;
use eventring_stress::market;
use eventring_stress::market::{MARKET, Market, Price};

#[test]
fn a_child_inherits_the_domains_until_it_has_its_own_recorder() {
    alone!();
    let recorder = market::recorder();
    MARKET.install(recorder.clone()).unwrap();
    MARKET.disable_domain("prices").unwrap();
    let evaluated = Cell::new(0);
    let quote = || {
        let price = || {
            evaluated.set(evaluated.get() + 1);
            Price { cents: 7 }
        };
        record!(Market::Quoted, price()) != 0 || record!(recorder => Market::Quoted, price()) != 0
    };
    let code = forked::in_child(|| {
        if quote() || evaluated.get() != 0 || record!(Market::DayEnded) != 0 {
            return 1;
        }
        // The inherited recorder cannot be switched.
        if MARKET.enable_domain("prices").is_err() || quote() || evaluated.get() != 0 || !MARKET.domains().is_empty() {
            return 2;
        }
        if MARKET.install(market::builder().domains("prices").build().unwrap()).is_err() {
            return 3;
        }
        if !quote() || evaluated.get() != 1 || record!(Market::DayEnded) != 0 {
            return 4;
        }
        if MARKET.enable_domain("orderbook").is_err() || record!(Market::DayEnded) != 2 {
            return 5;
        }
        0
    });
    assert_eq!(code, 0);
    assert!(!quote() && evaluated.get() == 0);
    assert_eq!((record!(Market::DayEnded), recorder.stats().last_seqno), (1, 1));
}
