//! `watch`, `info`, `capture` and `export` name blocks whose BLOCK_START was overwritten, by the ring's block table.

use crate::fixtures::*;
use eventring::schema::exec::{BlockEnd, BlockQc, BlockStart, BlockTag, Bytes32};

const CAPACITY: u64 = 1 << 15;

fn started(recorder: &Recorder, number: u64) -> u64 {
    let mut start = BlockStart::default();
    (start.block_tag.block_number, start.block_tag.id) = (number, Bytes32([number as u8; 32]));
    start.with_bytes(|bytes| {
        recorder.record(ExecEvent::BlockStart.code(), [recorder.stats().last_seqno + 1, 0, 0, 0], bytes)
    })
}

fn ended(recorder: &Recorder, tag: u64) {
    BlockEnd::default().with_bytes(|bytes| recorder.record(ExecEvent::BlockEnd.code(), [tag, 0, 0, 0], bytes));
}

/// Makes a ring that has ended. It holds, after many events without a block, the ends of the blocks 15,000,041 and
/// 15,000,042, the start of block 15,000,043, its end, the end of a block that nobody knows, and a certificate of block
/// 15,000,042. Returns the seqno of the start.
fn ring(path: &Path, has_table: bool) -> u64 {
    let recorder =
        typed_in::<ExecEvent>(path).compact(true).shifts(15, 21).block_table(has_table).keep(true).build().unwrap();
    let tags = [started(&recorder, 15_000_041), started(&recorder, 15_000_042)];
    (0..CAPACITY).for_each(|_| {
        recorder.record(ExecEvent::BlockPerfEvmExit.code(), [0; 4], &[]);
    });
    tags.iter().for_each(|tag| ended(&recorder, *tag));
    let tag = started(&recorder, 15_000_043);
    ended(&recorder, tag);
    ended(&recorder, 3);
    // Events of the consensus belong to no block; they name one.
    let tag_of_consensus = BlockTag { block_number: 15_000_042, ..BlockTag::default() };
    let certificate = BlockQc { block_tag: tag_of_consensus, ..BlockQc::default() };
    certificate.with_bytes(|bytes| recorder.record(ExecEvent::BlockQc.code(), [0; 4], bytes));
    tag
}

/// Returns the names and the block numbers of the events that belong to a block.
fn numbers(lines: &[Value]) -> Vec<(String, Value)> {
    let events = lines.iter().filter(|line| line["name"].is_string() && line["name"] != "BLOCK_PERF_EVM_EXIT");
    events.map(|line| (line["name"].text().to_owned(), line["block_number"].clone())).collect()
}

fn expected(of_late: [Value; 2]) -> Vec<(String, Value)> {
    let [first, second] = of_late;
    let third = json!(15_000_043);
    let events = [
        ("BLOCK_END", first),
        ("BLOCK_END", second),
        ("BLOCK_START", third.clone()),
        ("BLOCK_END", third),
        ("BLOCK_END", Value::Null),
        ("BLOCK_QC", json!(15_000_042)),
    ];
    events.map(|(name, number)| (name.to_owned(), number)).to_vec()
}

