//! Domains of a schema: their numbers and names are in the schema text, and readers find them there.

use crate::fixtures::*;
use crate::read_back::events;
use eventring::EventType;
use eventring::schema::test::TestEvent;
use eventring::schema::{SchemaModel, SchemaTextErrorKind as Kind};
use eventring_stress::market;
use eventring_stress::market::{Market, Price};

/// The domains of a model: their numbers and names.
fn domains(model: &SchemaModel) -> Vec<(u8, &str)> {
    model.domains().iter().map(|domain| (domain.number(), domain.name())).collect()
}

#[test]
fn a_reader_finds_the_domains_in_the_schema_text_of_a_ring() {
    let recorder = market::recorder();
    record!(recorder => Market::DayEnded);
    record!(recorder => Market::Quoted, Price { cents: 9 });
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let model = SchemaModel::parse(&reader.schema_text().unwrap()).unwrap();
    assert_eq!(model.schema_hash(), Market::schema_hash());
    assert_eq!(domains(&model), [(1, "orderbook"), (2, "trades"), (64, "prices")]);
    let recorded = events(&reader);
    let domains: Vec<_> = recorded.iter().map(|event| model.domain_of(event.1).map(|domain| domain.name())).collect();
    assert_eq!(domains, [Some("orderbook"), Some("prices")]);
    assert!(model.domain_of(1).is_none() && model.domain_of(0x0102).is_none());
}

/// Events with codes of the program's own choice. Their domains get their numbers in the order of the codes.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "MARKET")]
#[repr(u16)]
#[allow(dead_code, reason = "only the schema is looked at")]
enum OwnCodes {
    #[event(domain = "trades")]
    Traded = 9,
    #[event(domain = "prices")]
    Quoted = 2,
    #[event(domain = "trades")]
    Broken = 0x0300,
}

