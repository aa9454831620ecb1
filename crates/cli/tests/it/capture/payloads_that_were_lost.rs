//! A payload may be overwritten while its descriptor is still there. Every reader reports how many events of a
//! recording have lost their payload, and `--strict` counts them as losses. A span that has lost its fields does not
//! look like a span without fields.

use crate::fixtures::*;
use crate::shop::{Order, Shop};
use eventring::recordv;

pub(super) const SPANS: u64 = 1000;
/// The size of each payload in bytes. The payload buffer holds far fewer such payloads than the ring has descriptors.
pub(super) const TEXT_BYTES: usize = 8000;

pub(super) struct Recorded {
    pub(super) directory: TempDir,
    pub(super) spans: PathBuf,
    pub(super) orders: PathBuf,
}

/// Records spans and events with payloads of about `text_bytes` bytes. No descriptor is overwritten. Returns the
/// paths of the two rings.
pub(super) fn recorded(text_bytes: usize) -> Recorded {
    let (directory, [spans, orders]) = places(["shop", "shop-orders"]);
    let text = "x".repeat(text_bytes);
    let perf = spans_in(&spans).shifts(15, 21).tables_shift(16).shards(1).keep(true).build().unwrap();
    in_recorder(perf, || {
        for number in 0..SPANS {
            drop(info_span!("request", number, text).entered());
            drop(info_span!("bare").entered());
        }
    });
    let ring = typed_in::<Shop>(&orders).compact(true).shifts(15, 21).keep(true).build().unwrap();
    for id in 0..SPANS {
        recordv!(ring => Shop::OrderNoted, &Order { id }, [text.as_bytes()]);
    }
    Recorded { directory, spans, orders }
}

impl Recorded {
    fn capture(&self) -> (PathBuf, Value) {
        let file = place(&self.directory, "t.evc");
        let captured = run!("capture", &self.spans, &self.orders, "-o", &file, "--json", "--force");
        (file, captured.json())
    }

    fn strict_capture(&self) -> Option<i32> {
        let file = place(&self.directory, "strict.evc");
        run!("capture", &self.spans, "-o", &file, "--strict", "--force").code
    }
}

fn export(file: &Path, to: &Path, format: &str, view: &str, more: &[&str]) -> program::Run {
    let arguments = ["export", argument(file), "--format", format, "--view", view, "-o", argument(to), "--force"];
    run!(&arguments, more)
}

/// Returns true if `err` reports how many payloads were lost: in both rings together, and in each of them.
fn says(err: &str, expected: [u64; 2]) -> bool {
    let total = grouped(expected[0] + expected[1]);
    err.contains(&format!("{total} events have lost their payload, which was overwritten before it could be copied"))
        && err.contains(&format!("{} in shop, {} in shop-orders", grouped(expected[0]), grouped(expected[1])))
}

pub(super) fn grouped(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        _ => format!("{},{:03}", count / 1000, count % 1000),
    }
}

#[test]
fn lost_payloads_are_reported_by_every_verb_and_count_for_strict() {
    let recorded = recorded(TEXT_BYTES);
    let (file, captured) = recorded.capture();
    let expired = [0, 1].map(|ring: usize| number(&captured["rings"][ring]["expired_payloads"]));
    assert!(captured["lost"] == 0 && expired.iter().all(|count| *count > SPANS / 2), "{captured}");
    assert_eq!(recorded.strict_capture(), Some(16));

    let summary = run!("summary", &file);
    assert!(summary.code == Some(0) && says(&summary.err, expired), "{summary:?}");
    run!("summary", &file, "--strict").ends(16);
    let summary = run!("summary", &file, "--json");
    assert!(says(&summary.err, expired), "{summary:?}");
    let summary = summary.json();
    assert_eq!(number(&summary["lost_payloads"]), expired[0] + expired[1], "{summary}");
    assert_eq!(summary["payload_losses"][1]["ring"], "shop-orders", "{summary}");
    assert_eq!(number(&summary["payload_losses"][1]["expired"]), expired[1], "{summary}");

    let to = place(&recorded.directory, "export");
    for format in ["perfetto", "chrome", "folded", "jsonl"] {
        let exported = export(&file, &to, format, "thread", &[]);
        assert!(exported.code == Some(0) && says(&exported.err, expired), "{format}: {exported:?}");
        assert_eq!(export(&file, &to, format, "thread", &["--strict"]).code, Some(16), "{format}");
        let exported = export(&file, &to, format, "thread", &["--json"]).json();
        assert_eq!(number(&exported["lost_payloads"]), expired[0] + expired[1], "{format}: {exported}");
    }

    // The events that a ring holds now are counted, too.
    run!("summary", &recorded.spans, "--strict").fails(16, format!("({} in shop)", grouped(expired[0])));
}