#[test]
fn watch_captures_exports_and_snapshots_name_the_block_of_each_event() {
    for (has_table, of_late) in [(true, [json!(15_000_041), json!(15_000_042)]), (false, [Value::Null, Value::Null])] {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        let (file, snapshot, capture) = (path("ring"), path("ring.zst"), path("ring.evc"));
        ring(&file, has_table);
        let watched = run!("watch", &file, "--json", "--quiet").json_lines();
        assert_eq!(numbers(&watched), expected(of_late.clone()));
        run!("snapshot", &file, "-o", &snapshot).ends(0);
        let watched = run!("watch", &snapshot, "--json", "--quiet").json_lines();
        assert_eq!(numbers(&watched), expected(of_late.clone()));
        for of in [&file, &snapshot] {
            run!("capture", of, "-o", &capture, "--force").ends(0);
            let watched = run!("watch", &capture, "--json", "--quiet").json_lines();
            assert_eq!(numbers(&watched), expected(of_late.clone()));
            let exported = run!("export", &capture, "--format", "jsonl");
            let lines = exported.json_lines();
            assert_eq!(exported.code, Some(0), "{exported:?}");
            assert_eq!(numbers(&lines), expected(of_late.clone()));
            // A BLOCK_START that is not selected names the block of what is.
            let ends =
                || expected(of_late.clone()).into_iter().filter(|(name, _)| name == "BLOCK_END").collect::<Vec<_>>();
            let found = ["--where", "event=BLOCK_END"];
            let watched = run!("watch", &capture, "--json", "--quiet", &found).json_lines();
            assert_eq!(numbers(&watched), ends());
            let exported = run!("export", &capture, "--format", "jsonl", &found);
            assert_eq!(numbers(&exported.json_lines()), ends());
            let watched = run!("watch", &capture, "--json", "--where", "event=BLOCK_END", "--block-number", "15000043");
            assert_eq!(numbers(&watched.json_lines()).len(), 1, "{watched:?}");
            let told = "3 events are of blocks whose number is not known: their BLOCK_START was not captured";
            // A snapshot numbers its events anew, and does not keep the numbers of events that it does not have.
            assert_eq!(watched.err.contains(told), !has_table && of == &file, "{watched:?}");
        }
    }
}

#[test]
fn people_see_numbers_of_known_blocks_and_seqnos_of_others() {
    let (_directory, [file]) = places(["ring"]);
    ring(&file, true);
    let watched = run!("watch", &file, "--quiet", "--utc", "--type", "BLOCK_END");
    let blocks: Vec<&str> =
        watched.out.lines().filter_map(|line| line.split("BLOCK_END").nth(1)?.split_whitespace().next()).collect();
    assert_eq!(blocks, ["15000041", "15000042", "15000043", "#3"]);
    let only = run!("watch", &file, "--quiet", "--json", "--block-number", "15000042").json_lines();
    let named = |name: &str| (name.to_owned(), json!(15_000_042));
    assert_eq!(numbers(&only), [named("BLOCK_END"), named("BLOCK_QC")]);
}

#[test]
fn a_watch_from_the_block_begins_at_the_start_of_the_last_block() {
    let (directory, [file]) = places(["ring"]);
    let start = ring(&file, true);
    let watched = run!("watch", &file, "--quiet", "--json", "--from", "block").json_lines();
    assert_eq!(
        watched.iter().map(|line| line["seqno"].number()).collect::<Vec<_>>(),
        [start, start + 1, start + 2, start + 3]
    );
    // Without the table, the newest event decides, and it belongs to no block.
    ring(&directory.path().join("other"), false);
    let other = place(&directory, "other");
    let watched = run!("watch", &other, "--quiet", "--json", "--from", "block").json_lines();
    assert_eq!(watched.iter().map(|line| line["name"].clone()).collect::<Vec<_>>(), ["BLOCK_QC"]);
}

#[test]
fn info_shows_how_full_the_table_is_and_its_last_block() {
    let (directory, [file]) = places(["ring"]);
    let start = ring(&file, true);
    let info = run!("info", &file, "--json").json();
    let table = &info["block_table"];
    assert_eq!((&table["used"], &table["capacity"]), (&json!(3), &json!(4096)));
    assert_eq!((&table["last"]["number"], &table["last"]["start_seqno"]), (&json!(15_000_043), &json!(start)));
    assert_eq!(table["last"]["id"], "eb".repeat(32));
    assert!(table["last"]["start_ts_ns"].number() > info["extension"]["created_ts_ns"].number());
    let text = run!("info", &file, "--utc").out;
    let line = text.lines().find(|line| line.starts_with("blocks")).unwrap();
    assert!(line.starts_with("blocks      3 of 4,096 in the block table; the last is 15000043 (ebebeb"), "{line}");
    ring(&directory.path().join("other"), false);
    let other = run!("info", &directory.path().join("other"), "--json").json();
    assert_eq!(other["block_table"], Value::Null);
}
