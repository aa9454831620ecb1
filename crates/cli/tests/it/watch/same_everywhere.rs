//! The same selection shows the same events: `watch` of rings and of a file, `capture`, and `find` for what an event says
//! by itself.

use crate::broker::place::Place;
use crate::consumers;
use crate::fixtures::*;
use crate::random_program;
use eventring_stress::random::Random;

/// The number of random selections, or what EVENTRING_SELECTIONS says.
const SELECTIONS: u64 = 40;
/// The number of random conditions of triggers, or what EVENTRING_SELECTIONS says.
const TRIGGERS: u64 = 10;
/// One selection of so many is forwarded.
const FORWARDED: u64 = 4;

/// Returns a random term; each third one asks for a name of spans.
fn term(seeded: &mut Random) -> &'static str {
    const OF_SPANS: [&str; 6] =
        ["span=request", "span=query", "span=fetch", "span=step", "span=shop::db::*", "span!=fetch"];
    const OTHERS: [&str; 14] = [
        "event=OrderPlaced",
        "event=ORDER_*",
        "event=3",
        "target=shop::db",
        "target!=shop::web",
        "thread=w1",
        "level>=WARN",
        "level=INFO",
        "field.number=3",
        "field.number<2",
        "field.user=ada",
        "field.price>=6",
        "field.order=2",
        "field.user!=bob",
    ];
    let terms = if seeded.below(3) == 0 { &OF_SPANS[..] } else { &OTHERS };
    terms[seeded.below(terms.len() as u64) as usize]
}

fn condition(seeded: &mut Random, depth: u64) -> String {
    if depth > 1 || seeded.below(3) == 0 {
        let not = if seeded.below(4) == 0 { "not " } else { "" };
        return format!("{not}{}", term(seeded));
    }
    let (one, other) = (condition(seeded, depth + 1), condition(seeded, depth + 1));
    let between = if seeded.below(2) == 0 { "or" } else { "and" };
    format!("({one}) {between} ({other})")
}

/// Returns random options of a selection.
fn options(seeded: &mut Random) -> Vec<String> {
    let mut options = Vec::new();
    for (option, values) in [
        ("--span", &["query", "shop::web::request", "f*"][..]),
        ("--thread", &["w0", "w1"]),
        ("--target", &["shop::db", "shop::*"]),
        ("--max-level", &["warn", "info"]),
        ("--type", &["OrderPlaced", "ORDER_SHIPPED"]),
    ] {
        if seeded.below(6) == 0 {
            options.extend([option.to_owned(), values[seeded.below(values.len() as u64) as usize].to_owned()]);
        }
    }
    if options.is_empty() || seeded.below(2) == 0 {
        options.extend(["--where".to_owned(), condition(seeded, 0)]);
    }
    options
}

fn check_same(found: &Seqnos, expected: &Seqnos, what: &str) {
    let differs: Vec<_> = found.symmetric_difference(expected).take(5).collect();
    assert!(differs.is_empty(), "{what}: {} for {}, {differs:?}", found.len(), expected.len());
}

/// The rings and seqnos of events, without descriptions of threads and call sites.
type Seqnos = BTreeSet<(String, u64)>;

/// Spans by their ids, log records by thread and time, and typed events by their seqnos: what `watch --json` and `export
/// --format jsonl` both name.
#[derive(Default, Debug, PartialEq, Eq)]
struct Named {
    spans: BTreeSet<u64>,
    records: BTreeSet<(u64, u64)>,
    typed: BTreeSet<u64>,
}

impl Named {
    fn of_watch(lines: &[Value]) -> Self {
        let mut named = Self::default();
        for line in lines {
            let payload = &line["payload"];
            _ = match line["name"].as_str() {
                Some("SPAN_NEW") => named.spans.insert(payload["span"].number()),
                Some("EVENT") => named.records.insert((payload["thread"]["id"].number(), line["ts_ns"].number())),
                Some(name) if name.starts_with("ORDER_") => named.typed.insert(line["seqno"].number()),
                _ => false,
            };
        }
        named
    }