#[test]
fn a_span_whose_fields_were_lost_does_not_look_like_one_without_fields() {
    let recorded = recorded(TEXT_BYTES);
    let (file, captured) = recorded.capture();
    let watched = run!("watch", &recorded.spans, "--type", "SPAN_NEW", "--json").json_lines();
    let expired = watched.iter().filter(|line| line["expired"] == true).count() as u64;
    assert!(expired > SPANS / 2);
    let to = place(&recorded.directory, "export");

    export(&file, &to, "jsonl", "thread", &[]).ends(0);
    let lines = fs::read_to_string(&to).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spans = |name: &'static str| lines.iter().filter(move |line| line["type"] == "span" && line["name"] == name);
    let (lost, whole): (Vec<&Value>, Vec<&Value>) = spans("request").partition(|span| span["fields_lost"] == true);
    assert_eq!((lost.len() as u64, whole.len() as u64), (expired, SPANS - expired));
    assert!(lost.iter().all(|span| span["fields"] == json!({})));
    assert!(whole.iter().all(|span| span["fields"]["number"].is_u64()));
    // These spans never had fields.
    assert!(spans("bare").count() as u64 == SPANS && spans("bare").all(|span| span.get("fields_lost").is_none()));
    let end = lines.last().unwrap();
    let of_ring = number(&end["payload_losses"][0]["expired"]);
    assert_eq!(of_ring, number(&captured["rings"][0]["expired_payloads"]), "{end}");
    // The ring has lost more payloads than spans have lost fields, because some of the lost payloads describe call
    // sites and threads.
    let all = run!("watch", &recorded.spans, "--json", "--full").json_lines();
    let descriptions = all.iter().filter(|line| line["expired"] == true && line["name"] != "SPAN_NEW");
    let is_description = |line: &Value| ["CALL_SITE", "THREAD_STARTED", "THREAD_TIME"].contains(&line["name"].text());
    assert!(descriptions.clone().all(is_description));
    assert!(of_ring > expired, "{end}");
    assert_eq!(of_ring, expired + descriptions.count() as u64, "{end}");

    for view in ["thread", "span"] {
        export(&file, &to, "chrome", view, &[]).ends(0);
        let trace: Value = serde_json::from_slice(&fs::read(&to).unwrap()).unwrap();
        // What threads did is on tracks of their own.
        let is_of_span = |event: &&Value| event["ph"] == "X" && event["cat"] != "scheduler";
        let slices = trace["traceEvents"].list().iter().filter(is_of_span);
        let marked = slices.clone().filter(|slice| slice["args"]["fields_lost"] == true);
        assert_eq!((slices.clone().count() as u64, marked.count() as u64), (2 * SPANS, expired), "{view}");
        assert!(slices.filter(|slice| slice["name"] == "bare").all(|slice| slice["args"]["fields_lost"].is_null()));
    }
}

#[test]
fn without_lost_payloads_nothing_is_reported() {
    let recorded = recorded(8);
    let (file, captured) = recorded.capture();
    assert!(captured["rings"].list().iter().all(|ring| ring["expired_payloads"] == 0), "{captured}");
    assert_eq!(recorded.strict_capture(), Some(0));
    let to = place(&recorded.directory, "export");
    for run in [run!("summary", &file, "--strict"), export(&file, &to, "chrome", "thread", &["--strict"])] {
        assert!(run.code == Some(0) && !run.err.contains("payload"), "{run:?}");
    }
    assert!(!fs::read_to_string(&to).unwrap().contains("fields_lost"));
}
