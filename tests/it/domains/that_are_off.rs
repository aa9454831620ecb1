//! A program switches domains of its events on and off. `record!` evaluates and records nothing of a domain that is
//! off.

use crate::fixtures::*;
use eventring::EventType;
use eventring::global::GlobalRecorder;
use eventring::recorder::RecorderErrorKind;
use eventring_stress::market::{MARKET, Market, Price, builder, recorder};

/// Returns whether the domains of the recorder are enabled, by ascending number.
fn enabled(recorder: &Recorder) -> Vec<bool> {
    recorder.domains().iter().map(|domain| domain.is_enabled).collect()
}

#[test]
fn an_event_of_a_disabled_domain_evaluates_and_records_nothing() {
    let evaluated = Cell::new(0);
    let count = |value: u64| {
        evaluated.set(evaluated.get() + 1);
        value
    };
    let all = || {
        let price = || Price { cents: count(7) };
        let seqnos = [
            record!(Market::Bid, price(); ext[0] = count(1)),
            recordv!(
                Market::Traded,
                &price(),
                [{
                    count(0);
                    b"note"
                }]
            ),
            record!(Market::Quoted, price()),
        ];
        (seqnos.map(|seqno| seqno != 0), evaluated.replace(0))
    };
    // No recorder is installed.
    assert_eq!((all(), MARKET.domains()), (([false; 3], 0), Vec::new()));
    assert!(MARKET.enable_domain("orderbook").is_ok());

    let installed = recorder();
    MARKET.install(installed.clone()).unwrap();
    let names: Vec<_> = MARKET.domains().into_iter().map(|domain| domain.name).collect();
    assert_eq!(names, ["orderbook", "trades", "prices"]);
    for _ in 0..2 {
        // The first event of a type takes the slow path, and the next one the fast path.
        assert_eq!(all(), ([true, true, true], 5));
    }
    MARKET.disable_domain("trades").unwrap();
    assert_eq!(all(), ([true, false, true], 3));
    installed.disable_domain("orderbook").unwrap();
    assert_eq!((all(), enabled(&installed)), (([false, false, true], 1), vec![false, false, true]));
    let before = installed.stats();
    MARKET.disable_domain("prices").unwrap();
    // A recorder without an enabled domain is off.
    assert_eq!((all(), MARKET.is_enabled(), installed.is_enabled()), (([false; 3], 0), false, false));
    assert_eq!(installed.stats(), before);
    assert_eq!(installed.record(0x101, [0; 4], &[0; 8]), 0);
    MARKET.enable_domain("trades").unwrap();
    assert_eq!((all(), MARKET.is_enabled()), (([false, true, false], 2), true));

    // The switch of the whole recorder does not change the domains.
    for set_enabled in [|on| MARKET.set_enabled(on), |on| MARKET.installed().unwrap().set_enabled(on)] {
        set_enabled(false);
        assert_eq!((all(), enabled(&installed)), (([false; 3], 0), vec![false, true, false]));
        set_enabled(true);
        assert_eq!(all(), ([false, true, false], 2));
    }

    // An override has domains of its own.
    let other = recorder();
    other.disable_domain("trades").unwrap();
    {
        let _override = MARKET.override_with(other.clone());
        assert_eq!(all(), ([true, false, true], 3));
        std::thread::scope(|scope| {
            let on = || {
                let traded = recordv!(Market::Traded, Price { cents: 1 }, [b""]);
                [record!(Market::DayEnded), traded].map(|seqno| seqno != 0)
            };
            assert_eq!(scope.spawn(on).join().unwrap(), [false, true]);
        });
        other.set_enabled(false);
        assert_eq!(all(), ([false; 3], 0));
    }
    assert_eq!(all(), ([false, true, false], 2));

    // A recorder that the call names.
    let own = || {
        let price = || Price { cents: count(7) };
        let seqnos = [
            record!(other => Market::Bid, price(); ext[0] = count(1)),
            recordv!(other => Market::Traded, price(), [b"note"]),
        ];
        (seqnos.map(|seqno| seqno != 0), evaluated.replace(0))
    };
    assert_eq!(own(), ([false, false], 0));
    other.set_enabled(true);
    assert_eq!(own(), ([true, false], 2));
    other.enable_domain("trades").unwrap();
    assert_eq!(own(), ([true, true], 3));
}

