//! Traces have a slice for each block and transaction, with the times that were recorded, and the logs and call frames
//! inside of them. The trace_processor of Perfetto reads both formats of traces.

use crate::consumers;
use crate::fixtures::*;

/// A recording of thirty real blocks; two invented ones if it is not there.
fn recording() -> PathBuf {
    real_data::path("emn-30b-15m.snapshot.zst").unwrap_or_else(|| KEPT.into())
}

/// The block and the index of a transaction, or a block alone.
type Key = (u64, Option<u64>);

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("no number: {value}"))
}

/// Returns the start and the duration of each block, of its EVM part, and of each transaction, from the events.
fn recorded(lines: &[Value]) -> [BTreeMap<Key, (u64, u64)>; 3] {
    let mut of: BTreeMap<Key, BTreeMap<&str, u64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["block_seqno"].as_u64().is_some_and(|seqno| seqno > 0)) {
        let (name, nanos) = (line["name"].text(), number(&line["time_ns"]));
        let is_of_block = name.starts_with("BLOCK_");
        let txn = line["txn_index"].as_u64().filter(|_| !is_of_block);
        let times = of.entry((number(&line["block_number"]), txn)).or_default();
        times.entry(name).or_insert(nanos);
        let first = times.entry("first").or_insert(nanos);
        *first = nanos.min(*first);
        let last = times.entry("last").or_insert(nanos);
        *last = nanos.max(*last);
    }
    let time = |times: &BTreeMap<&str, u64>, from: &[&str], until: &[&str]| {
        let [from, until] = [from, until].map(|names| names.iter().find_map(|name| times.get(name)).copied());
        Some((from?, until?.saturating_sub(from?).max(1)))
    };
    let all = |is_txn: bool, from: &[&str], until: &[&str]| -> BTreeMap<Key, (u64, u64)> {
        let of = of.iter().filter(|((_, txn), _)| txn.is_some() == is_txn);
        of.filter_map(|(key, times)| Some((*key, time(times, from, until)?))).collect()
    };
    [
        all(false, &["BLOCK_START"], &["BLOCK_END", "BLOCK_REJECT", "last"]),
        all(false, &["BLOCK_PERF_EVM_ENTER"], &["BLOCK_PERF_EVM_EXIT"]),
        all(true, &["TXN_PERF_EVM_ENTER", "first"], &["TXN_PERF_EVM_EXIT", "last"]),
    ]
}

/// The questions to a trace. `ARGS` stands for the word before the names of arguments, which depends on the format.
fn questions(args: &str) -> Value {
    let slices = |what: &str| {
        format!(
            "select extract_arg(s.arg_set_id, 'ARGS.{what}') as block, extract_arg(s.arg_set_id, 'ARGS.index') as txn, \
             s.ts, s.dur, s.depth, s.track_id as track from slice s"
        )
    };
    let all = json!({
        "blocks": slices("number") + " where s.name like 'block %' and s.dur > 0",
        "evm": "select extract_arg(p.arg_set_id, 'ARGS.number') as block, null as txn, s.ts, s.dur, s.depth, s.track_id as track
                from slice s join slice p on p.id = s.parent_id where s.name = 'EVM' and p.name like 'block %'",
        "txns": slices("block") + " where s.name like 'txn %'",
        // The name of a transaction's slice has its index.
        "inside": "select e.name, count(*) as count from slice e join slice t on t.id = e.parent_id and t.track_id = e.track_id
                   where e.dur = 0 and t.name = 'txn ' || extract_arg(e.arg_set_id, 'ARGS.txn_index')
                   and e.ts >= t.ts and e.ts < t.ts + t.dur group by e.name",
        "instants": "select name, count(*) as count from slice where dur = 0 group by name",
        "overlaps": "select count(*) as count from slice a join slice b on a.track_id = b.track_id and a.id < b.id
                     and a.name like 'txn %' and b.name like 'txn %' and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur",
        "side_by_side": "select count(*) as count from slice a join slice b on a.id < b.id
                     and a.name like 'txn %' and b.name like 'txn %' and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur",
        "events": "select sum(extract_arg(arg_set_id, 'ARGS.events')) as count from slice where name like 'block %'",
        "errors": "select name, value from stats where severity in ('error', 'data_loss') and value != 0",
    });
    serde_json::from_str(&all.to_string().replace("ARGS", args)).unwrap()
}

fn ask(trace: &Path, args: &str) -> Option<Value> {
    let asked = trace.with_extension("questions");
    fs::write(&asked, questions(args).to_string()).unwrap();
    consumers::read_files("trace_processor.py", &[trace, &asked])
}

fn counts(rows: &Value) -> BTreeMap<&str, u64> {
    rows.list().iter().map(|row| (row["name"].text(), number(&row["count"]))).collect()
}

