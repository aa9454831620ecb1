//! Another process watches a live program that records spans and typed events. One name is enough to find all shards.
//! Threads and spans have their names. Each typed event names the span in which it was recorded: in the live watch
//! and in a program that knows its types.

use crate::fixtures::*;
use eventring::global::EXEC;
use eventring::schema::perf::FieldValue;
use eventring::tracing::{PerfItem, PerfReader, SpanId, SpanTree, TargetFilter, try_init_with};
use std::sync::Barrier;

const SHOPS: u64 = 4;
const SHARDS: usize = 3;
const ORDERS: u64 = 25;

fn exec_place(place: &Path) -> PathBuf {
    place.with_extension("exec")
}

/// Plays one thread of the program.
fn shop(shop: u64, recorder: &PerfRecorder, barrier: &Barrier) {
    info!("open");
    barrier.wait();
    while recorder.shard_count() < SHARDS {
        info!("open");
    }
    for n in 1..=ORDERS {
        let order = info_span!("order", shop, n);
        order.in_scope(|| {
            assert_ne!(record!(ExecEvent::TxnEnd; txn = shop * 1000 + n), 0);
            info_span!("payment").in_scope(|| warn!(shop, n, "sold"));
        });
    }
    // This event is in no span.
    assert_ne!(record!(ExecEvent::TxnEnd; txn = shop * 1000), 0);
}

/// Plays the program. It records ticks until the parent sends a line, and then does its work.
fn program() {
    EXEC.try_init::<ExecEvent>(exec_place(&child::place()).to_str().unwrap()).unwrap();
    let builder = spans_in(child::place()).shifts(15, 21).tables_shift(16).shards(SHARDS);
    let recorder = try_init_with(builder, TargetFilter::all()).unwrap().recorder().unwrap();
    let is_told = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            wait_for_parent();
            is_told.store(true, Ordering::Relaxed);
        });
        say("ticking");
        while !is_told.load(Ordering::Relaxed) {
            info!("tick");
            thread::sleep(Duration::from_millis(5));
        }
    });
    let barrier = Barrier::new(SHOPS as usize);
    thread::scope(|scope| {
        for number in 1..=SHOPS {
            let barrier = &barrier;
            let body = move || shop(number, recorder, barrier);
            thread::Builder::new().name(format!("shop {number}")).spawn_scoped(scope, body).unwrap();
        }
    });
    say("worked");
    wait_for_parent();
}

/// The span of each order, by shop and number.
type Orders = BTreeMap<(u64, u64), u64>;

#[track_caller]
fn check(orders: &Orders, by_exec: &BTreeMap<u64, Option<u64>>) {
    let all = (1..=SHOPS).flat_map(|shop| (1..=ORDERS).map(move |n| (shop, n)));
    assert!(orders.keys().copied().eq(all), "{orders:?}");
    assert_eq!(orders.values().collect::<BTreeSet<_>>().len(), orders.len(), "no two have the same span");
    assert_eq!(by_exec.len() as u64, SHOPS * (ORDERS + 1));
    for (txn, span) in by_exec {
        assert_eq!(*span, orders.get(&(txn / 1000, txn % 1000)).copied(), "the span of {txn}");
    }
}

/// Checks the output of `watch`.
fn check_lines(lines: &[Value], place: &Path) {
    let (mut orders, mut by_exec) = (Orders::new(), BTreeMap::new());
    let (mut rings, mut sold) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        assert!(line.get("gap").is_none(), "{line}");
        rings.insert(line["ring"].text().to_owned());
        let payload = &line["payload"];
        if line["name"] == "SPAN_NEW" && payload["name"] == "order" {
            let fields = &payload["fields"];
            let order = (number(&fields["shop"]), number(&fields["n"]));
            assert_eq!(payload["thread"]["name"], format!("shop {}", order.0));
            assert!(orders.insert(order, number(&payload["span"])).is_none(), "{line} twice");
        } else if line["name"] == "TXN_END" {
            let span = Some(number(&line["ext"][3])).filter(|span| *span != 0);
            assert!(by_exec.insert(number(&line["ext"][1]), span).is_none(), "{line} twice");
        } else if line["name"] == "EVENT" && payload["fields"]["message"] == "sold" {
            let order = (number(&payload["fields"]["shop"]), number(&payload["fields"]["n"]));
            assert_eq!(payload["thread"]["name"], format!("shop {}", order.0));
            assert_eq!((&payload["level"], &payload["target"]), (&"WARN".into(), &module_path!().into()));
            sold.insert(order);
        }
    }
    check(&orders, &by_exec);
    assert!(sold.iter().eq(orders.keys()));
    let name = place.display();
    let expected =
        [name.to_string(), format!("{name}.1"), format!("{name}.2"), exec_place(place).display().to_string()];
    assert_eq!(rings, BTreeSet::from(expected));
}

/// Checks the stream of spans and typed events together: the time of each typed event lies in the slice of its span.
/// (The check compares times, because threads that share a ring may record events out of the order of time.)
fn check_merged(place: &Path) {
    let exec = Reader::open_typed::<ExecEvent>(exec_place(place)).unwrap();
    let mut reader = PerfReader::open(place).unwrap().with_typed_events(&exec);
    let (mut records, mut business) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next_timeout(Duration::from_millis(30)) {
        match item {
            PerfItem::Record(record) => records.push(record),
            PerfItem::TypedEvent(record) => business.push(record),
            PerfItem::Gap { source, gap } => panic!("{source:?} {gap:?}"),
        }
    }
    let tree = SpanTree::from_records(&records);
    let mut orders = Orders::new();
    for span in tree.iter().filter(|span| span.name() == "order") {
        let [shop, n] = ["shop", "n"].map(|name| match span.fields.get(name) {
            Some(FieldValue::U64(value)) => *value,
            other => panic!("{name} is {other:?}"),
        });
        orders.insert((shop, n), span.id.get());
    }
    let mut by_exec = BTreeMap::new();
    for record in business {
        if let Some(span) = record.span {
            let slice = &tree.get(span).unwrap().slices[0];
            let stay = slice.entered_epoch_nanos.unwrap()..=slice.exited_epoch_nanos.unwrap();
            assert!(stay.contains(&record.descriptor.record_epoch_nanos), "{record:?} {stay:?}");
        }
        by_exec.insert(record.descriptor.content_ext[1], record.span.map(SpanId::get));
    }
    check(&orders, &by_exec);
}

#[test]
fn a_live_program_is_watched_on_all_its_shards_and_its_typed_events_name_their_spans() {
    let test = plays!(program());
    let (_directory, [place]) = places(["shop"]);
    let mut talk = Talk::told(test, "program", &place, "ticking");
    let mut live = live!("watch", &place, &exec_place(&place), "--json");
    // The watch shows a tick, so it has begun. Only now does the program make its other shards and do its work.
    let tick = loop {
        let line = live.json_line();
        if line["name"] != "THREAD_TIME" {
            break line;
        }
    };
    assert_eq!((&tick["name"], &tick["payload"]["fields"]["message"]), (&"EVENT".into(), &"tick".into()));
    // A new thread reads the output of the watch. If nobody read the output, the pipe would become full, and the watch
    // would have to wait.
    let watched = thread::spawn(|| live.end());
    std::io::Write::write_all(talk.child.stdin.as_mut().unwrap(), b"work\n").unwrap();
    assert_eq!(talk.hear(), "worked");
    check_merged(&place);
    assert!(talk.end().success());
    let watched = watched.join().unwrap().ends(0);
    check_lines(&watched.json_lines(), &place);
}
