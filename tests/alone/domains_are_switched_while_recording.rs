//! While a program switches a domain on and off, no event of another domain is lost.

use crate::fixtures::*;
use eventring_stress::market;
use eventring_stress::market::{MARKET, Market, Price};

/// Number of times that the domain is switched on and off.
const SWITCHES: usize = 1_000;

#[test]
fn no_event_is_lost_of_a_domain_that_is_on_throughout() {
    alone!();
    let recorder = market::recorder();
    MARKET.install(recorder.clone()).unwrap();
    MARKET.disable_domain("trades").unwrap();
    let (is_switching, rounds) = (AtomicBool::new(true), AtomicU64::new(0));
    let (bids, [refused, quoted]) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut newest, mut bids, mut quotes) = (0, 0, [0; 2]);
            while is_switching.load(Ordering::Relaxed) {
                let seqno = record!(Market::Bid, Price { cents: bids });
                assert!(seqno > newest, "bid {bids}");
                (newest, bids) = (seqno, bids + 1);
                let seqno = record!(Market::Quoted, Price { cents: bids });
                assert!(seqno == 0 || seqno > newest);
                quotes[usize::from(seqno != 0)] += 1;
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            (bids, quotes)
        });
        // Waits until the writer has recorded with the new switch, too.
        let wait = || {
            let before = rounds.load(Ordering::Relaxed);
            while rounds.load(Ordering::Relaxed) < before + 2 && !writer.is_finished() {
                std::thread::yield_now();
            }
        };
        wait();
        for _ in 0..SWITCHES {
            MARKET.disable_domain("prices").unwrap();
            wait();
            MARKET.enable_domain("prices").unwrap();
            wait();
        }
        is_switching.store(false, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(refused > 0 && quoted > 0, "{refused} {quoted}");
    assert_eq!(recorder.stats().last_seqno, bids + quoted);
}