    fn of_export(lines: &[Value]) -> Self {
        let mut named = Self::default();
        for line in lines {
            _ = match line["type"].text() {
                "span" => named.spans.insert(line["id"].number()),
                "event" => named.records.insert((line["thread"]["id"].number(), line["time_ns"].number())),
                "typed_event" => named.typed.insert(line["seqno"].number()),
                _ => false,
            };
        }
        named
    }

    fn counts(&self) -> [u64; 3] {
        [self.spans.len(), self.records.len(), self.typed.len()].map(|count| count as u64)
    }
}

/// Checks that the selection of a file is the same in `export` and `summary` as in `watch`.
fn check_export_and_summary(file: &str, options: &[&str]) {
    let watched = Named::of_watch(&run!("watch", file, "--json", options).json_lines());
    let exported = Named::of_export(&run!("export", file, "--format", "jsonl", options).json_lines());
    assert_eq!(exported, watched, "{options:?}");
    let summary = run!("summary", file, "--json", options);
    let summary =
        if summary.code == Some(0) { summary.json() } else { json!({"spans": [], "log_records": 0, "events": []}) };
    let sum = |rows: &str| -> u64 { summary[rows].list().iter().map(|row| row["count"].number()).sum() };
    assert_eq!([sum("spans"), summary["log_records"].number(), sum("events")], watched.counts(), "{options:?}");
}

/// Returns the events that a program shows; `None` if it refuses the selection, as one that nothing of a file fulfils.
fn shown(arguments: &[&str]) -> Option<Seqnos> {
    let shown = run(arguments);
    if shown.code == Some(2) && !shown.err.contains("nothing of the capture is so") {
        return None;
    }
    assert!([Some(0), Some(2), Some(19)].contains(&shown.code), "{arguments:?}: {shown:?}");
    let lines = if shown.code == Some(2) { Vec::new() } else { shown.json_lines() };
    let of_event = |line: &Value| {
        let describes = |name: &str| name.starts_with("THREAD_") || name == "CALL_SITE";
        line["name"].as_str().filter(|name| !describes(name))?;
        // A live ring is named as on the command line.
        let ring = line["ring"].as_str()?.rsplit('/').next()?.to_owned();
        Some((ring, line["seqno"].as_u64()?))
    };
    Some(lines.iter().filter_map(of_event).collect())
}

#[test]
fn a_selection_shows_the_same_events_of_rings_of_a_file_and_as_a_filter_of_a_capture() {
    let selections = std::env::var("EVENTRING_SELECTIONS").map_or(SELECTIONS, |count| count.parse().unwrap());
    let mut seeded = Random(7);
    let dir = directory();
    let [shop, orders, all, taken] = ["shop", "orders", "all.evc", "taken.evc"].map(|name| place(&dir, name));
    random_program::record(&shop, &orders, 4, 7);
    let [shop, orders, all, taken] = [&shop, &orders, &all, &taken].map(|path| argument(path));
    run!("capture", shop, orders, "-o", all).ends(0);
    let (mut compared, mut events, place) = (0_u64, 0, Place::new());
    for _ in 0..selections {
        let options = options(&mut seeded);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let of = |arguments: &[&str]| shown(&[arguments, &options].concat());
        // With `--last`, rings are read as live ones; without it, as a file.
        let Some(of_rings) = of(&["watch", shop, orders, "--last", "1000000", "--json"]) else { continue };
        check_same(&of(&["watch", shop, orders, "--json"]).unwrap(), &of_rings, &format!("watch RINGS {options:?}"));
        let of_file = of(&["watch", all, "--json"]).unwrap();
        check_same(&of_file, &of_rings, &format!("watch FILE {options:?}"));
        run!("capture", shop, orders, "-o", taken, "--force", &options).ends(0);
        let of_capture = shown(&["watch", taken, "--json"]).unwrap();
        check_same(&of_capture, &of_rings, &format!("capture {options:?}"));
        check_export_and_summary(all, &options);
        if let Some(place) = place.as_ref().filter(|_| compared % FORWARDED == 0) {
            let (address, stream) = (place.broker.address(), format!("S{compared}"));
            let to = ["--to", &address, "--stream", &stream, "--host", "h"];
            run!("forward", shop, orders, to, &options).ends(0);
            run!("receive", &address, "--stream", &stream, "--until-idle", "300ms", "-o", taken, "--force").ends(0);
            check_same(&shown(&["watch", taken, "--json"]).unwrap(), &of_rings, &format!("forward {options:?}"));
        }
        if let ["--where", condition] = options[..]
            && !condition.contains("not ")
        {
            // What says of itself that it fulfils the condition is selected, with more beside. (A log record does not say
            // what its span has, so without it more events are not so.)
            let hits = shown(&["find", condition, all, "--json"]).unwrap_or_default();
            assert!(
                hits.is_subset(&of_rings),
                "find {condition}: {:?}",
                hits.difference(&of_rings).collect::<Vec<_>>()
            );
        }
        (compared, events) = (compared + 1, events + of_rings.len());
    }
    // Some selections can hold for nothing, and are refused.
    assert!(compared * 2 > selections && events > 0, "{compared} of {selections} compared, {events} events");
}

