//! `watch` of live rings selects events by their content.

use crate::fixtures::*;
use crate::terminal::Terminal;
use tracing::debug;

#[derive(EventPayload, Clone, Copy)]
struct Placed {
    price: u64,
    parcels: u16,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", ext(0 = order: seqno, 1 = line: index))]
#[repr(u16)]
enum Shop {
    #[event(payload = Placed)]
    Placed = 2,
    #[event(payload = Placed)]
    Shipped = 3,
}

/// Asks for all events of a ring, as they would come from a live one: without this option, a ring without a writer is
/// read like a file if events are selected.
const AS_LIVE: [&str; 2] = ["--last", "1000000"];

/// Returns what a watch of the whole ring or file shows: for each line its type, and its name or text.
fn shown(ring: &str, options: &[&str]) -> Vec<String> {
    let all = if ring.ends_with(".evc") { ["--from", "oldest"] } else { AS_LIVE };
    let lines = run!("watch", ring, all, "--json", options).json_lines();
    let text = |line: &Value| {
        let payload = &line["payload"];
        let said = payload["fields"]["message"].as_str().or(payload["name"].as_str()).unwrap_or_default();
        format!("{} {said}", line["name"].text()).trim_end().to_owned()
    };
    lines.iter().map(text).collect()
}

#[test]
fn a_live_ring_of_spans_is_selected_by_span_duration_thread_level_target_and_fields() {
    let (dir, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    dispatcher::with_default(&dispatch, || {
        info_span!(target: "shop::web", "request", user = "ada").in_scope(|| {
            info_span!(target: "shop::db", "query", rows = 7_u64).in_scope(|| debug!(target: "shop::db", "slow query"));
            thread::sleep(Duration::from_millis(20));
        });
        info_span!(target: "shop::web", "request", user = "bob").in_scope(|| info!(target: "shop::web", "quick"));
    });
    let other = || dispatcher::with_default(&dispatch, || info!(target: "shop::jobs", "from a worker"));
    thread::scope(|scope| _ = thread::Builder::new().name("worker".into()).spawn_scoped(scope, other).unwrap());
    // A ring that has ended is shown to its end.
    drop(dispatch);
    let ring = argument(&ring);
    let query = ["SPAN_NEW query", "SPAN_ENTER query", "EVENT slow query", "SPAN_EXIT query", "SPAN_CLOSE query"];
    assert_eq!(shown(ring, &["--span", "query"]), query);
    assert_eq!(shown(ring, &["--span", "shop::db::query"]), query);
    // A span has everything in it, and nothing outside of it.
    let all = 2 * 4 + query.len() + 1;
    assert_eq!(shown(ring, &["--span", "request"]).len(), all);
    assert_eq!(shown(ring, &["--span", "query", "--span", "shop::web::request"]).len(), all);
    run!("watch", ring, "--span", "query", "--span", "7").ends(2);
    assert_eq!(shown(ring, &["--min-duration", "15ms"]), ["SPAN_CLOSE request"]);
    assert_eq!(shown(ring, &["--thread", "worker"]), ["EVENT from a worker"]);
    assert_eq!(shown(ring, &["--target", "shop::j*"]), ["EVENT from a worker"]);
    assert!(!shown(ring, &["--level", "info"]).contains(&"EVENT slow query".to_owned()));
    assert_eq!(shown(ring, &["--where", "level>=INFO"]), ["EVENT quick", "EVENT from a worker"]);
    // The fields of a span are known until its end.
    assert_eq!(shown(ring, &["--where", "field.user=bob level>=INFO"]), ["EVENT quick"]);
    assert_eq!(shown(ring, &["--where", "field.rows>=7", "--type", "SPAN_CLOSE"]), ["SPAN_CLOSE query"]);
    assert_eq!(shown(ring, &["--where", "event=*main* or span=query dur>0s"]), ["SPAN_CLOSE query"]);
    // The same of a capture.
    let file = place(&dir, "shop.evc");
    run!("capture", ring, "--now", "-o", &file).ends(0);
    let of_file = |condition: &str| {
        let lines = run!("watch", &file, "--json", "--where", condition).json_lines();
        lines.iter().filter(|line| line["name"] == "EVENT").count()
    };
    assert_eq!((of_file("level>=INFO"), of_file("field.user=bob level>=INFO")), (2, 1));
    // A ring without a writer is read like a file: a span that lasts long comes with everything in it.
    let watched = |of: &str, options: &[&str]| {
        let mut lines = run!("watch", of, "--json", options).json_lines();
        // A ring is named as on the command line.
        lines.iter_mut().for_each(|line| line["ring"] = line["ring"].text().rsplit('/').next().into());
        lines
    };
    let of_ring = |options: &[&str]| watched(ring, options);
    let in_file = |options: &[&str]| watched(argument(&file), options);
    let selections: [&[&str]; 4] = [
        &["--min-duration", "15ms"],
        &["--where", "dur>15ms or span=query"],
        &["--span", "query", "--from", "oldest"],
        &["--thread", "worker", "--to", "+10s"],
    ];
    for options in selections {
        assert_eq!(of_ring(options), in_file(options), "{options:?}");
        assert!(!of_ring(options).is_empty(), "{options:?}");
    }
    let named =
        run!("watch", ring, "--json", "--where", "level=INFO", "--ring", "shop", "--ring", "shop.1").json_lines();
    let names: BTreeSet<&str> = named.iter().filter_map(|line| line["ring"].as_str()).collect();
    assert_eq!(names, BTreeSet::from([ring, &format!("{ring}.1")]));
    assert!(of_ring(&["--min-duration", "15ms"]).len() > shown(ring, &["--min-duration", "15ms"]).len());
    // As of rings, without the descriptions of call sites and threads.
    for option in [["--where", "span=request"], ["--span", "query"], ["--min-duration", "15ms"], ["--thread", "worker"]]
    {
        let of_file = shown(argument(&file), &option);
        assert!(!of_file.is_empty(), "{option:?}");
        let describes = |line: &&String| line.starts_with("CALL_SITE") || line.starts_with("THREAD_");
        assert_eq!(of_file.iter().find(describes), None, "{option:?}: {of_file:?}");
    }
    assert!(shown(argument(&file), &[]).iter().any(|line| line.starts_with("CALL_SITE")));
    let limited = run!("watch", &file, "--json", "--span", "query", "--limit", "5").json_lines();
    assert_eq!(limited.iter().filter(|line| line["name"].is_string()).count(), query.len(), "{limited:?}");
    assert!(limited.iter().any(|line| line["name"] == "SPAN_CLOSE"), "{limited:?}");
    // Of a capture, a span that fulfils a condition comes with everything in it.
    let lines = |condition: &str| {
        let lines = run!("export", &file, "--format", "jsonl", "--where", condition).json_lines();
        let is_shown = |line: &&Value| line["type"] == "span" || line["type"] == "event";
        let text = |line: &Value| {
            line["message"].as_str().or(line["fields"]["message"].as_str()).or(line["name"].as_str()).map(str::to_owned)
        };
        lines.iter().filter(is_shown).filter_map(text).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(lines("dur>15ms"), ["query", "request", "slow query"]);
    assert_eq!(lines("field.user=bob"), ["quick", "request"]);
    assert_eq!(lines("span=query"), ["query", "slow query"]);
    // A name with its target, as of a live ring.
    for condition in ["span=shop::db::query", "span=shop::db::*", "span=*::query"] {
        assert_eq!(lines(condition), ["query", "slow query"], "{condition}");
        assert_eq!(shown(ring, &["--where", condition]), query, "{condition}");
    }
    assert_eq!(lines("span!=shop::*").len(), 0);
    assert_eq!(lines("level=INFO not span=request"), ["from a worker"]);
    let summary = run!("summary", &file, "--json", "--where", "span=request field.user=ada").json();
    let counts: Vec<_> =
        summary["spans"].list().iter().map(|span| (span["name"].clone(), span["count"].clone())).collect();
    assert_eq!(counts, [("request".into(), 1.into()), ("query".into(), 1.into())]);
    run!("summary", &file, "--where", "field.usr=ada").fails(2, "no event has a field `usr`; there are");
    run!("summary", &file, "--where", "field.user=eve").fails(2, "nothing of the capture is so");
    // Some terms are not about single events.
    run!("watch", ring, "--where", "open>2s").fails(2, "`open>2s` is not about a single event");
    run!("watch", ring, AS_LIVE, "--count", "1", "--where", "field.usr=ada or level>=INFO")
        .warns("so far, no event has a field `usr`; there are");
}

#[test]
fn a_span_whose_beginning_is_overwritten_lasts_since_the_first_event_that_names_it() {
    let (_dir, [ring]) = places(["shop"]);
    let recorder = spans_in(&ring).shifts(15, 21).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    tracing::dispatcher::with_default(&dispatch, || {
        let outer = info_span!("outer");
        (0..40_000).for_each(|_| debug!("early"));
        drop(info_span!(parent: &outer, "inner"));
        std::thread::sleep(Duration::from_millis(20));
    });
    drop(dispatch);
    let lines = run!("watch", &ring, AS_LIVE, "--json", "--min-duration", "15ms").json_lines();
    let of_events: Vec<&Value> = lines.iter().filter(|line| line["name"].is_string()).collect();
    assert_eq!(of_events.len(), 1, "{lines:?}");
    assert_eq!((of_events[0]["name"].text(), of_events[0]["payload"]["name"].text()), ("SPAN_CLOSE", "outer"));
}

#[derive(EventPayload, Clone, Copy)]
struct Share {
    part: f32,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 302, name = "SHARES")]
#[repr(u16)]
enum Shares {
    #[event(payload = Share)]
    Given = 2,
}

#[test]
fn a_number_of_32_bits_is_compared_as_it_is_shown() {
    let (_dir, [path, file]) = places(["shares", "shares.evc"]);
    let recorder = typed_in::<Shares>(&path).shifts(15, 21).keep(true).build().unwrap();
    for part in [0.1_f32, 0.3, 0.5] {
        recorder.record(Shares::Given.code(), [0; 4], &eventring::schema::encode_array(&[Share { part }]));
    }
    drop(recorder);
    run!("capture", &path, "--now", "-o", &file).ends(0);
    let count = |arguments: &[&str]| run(arguments).out.matches("GIVEN").count();
    for (condition, of) in
        [("=0.1", 1), ("!=0.1", 2), ("<=0.1", 1), ("<0.3", 1), (">=0.3", 2), (">0.3", 1), ("=0.5", 1), ("=1", 0)]
    {
        let condition = format!("field.part{condition}");
        assert_eq!(count(&["watch", argument(&path), "--from", "oldest", "--json", "--where", &condition]), of);
        assert_eq!(count(&["find", &condition, argument(&file), "--json"]), of, "{condition}");
    }
}

#[test]
fn a_terminal_that_is_too_slow_gets_a_count_and_a_rate_and_nothing_is_lost() {
    let (dir, [path]) = places(["shop"]);
    let recorder = typed_in::<Shop>(&path).shifts(17, 24).build().unwrap();
    let payload = eventring::schema::encode_array(&[Placed { price: 1, parcels: 2 }]);
    let mut watch = program!("watch", &path, "--from", "oldest");
    watch.env("EVENTRING_DIR", dir.path());
    recorder.record(Shop::Placed.code(), [0; 4], &payload);
    let mut terminal = Terminal::start(watch, (200, 30));
    terminal.wait(&["PLACED"]);
    // Nobody reads the terminal while several laps are recorded, in steps that a reader keeps up with.
    let events = 600_000_u64;
    for batch in 0..600 {
        for order in 0..1000 {
            recorder.record(Shop::Placed.code(), [batch * 1000 + order, 0, 0, 0], &payload);
        }
        thread::sleep(Duration::from_millis(5));
    }
    drop(recorder);
    assert!(terminal.end().success());
    let written = String::from_utf8_lossy(&terminal.written);
    let plain = anstream::adapter::strip_str(&written).to_string();
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let notes = plain.lines().filter_map(|line| line.strip_prefix("── ")?.split_once(" events not shown: "));
    assert!(notes.count() > 0, "no note in {} bytes", plain.len());
    let summary = plain.lines().rev().find(|line| line.contains("events shown")).unwrap();
    let words: Vec<&str> = summary.split([' ']).collect();
    let before = |word: &str| number(words[words.iter().position(|it| it.starts_with(word)).unwrap() - 1]);
    assert_eq!(before("events") + before("more"), events + 1, "{summary}");
    assert!(before("more") > 100_000 && plain.contains("none lost"), "{summary}");
}

#[test]
fn a_terminal_is_waited_for_if_nobody_writes_the_ring_any_more() {
    let (_dir, [path]) = places(["shop"]);
    let recorder = typed_in::<Shop>(&path).shifts(17, 24).keep(true).build().unwrap();
    let payload = eventring::schema::encode_array(&[Placed { price: 1, parcels: 2 }]);
    for order in 0..50_000 {
        recorder.record(Shop::Placed.code(), [order, 0, 0, 0], &payload);
    }
    drop(recorder);
    let mut terminal = Terminal::start(program!("watch", &path), (200, 30));
    // Nobody reads the terminal for a while.
    thread::sleep(Duration::from_millis(400));
    assert!(terminal.end().success());
    let plain = anstream::adapter::strip_str(&String::from_utf8_lossy(&terminal.written)).to_string();
    assert_eq!(plain.matches("PLACED").count(), 50_000);
    assert!(plain.contains("50,000 events shown") && !plain.contains("not shown"), "{}", &plain[plain.len() - 500..]);
}

#[test]
fn a_condition_on_an_extension_word_takes_both_of_its_names_and_one_on_a_field_that_no_event_has_is_refused() {
    let (_dir, [path]) = places(["shop"]);
    let recorder = typed_in::<Shop>(&path).shifts(15, 21).keep(true).build().unwrap();
    for order in 1..=3_u64 {
        let placed = Placed { price: order * 100, parcels: 2 };
        let payload = eventring::schema::encode_array(&[placed]);
        recorder.record(Shop::Placed.code(), [order, 1, 0, 0], &payload);
    }
    drop(recorder);
    let orders = |condition: &str| {
        let lines = run!("watch", path, "--from", "oldest", "--json", "--where", condition).json_lines();
        lines.iter().map(|line| line["order_seqno"].number()).collect::<Vec<_>>()
    };
    assert_eq!(orders("field.order=2"), [2]);
    // As JSON calls it.
    assert_eq!(orders("field.order_seqno=2"), [2]);
    assert_eq!(orders("field.price>=200 event=PLACED"), [2, 3]);
    assert_eq!(orders("not field.price=100"), [2, 3]);
    for (verb, option) in [("watch", "--where"), ("capture", "--on")] {
        let refused = run!(verb, path, option, "field.prize>1").ends(2);
        let said = "no event has a field `prize`; there are ";
        let (_, names) = refused.err.split_once(said).unwrap_or_else(|| panic!("{refused:?}"));
        assert!(names.contains(" order, order_seqno, parcels, price, "), "{names}");
    }
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "STORE")]
#[repr(u16)]
enum Store {
    /// Has the code of [`Shop::Placed`].
    ShelfFilled = 2,
    /// Has the name, but not the code, of [`Shop::Shipped`].
    Shipped = 5,
}

#[test]
fn a_type_is_selected_by_its_name_in_each_schema_and_not_by_its_code_in_all() {
    let dir = directory();
    let places = ["shop", "store", "chain"].map(|name| place(&dir, name));
    let recorder = |content: ContentDescription, place: &Path| {
        Recorder::builder(content).config(argument(place)).shifts(15, 21).compact(true).keep(true).build().unwrap()
    };
    let shop = recorder(ContentDescription::from_event_type::<Shop>(), &places[0]);
    let store = recorder(ContentDescription::from_event_type::<Store>(), &places[1]);
    let chain = recorder(ContentDescription::from_event_type::<ExecEvent>(), &places[2]);
    let placed = eventring::schema::encode_array(&[Placed { price: 1, parcels: 2 }]);
    shop.record(Shop::Placed.code(), [1, 1, 0, 0], &placed);
    shop.record(Shop::Shipped.code(), [1, 1, 0, 0], &placed);
    store.record(Store::ShelfFilled.code(), [1, 1, 0, 0], &[]);
    store.record(Store::Shipped.code(), [1, 1, 0, 0], &[]);
    chain.record(ExecEvent::TxnHeaderEnd.code(), [1, 1, 0, 0], &[]);
    drop((shop, store, chain));
    let file = place(&dir, "all.evc");
    let rings = places.each_ref().map(|place| argument(place));
    let all = [&["capture", "--now", "-o", argument(&file)], &rings[..]].concat();
    run(&all).ends(0);
    let names = |of: &[&str], options: &[&str]| {
        let lines = run!("watch", "--json", of, options).json_lines();
        let mut names: Vec<String> = lines.iter().filter_map(|line| line["name"].as_str().map(str::to_owned)).collect();
        names.sort();
        names
    };
    for of in [&[&rings[..], &["--from", "oldest"]].concat()[..], &[argument(&file)]] {
        assert_eq!(names(of, &["--type", "PLACED"]), ["PLACED"]);
        assert_eq!(names(of, &["--type", "ShelfFilled"]), ["SHELF_FILLED"]);
        assert_eq!(names(of, &["--type", "shipped"]), ["SHIPPED", "SHIPPED"]);
        assert_eq!(names(of, &["--type", "2"]).len(), 2, "a number is the code in any schema");
        // So it is with the words of a block and a transaction.
        assert_eq!(names(of, &["--block", "1"]), ["TXN_HEADER_END"]);
        assert_eq!(names(of, &["--txn", "0"]), ["TXN_HEADER_END"]);
        assert_eq!(names(of, &["--where", "event=PLACED"]), ["PLACED"]);
        assert_eq!(names(of, &["--where", "event=ShelfFilled"]), ["SHELF_FILLED"]);
        assert_eq!(names(of, &["--where", "event=shelf_filled or event=5"]), ["SHELF_FILLED", "SHIPPED"]);
        assert_eq!(names(of, &["--where", "event!=Shipped event!=TxnHeaderEnd"]), ["PLACED", "SHELF_FILLED"]);
        assert_eq!(names(of, &["--where", "event=2"]), names(of, &["--type", "2"]));
    }
    // Types of one name are counted apart, and shown with their content types.
    let of_name = |verb: &[&str], name: &str| {
        let json = run!(verb, &file, "--json").json();
        let events = json["events"].list().iter().filter(|event| event["name"] == name);
        events.map(|event| event["content"].text().to_owned()).collect::<BTreeSet<_>>()
    };
    for verb in [&["summary"][..], &["top", "--once"]] {
        assert_eq!(of_name(verb, "SHIPPED").into_iter().collect::<Vec<_>>(), ["SHOP", "STORE"]);
    }
    let summary = run!("summary", &file).out;
    assert!(summary.contains("SHOP::SHIPPED ") && summary.contains("STORE::SHIPPED "), "{summary}");
    assert!(summary.contains("\nPLACED "), "{summary}");
    // What is captured is selected by the same names.
    let kept = place(&dir, "kept.evc");
    let capture = run!(&all[..3], &kept, "--type", "ShelfFilled", "--type", "placed", &rings).ends(0);
    assert!(!capture.err.contains("was seen"), "{capture:?}");
    assert_eq!(names(&[argument(&kept)], &[]), ["PLACED", "SHELF_FILLED"]);
    let missing = run!("watch", &file, "--type", "PLACE").fails(2, "there is no event of that name; there are");
    assert_eq!(missing.err.matches("RECORD_ERROR").count(), 1, "{missing:?}");
}