#[test]
fn settings_switch_domains_on_and_forbid_them() {
    let on = |settings: &str| {
        let recorder = builder().domains(settings).build().unwrap_or_else(|error| panic!("{error}"));
        (enabled(&recorder), recorder)
    };
    for (settings, expected) in [
        ("", [true, true, true]),
        (" , ", [true, true, true]),
        ("all", [true, true, true]),
        ("none", [false, false, false]),
        ("trades", [false, true, false]),
        ("trades,orderbook", [true, true, false]),
        (" trades , orderbook ", [true, true, false]),
        ("trades,none,orderbook", [true, false, false]),
        ("none,all", [true, true, true]),
        ("!trades", [true, false, true]),
        ("!trades,trades,orderbook", [true, false, false]),
        ("trades,!trades", [false, false, false]),
        ("!all", [false, false, false]),
        ("market.trades,MARKET.prices", [false, true, true]),
        ("!market.trades", [true, false, true]),
    ] {
        assert_eq!(on(settings).0, expected, "{settings}");
    }
    // A domain that is forbidden stays off.
    let (_, recorder) = on("orderbook,!trades");
    for domain in ["orderbook", "trades", "prices"] {
        recorder.enable_domain(domain).unwrap();
    }
    assert_eq!(enabled(&recorder), [true, false, true]);
}

#[test]
fn unknown_domains_are_refused_with_the_names_of_the_known_ones() {
    let refused = |settings: &str| {
        let error = builder().domains(settings).build().unwrap_err();
        assert_eq!(error.kind(), RecorderErrorKind::BadConfig);
        error.to_string()
    };
    let recorder = recorder();
    insta::assert_snapshot!(
        [
            refused("orderbook,price"),
            refused("!Trades"),
            refused("shop.trades"),
            refused("!none,!"),
            recorder.enable_domain("").unwrap_err().to_string(),
            recorder.disable_domain("a\nb").unwrap_err().to_string(),
        ]
        .join("\n"),
        @r#"
            cannot use the domains "orderbook,price": the events MARKET have no domain "price", expected one of: orderbook, trades, prices
            cannot use the domains "!Trades": the events MARKET have no domain "Trades", expected one of: orderbook, trades, prices
            cannot use the domains "shop.trades": the events MARKET have no domain "shop.trades", expected one of: orderbook, trades, prices
            cannot use the domains "!none,!": the events MARKET have no domain "", expected one of: orderbook, trades, prices
            the events MARKET have no domain "", expected one of: orderbook, trades, prices
            the events MARKET have no domain "a\nb", expected one of: orderbook, trades, prices
            "#
    );
    assert_eq!(enabled(&recorder), [true; 3]);
}

/// A schema without domains.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    DayEnded = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[test]
fn a_schema_without_domains_is_one_domain() {
    let builder = || Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().prefault(false);
    SHOP.install(builder().build().unwrap()).unwrap();
    let all = || [record!(Shop::DayEnded), record!(SHOP.installed().unwrap() => Shop::DayEnded)].map(|n| n != 0);
    assert_eq!((all(), SHOP.domains().len(), SHOP.domains()[0].name.as_str()), ([true; 2], 1, "shop"));
    SHOP.disable_domain("shop").unwrap();
    assert_eq!((all(), SHOP.is_enabled(), SHOP.domains()[0].is_enabled), ([false; 2], false, false));
    SHOP.enable_domain("shop").unwrap();
    assert_eq!((all(), SHOP.is_enabled(), SHOP.domains()[0].is_enabled), ([true; 2], true, true));
    assert!(!builder().domains("!shop").build().unwrap().is_enabled());
    assert!(builder().domains("trades").build().unwrap_err().to_string().ends_with("expected one of: shop"));
}