#[test]
fn a_trigger_fires_as_often_as_an_independent_reader_says() {
    let conditions = std::env::var("EVENTRING_SELECTIONS").map_or(TRIGGERS, |count| count.parse().unwrap());
    let (mut seeded, mut compared, mut sum) = (Random(11), 0, 0);
    // Many only exclude something, or can never hold, and are refused: others are tried in their place.
    for seed in 0..4 * conditions {
        if compared == conditions {
            break;
        }
        let (dir, condition) = (directory(), condition(&mut seeded, 0));
        let [shop, orders, all, out] = ["shop", "orders", "all.evc", "{n}.evc"].map(|name| place(&dir, name));
        let [ring, other, all, out] = [&shop, &orders, &all, &out].map(|path| argument(path));
        // One file is written; what fires later is counted.
        let on = ["--on", &condition, "--max-files", "1", "--debounce", "0", "-o", out];
        // There is no ring yet: otherwise the condition is refused, as one that can never hold.
        if !run!("capture", ring, on).err.contains("does not exist") {
            continue;
        }
        let mut watch = live!("capture", ring, other, "--wait", "--json", on);
        watch.notice("waiting for");
        random_program::record(&shop, &orders, 1, seed);
        let watched = watch.end();
        let watched = watched.ends(0).json();
        run!("capture", ring, other, "-o", all).ends(0);
        let Some(mut oracle) = consumers::script("oracle") else { return };
        let counted = oracle.env("ORACLE_CONDITION", &condition).arg(all).output().unwrap();
        let expected: u64 = String::from_utf8(counted.stdout).unwrap().trim().parse().unwrap();
        let fired = watched["fired"].number() + watched["suppressed"].number() + watched["debounced"].number();
        assert_eq!(fired, expected, "{condition}: {watched}");
        (compared, sum) = (compared + 1, sum + fired);
    }
    assert!(compared == conditions && sum > 0, "{compared} of {conditions} compared, {sum} fired");
}

#[test]
fn what_a_name_is_not_asks_for_a_name_that_is_known() {
    let (_dir, [shop, orders, all]) = places(["shop", "orders", "all.evc"]);
    // The beginnings of spans are overwritten, so only others in them say that they are there.
    random_program::record(&shop, &orders, 600, 3);
    run!("capture", &shop, &orders, "-o", &all).ends(0);
    let (mut of_rings, mut of_file) = (0, 0);
    for condition in ["target=shop::*", "span=shop::*", "span=request", "thread=w1", "span=*"] {
        let condition = format!("not {condition}");
        let watched = |what: &[&str]| shown(&[&["watch", "--json", "--where", &condition], what].concat()).unwrap();
        let as_live = [argument(&shop), argument(&orders), "--last", "10000000"];
        let (rings, file) = (watched(&as_live), watched(&[argument(&all)]));
        assert!(rings.is_subset(&file), "{condition}: {:?}", rings.difference(&file).take(3).collect::<Vec<_>>());
        (of_rings, of_file) = (of_rings + rings.len(), of_file + file.len());
    }
    assert!(of_rings > 0 && of_file > of_rings, "{of_rings} of {of_file}");
}

