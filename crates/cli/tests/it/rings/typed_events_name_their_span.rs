//! Typed events inside spans. An extension word of the event holds the id of the span in which the event was recorded.
//! A live watch, a program that knows the event types, and an export all show this span. In rings of other kinds, this
//! extension word has another meaning, and readers do not take it for a span id.

use crate::consumers;
use crate::fixtures::*;
use eventring::global::GlobalRecorder;
use eventring::recordv;
use eventring::tracing::{PerfItem, PerfReader, TargetFilter, try_init_with};

#[derive(EventPayload)]
struct Order {
    id: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    OrderPlaced = 2,
    #[event(payload = Order, trailing(note: eventring::schema::Utf8))]
    OrderNoted = 3,
    DayEnded = 4,
}

/// Events that use the extension word for something else.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "STOCK", no_span)]
#[repr(u16)]
enum Stock {
    #[event(payload = Order)]
    Counted = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

fn beside(place: &Path, name: &str) -> PathBuf {
    place.with_extension(name)
}

/// Records events in spans; `order` is the number of the span.
fn program() {
    let config = |name: &str| format!("{}:16:27", beside(&child::place(), name).display());
    SHOP.try_init::<Shop>(&config("shop")).unwrap();
    let stock = typed_in::<Stock>(config("stock")).build().unwrap();
    let perf = spans_in(child::place()).shifts(15, 21).tables_shift(16).shards(1);
    try_init_with(perf, TargetFilter::all()).unwrap();

    record!(Shop::OrderPlaced, &Order { id: 100 });
    for id in 1..=3 {
        info_span!("order", id).in_scope(|| {
            record!(Shop::OrderPlaced, &Order { id });
            info_span!("payment").in_scope(|| drop(info_span!("other")));
            recordv!(Shop::OrderNoted, &Order { id: 10 + id }, [b"in a hurry"]);
            // This macro names its recorder. The event names its span nevertheless.
            record!(SHOP.installed().unwrap() => Shop::OrderPlaced, &Order { id: 20 + id });
            // A span id in the macro's arguments takes the place of the current span. The id 0 stands for no span.
            record!(Shop::OrderPlaced, &Order { id: 30 + id }; span = 0, ext[0] = 7);
            record!(stock => Stock::Counted, &Order { id });
            record!(stock => Stock::Counted, &Order { id }; ext[3] = 77);
        });
    }
    record!(Shop::DayEnded);
    say("recorded");
    wait_for_parent();
}

/// A map from the number of each order to the span that its event names.
type Spans = BTreeMap<u64, Option<u64>>;

/// Returns the span that every reader must show for each order. `orders` has the ids of the three spans.
fn expected(orders: &BTreeMap<u64, u64>) -> Spans {
    assert!(orders.keys().copied().eq(1..=3), "{orders:?}");
    let inside = [0, 10, 20].into_iter().flat_map(|plus| orders.iter().map(move |(n, span)| (plus + n, Some(*span))));
    inside.chain([(31, None), (32, None), (33, None), (100, None)]).collect()
}

fn check_merged(place: &Path) {
    let [shop, stock] = ["shop", "stock"].map(|name| Reader::open(beside(place, name)).unwrap());
    assert!(shop.ext_words().has_span() && !stock.ext_words().has_span());
    let mut reader = PerfReader::open(place).unwrap().with_typed_events(&shop).with_typed_events(&stock);
    let (mut named, mut of_stock) = (Spans::new(), 0);
    while let Some(item) = reader.next_timeout(Duration::from_millis(30)) {
        let PerfItem::TypedEvent(record) = item else { continue };
        let payload = record.payload.unwrap();
        if record.descriptor.content_ext[3] == 77 {
            assert_eq!(record.span, None);
            of_stock += 1;
            continue;
        }
        let Some((id, _)) = payload.split_first_chunk() else { continue };
        let id = u64::from_le_bytes(*id);
        // The condition leaves out the stock events, which name no span and have ids below 30. Orders without a span
        // have larger ids.
        if record.span.is_some() || id >= 30 {
            named.insert(id, record.span.map(|span| span.get()));
        }
    }
    assert_eq!(of_stock, 3);
    let orders: BTreeMap<u64, u64> = (1..=3).map(|id| (id, named[&id].expect("it was in a span"))).collect();
    assert_eq!(named, expected(&orders));
}

fn check_watch(place: &Path, orders: &BTreeMap<u64, u64>) {
    let shop = beside(place, "shop");
    let lines = run!("watch", &shop, "--from", "oldest", "--json", "--count", "14").json_lines();
    let named = lines.iter().filter(|line| line["name"] != "DAY_ENDED");
    let named: Spans = named.map(|line| (number(&line["payload"]["id"]), line["span"].as_u64())).collect();
    assert_eq!(named, expected(orders));
    let of_second =
        run!("watch", &shop, "--from", "oldest", "--json", "--count", "3", "--span", &orders[&2].to_string());
    let ids: Vec<u64> = of_second.json_lines().iter().map(|line| number(&line["payload"]["id"])).collect();
    assert_eq!(ids, [2, 12, 22]);
    let stock = run!("watch", &beside(place, "stock"), "--from", "oldest", "--json", "--count", "2").json_lines();
    assert_eq!(
        stock.iter().map(|line| &line["ext"]).collect::<Vec<_>>(),
        [&json!([0, 0, 0, 0]), &json!([0, 0, 0, 77])]
    );
    assert!(stock[1].get("span").is_none());
}

fn check_exports(place: &Path) -> BTreeMap<u64, u64> {
    let capture = beside(place, "evc");
    let rings = [place.to_owned(), beside(place, "shop"), beside(place, "stock")];
    run!("capture", &rings, "-o", &capture, "--now").ends(0);

    let lines = run!("export", &capture, "--format", "jsonl", "-o", "-").json_lines();
    let orders = lines.iter().filter(|line| line["type"] == "span" && line["name"] == "order");
    let orders: BTreeMap<u64, u64> = orders.map(|line| (number(&line["fields"]["id"]), number(&line["id"]))).collect();
    let of_type =
        |name: &'static str| lines.iter().filter(move |line| line["type"] == "typed_event" && line["name"] == name);
    let named = of_type("ORDER_PLACED").chain(of_type("ORDER_NOTED"));
    let named: Spans = named.map(|line| (number(&line["payload"]["id"]), line["span"].as_u64())).collect();
    assert_eq!(named, expected(&orders));
    assert!(of_type("COUNTED").count() == 6 && of_type("COUNTED").all(|line| line["span"].is_null()));

    for view in ["thread", "span"] {
        let chrome = beside(place, "json");
        run!("export", &capture, "--format", "chrome", "--view", view, "-o", &chrome, "--force");
        let trace: Value = serde_json::from_slice(&fs::read(&chrome).unwrap()).unwrap();
        let events = trace["traceEvents"].list();
        // The row of each order's span must be the row of its events.
        let row_of = |span: u64| {
            let drawn = |event: &&Value| event["name"] == "order" && event["args"]["span_id"] == span;
            &events.iter().find(drawn).unwrap_or_else(|| panic!("span {span}, {view} view"))["tid"]
        };
        let placed: Vec<&Value> = events.iter().filter(|event| event["name"] == "ORDER_PLACED").collect();
        assert_eq!(placed.len(), 10);
        for event in placed {
            let span = expected(&orders)[&number(&event["args"]["id"])];
            assert_eq!(event["args"]["span_id"].as_u64(), span, "{event}");
            match span {
                Some(span) => assert_eq!(&event["tid"], row_of(span), "{event}, {view} view"),
                None => assert!(orders.values().all(|span| *row_of(*span) != event["tid"]), "{event}, {view} view"),
            }
        }
        let perfetto = beside(place, "perfetto-trace");
        run!("export", &capture, "--view", view, "-o", &perfetto, "--force");
        let Some(trace) = consumers::read("perfetto_slices.py", &perfetto) else { continue };
        let instants = trace["instants"].list();
        let placed: Spans = instants
            .iter()
            .filter(|instant| instant["name"].as_str().is_some_and(|name| name.starts_with("ORDER_")))
            .map(|instant| (number(&instant["args"]["id"]), instant["args"]["span_id"].as_u64()))
            .collect();
        assert_eq!(placed, expected(&orders));
        for instant in instants.iter().filter(|instant| instant["args"]["span_id"].is_u64()) {
            assert!(instant["inside"].list().contains(&instant["args"]["span_id"]), "{instant}");
        }
    }
    orders
}

#[test]
fn a_typed_event_is_drawn_in_its_span() {
    let test = plays!(program());
    let (_directory, [place]) = places(["perf"]);
    let mut talk = Talk::told(test, "program", &place, "recorded");
    check_merged(&place);
    let orders = check_exports(&place);
    check_watch(&place, &orders);
    assert!(talk.end().success());
}