#[test]
fn trace_processor_finds_blocks_and_transactions_with_their_times_logs_and_call_frames_in_both_formats() {
    let recording = recording();
    let dir = directory();
    let lines = run!("export", &recording, "--format", "jsonl").json_lines();
    let lines: Vec<Value> = lines.into_iter().filter(|line| line["type"] == "typed_event").collect();
    let [blocks, evm, txns] = recorded(&lines);
    let of_type = |name: &str| lines.iter().filter(|line| line["name"] == name).count() as u64;
    let zero = lines.iter().map(|line| number(&line["time_ns"])).min().unwrap();
    for (format, args, zero) in [("perfetto", "debug", 0), ("chrome", "args", zero)] {
        let trace = place(&dir, format);
        let summary = run!("export", &recording, "--format", format, "-o", &trace, "--json").json();
        assert_eq!(summary["typed_events"], lines.len(), "{summary}");
        let Some(answers) = ask(&trace, args) else { return };
        let drawn = |what: &str, depth: u64| -> BTreeMap<Key, (u64, u64)> {
            let rows = answers[what].list();
            let slices = rows.iter().map(|row| {
                assert_eq!(row["depth"], depth, "{format}: {row}");
                let txn = Some(&row["txn"]).filter(|txn| !txn.is_null()).map(number);
                ((number(&row["block"]), txn), (number(&row["ts"]) + zero, number(&row["dur"])))
            });
            let all: Vec<_> = slices.collect();
            let count = all.len();
            let drawn: BTreeMap<Key, (u64, u64)> = all.into_iter().collect();
            assert_eq!(drawn.len(), count, "{format}: each of {what} is there once");
            drawn
        };
        assert_eq!(drawn("blocks", 0), blocks, "{format}");
        assert_eq!(drawn("evm", 1), evm, "{format}");
        assert_eq!(drawn("txns", 0), txns, "{format}");
        let (inside, instants) = (counts(&answers["inside"]), counts(&answers["instants"]));
        for name in ["TXN_LOG", "TXN_CALL_FRAME"] {
            assert_eq!((inside[name], instants[name]), (of_type(name), of_type(name)), "{format}: {name}");
        }
        for (word, name) in [("voted ", "BLOCK_QC"), ("finalized ", "BLOCK_FINALIZED"), ("verified ", "BLOCK_VERIFIED")]
        {
            let drawn = instants.iter().filter(|(name, _)| name.starts_with(word)).map(|(_, count)| count);
            assert_eq!(drawn.sum::<u64>(), of_type(name), "{format}: {name}");
        }
        let consensus = of_type("BLOCK_QC") + of_type("BLOCK_FINALIZED") + of_type("BLOCK_VERIFIED");
        assert_eq!(number(&answers["events"][0]["count"]) + consensus, lines.len() as u64, "{format}");
        assert_eq!((&answers["overlaps"][0]["count"], &answers["errors"]), (&json!(0), &json!([])), "{format}");
        if recording != Path::new(KEPT) {
            assert_eq!(
                (blocks.len(), txns.len(), inside["TXN_LOG"], inside["TXN_CALL_FRAME"]),
                (30, 6187, 8299, 21077)
            );
            // The control: the question finds transactions that are executed side by side, if they were in one row.
            assert!(number(&answers["side_by_side"][0]["count"]) > 100_000, "{answers}");
        }
    }
}

#[test]
fn a_part_of_a_recording_has_all_its_events_in_slices_or_as_instants() {
    let recording = recording();
    let dir = directory();
    let lines = run!("export", &recording, "--format", "jsonl").json_lines();
    let mut times: Vec<u64> = lines.iter().filter_map(|line| line["time_ns"].as_u64()).collect();
    times.sort_unstable();
    // From the middle of a block to the middle of another one.
    let [from, to] = [times.len() / 3, times.len() - 2].map(|at| times[at].to_string());
    let trace = place(&dir, "part");
    let part = ["--from", &from, "--to", &to];
    let arguments = ["export", argument(&recording), "--format", "chrome", "-o", argument(&trace), "--json"];
    let summary = run(&[&arguments[..], &part].concat()).json();
    let trace: Value = serde_json::from_slice(&fs::read(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].list();
    let named = |name: &str| -> Vec<&Value> {
        let of_name = |event: &&Value| event["ph"] == "M" && event["args"]["name"] == name;
        events.iter().filter(of_name).map(|event| &event["tid"]).collect()
    };
    let tracks = [named("blocks"), named("transactions")].concat();
    let slices = |name: &str| -> Vec<&Value> {
        let is_one = |event: &&Value| event["ph"] == "X" && event["name"].text().starts_with(name);
        events.iter().filter(is_one).map(|event| &event["args"]).collect()
    };
    let (blocks, txns) = (slices("block "), slices("txn "));
    let sum = |slices: &[&Value], arg: &str| slices.iter().map(|args| number(&args[arg])).sum::<u64>();
    let others = events.iter().filter(|event| event["ph"] == "i" && !tracks.contains(&&event["tid"])).count() as u64;
    assert_eq!(sum(&blocks, "events") + others, number(&summary["typed_events"]));
    assert_eq!(sum(&blocks, "events_of_transactions"), sum(&txns, "events"));
    assert_eq!(blocks.iter().filter(|args| args["start"] == "not seen").count(), 1);
    assert!(txns.iter().any(|args| args["hash"].is_null()), "the first block's transactions are drawn, too");
}