/// Makes a ring of spans, then, later than a look and sooner than the next read, one of typed events of its spans.
#[test]
fn a_trigger_and_a_filter_know_the_span_of_an_event_whose_ring_was_made_later() {
    for pause in [1, 5, 20, 45].map(Duration::from_millis) {
        let (_dir, [spans, orders, out, selected]) = places(["spans", "orders", "{n}.evc", "selected.evc"]);
        let on = ["--on", "span=query event=OrderPlaced", "--max-files", "1", "--debounce", "0", "-o", argument(&out)];
        let mut watch = live!("capture", &spans, &orders, "--wait", "--json", on);
        watch.notice("waiting for");
        let only = ["--where", "span=query event=OrderPlaced", "-o", argument(&selected)];
        let mut capture = live!("capture", &spans, &orders, "--wait", "--json", only);
        capture.notice("waiting for");
        let dispatch = Dispatch::new(RecorderSubscriber::new(spans_in(&spans).keep(true).build().unwrap()));
        dispatcher::with_default(&dispatch, || {
            info_span!("query").in_scope(|| {});
            thread::sleep(pause);
            random_program::place_orders(&orders, 5);
        });
        drop(dispatch);
        let watched = watch.end();
        let watched = watched.ends(0).json();
        let fired = watched["fired"].number() + watched["suppressed"].number() + watched["debounced"].number();
        assert_eq!(fired, 5, "{pause:?}: {watched}");
        capture.end().ends(0);
        let orders = shown(&["watch", argument(&selected), "--json"]).unwrap();
        assert_eq!(orders.iter().filter(|(ring, _)| ring == "orders").count(), 5, "{pause:?}");
    }
}

#[test]
fn a_selection_changes_nothing_of_what_became_of_a_span_after_losses_and_where_a_file_ends() {
    let dir = directory();
    let [shop, orders, all] = ["shop", "orders", "all.evc"].map(|name| place(&dir, name));
    // So many events that their rings hold only the end of them.
    random_program::record(&shop, &orders, 600, 3);
    run!("capture", &shop, "-o", &all, "--rotate-size", "16k").ends(0);
    let mut became = [0; 3];
    for number in 1.. {
        let file = place(&dir, &format!("all.{number:04}.evc"));
        if !file.exists() {
            break;
        }
        let spans = |options: &[&str]| -> BTreeMap<u64, Value> {
            let lines = run!("export", &file, "--format", "jsonl", options).json_lines();
            let queries = lines.into_iter().filter(|line| line["type"] == "span" && line["name"] == "query");
            // The trace is that of the root, which is not selected.
            let without_trace = |mut line: Value| {
                (line["id"].number(), {
                    line["trace_id"].take();
                    line
                })
            };
            queries.map(without_trace).collect()
        };
        let (of_all, selected) = (spans(&[]), spans(&["--where", "span=query"]));
        let differs = of_all.iter().find(|(id, span)| selected.get(id) != Some(span));
        assert!(differs.is_none(), "file {number}: {differs:?}, {:?}", differs.and_then(|(id, _)| selected.get(id)));
        assert_eq!(selected.len(), of_all.len());
        for (count, what) in became.iter_mut().zip(["open", "end_lost", "may_have_losses"]) {
            *count += of_all.values().filter(|span| span[what] == true).count();
        }
    }
    assert!(became[0] > 0 && became[2] > 0, "{became:?}");
}