#[test]
fn schema_text_has_the_domain_of_each_event_and_the_hash_depends_on_it() {
    let lines_of_events = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.starts_with("trailing truncated_payload")).skip(1);
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(lines_of_events(Market::schema().text()), @r"
    struct Price 8
    field cents u64 0 8
    event 256 BID Price
    domain 1 orderbook
    # An event of the domain of its high byte.
    event 257 DAY_ENDED
    domain 1 orderbook
    event 512 TRADED Price
    domain 2 trades
    trailing note utf8 *
    event 16639 QUOTED Price
    domain 64 prices
    ");
    insta::assert_snapshot!(lines_of_events(OwnCodes::schema().text()), @r"
    event 2 QUOTED
    domain 1 prices
    event 9 TRADED
    domain 2 trades
    event 768 BROKEN
    domain 2 trades
    ");
    assert_eq!(domains(OwnCodes::schema().model().unwrap()), [(1, "prices"), (2, "trades")]);
    let hash = |text: &str| SchemaModel::parse(text).unwrap().schema_hash();
    let text = OwnCodes::schema().text();
    let changed = [text.replace("domain 2 trades", "domain 2 trade"), text.replace("domain 2", "domain 3")];
    let without: String =
        text.lines().filter(|line| !line.starts_with("domain")).flat_map(|line| [line, "\n"]).collect();
    assert!(changed.iter().chain([&without]).all(|changed| hash(changed) != OwnCodes::schema_hash()));
    // Schemas without domains have no such lines.
    assert!(!TestEvent::schema().text().contains("domain") && TestEvent::schema().domains().is_empty());
}

#[test]
fn lines_of_domains_that_contradict_others_are_refused() {
    let parse =
        |lines: &str| SchemaModel::parse(&format!("schema-text 1\ncontent 300 X 1\nstruct S 1\nevent 2 A\n{lines}"));
    assert_eq!(
        domains(&parse("domain 3 a\nevent 3 B S\ndomain 1 b\ntrailing t u8 *\nevent 4 C\n").unwrap()),
        [(1, "b"), (3, "a")]
    );
    for (lines, kind) in [
        ("domain 0 a\n", Kind::TooLarge),
        ("domain 65 a\n", Kind::TooLarge),
        ("domain 256 a\n", Kind::Syntax),
        ("domain 01 a\n", Kind::Syntax),
        ("domain 1\n", Kind::Syntax),
        ("domain 1 a-b\n", Kind::Syntax),
        ("domain 1 a b\n", Kind::Syntax),
        (&format!("domain 1 {}\n", "a".repeat(257)), Kind::TooLarge),
        ("domain 1 a\ndomain 1 a\n", Kind::Inconsistent),
        ("domain 1 a\nevent 3 B\ndomain 2 a\n", Kind::Inconsistent),
        ("domain 1 a\nevent 3 B\ndomain 1 b\n", Kind::Inconsistent),
        ("trailing t u8 *\ndomain 1 a\n", Kind::Inconsistent),
        ("struct T 1\ndomain 1 a\n", Kind::Inconsistent),
    ] {
        assert_eq!(parse(lines).unwrap_err().kind(), kind, "{lines}");
    }
    let error = "schema-text 1\ncontent 300 X 1\nevent 1 RECORD_ERROR\ndomain 1 a\n";
    assert_eq!(SchemaModel::parse(error).unwrap_err().kind(), Kind::Inconsistent);
}

macro_rules! events_in_64_domains {
    ($($event:ident = $code:tt $name:literal)*) => {
        #[derive(EventType, Clone, Copy)]
        #[event(content_type = 301, name = "MANY", domains)]
        #[repr(u16)]
        enum Many {
            $(#[event(domain = $name)] $event = $code,)*
        }

        /// Records each event, and returns whether it was recorded.
        fn record_all(recorder: &Recorder) -> Vec<bool> {
            vec![$(record!(recorder => Many::$event) != 0),*]
        }
    };
}

events_in_64_domains! {
    E1 = 0x0107 "d1"
    E2 = 0x020e "d2"
    E3 = 0x0315 "d3"
    E4 = 0x041c "d4"
    E5 = 0x0523 "d5"
    E6 = 0x062a "d6"
    E7 = 0x0731 "d7"
    E8 = 0x0838 "d8"
    E9 = 0x093f "d9"
    E10 = 0x0a46 "d10"
    E11 = 0x0b4d "d11"
    E12 = 0x0c54 "d12"
    E13 = 0x0d5b "d13"
    E14 = 0x0e62 "d14"
    E15 = 0x0f69 "d15"
    E16 = 0x1070 "d16"
    E17 = 0x1177 "d17"
    E18 = 0x127e "d18"
    E19 = 0x1385 "d19"
    E20 = 0x148c "d20"
    E21 = 0x1593 "d21"
    E22 = 0x169a "d22"
    E23 = 0x17a1 "d23"
    E24 = 0x18a8 "d24"
    E25 = 0x19af "d25"
    E26 = 0x1ab6 "d26"
    E27 = 0x1bbd "d27"
    E28 = 0x1cc4 "d28"
    E29 = 0x1dcb "d29"
    E30 = 0x1ed2 "d30"
    E31 = 0x1fd9 "d31"
    E32 = 0x20e0 "d32"
    E33 = 0x21e7 "d33"
    E34 = 0x22ee "d34"
    E35 = 0x23f5 "d35"
    E36 = 0x24fc "d36"
    E37 = 0x2503 "d37"
    E38 = 0x260a "d38"
    E39 = 0x2711 "d39"
    E40 = 0x2818 "d40"
    E41 = 0x291f "d41"
    E42 = 0x2a26 "d42"
    E43 = 0x2b2d "d43"
    E44 = 0x2c34 "d44"
    E45 = 0x2d3b "d45"
    E46 = 0x2e42 "d46"
    E47 = 0x2f49 "d47"
    E48 = 0x3050 "d48"
    E49 = 0x3157 "d49"
    E50 = 0x325e "d50"
    E51 = 0x3365 "d51"
    E52 = 0x346c "d52"
    E53 = 0x3573 "d53"
    E54 = 0x367a "d54"
    E55 = 0x3781 "d55"
    E56 = 0x3888 "d56"
    E57 = 0x398f "d57"
    E58 = 0x3a96 "d58"
    E59 = 0x3b9d "d59"
    E60 = 0x3ca4 "d60"
    E61 = 0x3dab "d61"
    E62 = 0x3eb2 "d62"
    E63 = 0x3fb9 "d63"
    E64 = 0x40c0 "d64"
}

#[test]
fn a_schema_has_64_domains_that_are_switched_one_by_one() {
    let description = ContentDescription::from_event_type::<Many>();
    let recorder = Recorder::builder(description).anonymous().compact(true).shifts(15, 21).prefault(false);
    let recorder = recorder.domains("none").build().unwrap();
    assert_eq!(Many::schema().model().unwrap().domains().len(), 64);
    for (i, domain) in recorder.domains().iter().enumerate() {
        assert_eq!(domain.name, format!("d{}", i + 1));
        recorder.enable_domain(&domain.name).unwrap();
        let expected: Vec<bool> = (0..64).map(|other| other == i).collect();
        assert_eq!(record_all(&recorder), expected);
        recorder.disable_domain(&domain.name).unwrap();
    }
    assert_eq!(recorder.stats().last_seqno, 64);
}
