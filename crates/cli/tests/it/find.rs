//! `eventring find` finds events in many captures, reads few of their blocks, and says which losses could hide a hit.

use crate::fixtures::*;
use crate::shop::Shop;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfExt, ThreadView};
use eventring::tracing::Catalog;
use eventring_capture::fixtures::{CaptureFixture, text};

/// The number of captures.
const FILES: u64 = 6;
const SPANS: u64 = 700;

/// Returns the id of a request.
fn id(file: u64, number: u64) -> String {
    // Long, so that the block has room for what it says of its values.
    let word = |word: u64| format!("{:016x}", (file * SPANS + number + word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    [1, 1 << 20, 1 << 40].map(word).concat()
}

/// Records requests with ids, of which each hundredth fails, and captures them.
fn capture(directory: &TempDir, file: u64, spans: u64) -> PathBuf {
    let ring = place(directory, &format!("shop{file}"));
    let recorder = spans_in(&ring).shifts(15, 21).shards(1).tables_shift(16).keep(true).build().unwrap();
    in_recorder(recorder.clone(), || {
        for number in 0..spans {
            let request_id = id(file, number);
            info_span!("request", request_id, file).in_scope(|| {
                if number % 100 == 50 {
                    error!(number, "failed");
                }
            });
        }
    });
    let in_directory = place(directory, "captures").join(format!("day{}", file % 2));
    fs::create_dir_all(&in_directory).unwrap();
    let path = in_directory.join(format!("{file}.evc"));
    run!("capture", &ring, "--now", "-o", &path).ends(0);
    path
}

fn captures() -> (TempDir, String, Vec<PathBuf>) {
    let directory = directory();
    let files = (0..FILES).map(|file| capture(&directory, file, SPANS)).collect();
    let all = argument(&directory.path().join("captures")).to_owned();
    (directory, all, files)
}

/// Runs a search. Returns its exit code, the hits, and the object at the end.
fn find(arguments: &[&str]) -> (Option<i32>, Vec<Value>, Value) {
    let run = run!("find", "--json", arguments);
    let mut lines = run.json_lines();
    let end = lines.pop().unwrap_or_else(|| panic!("{run:?}"));
    assert_eq!(end["hits"].number(), lines.len() as u64);
    (run.code, lines, end)
}

fn refused(arguments: &[&str], code: i32, what: &str) {
    run!("find", arguments).fails(code, what).shows_nothing();
}

#[test]
fn a_value_is_found_in_the_one_block_that_has_it() {
    let (_directory, all, files) = captures();
    let wanted = format!("request_id={}", id(3, 123));
    let (code, hits, end) = find(&[&wanted, &all]);
    assert_eq!((code, hits.len()), (Some(0), 1));
    assert_eq!(hits[0]["file"], argument(&files[3]));
    assert_eq!((&hits[0]["name"], &hits[0]["ring"]), (&"SPAN_NEW".into(), &"shop3".into()));
    assert_eq!(hits[0]["payload"]["fields"]["request_id"], id(3, 123));
    assert_eq!((end["files"].as_u64(), end["cut"].as_bool()), (Some(FILES), Some(false)));
    // A block that does not have it may be read in vain.
    assert!(end["blocks"].as_u64() >= Some(FILES) && end["blocks_read"].as_u64() <= Some(2), "{end}");
    assert_eq!(end["gaps"], json!([]));
    let (_, scanned, end) = find(&[&wanted, &all, "--scan"]);
    assert_eq!((scanned, &end["blocks_read"]), (hits, &end["blocks"]));
}

#[test]
fn hits_come_in_the_order_of_time_from_files_and_directories() {
    let (_directory, all, files) = captures();
    let (code, hits, _) = find(&["level>=ERROR", &all, argument(&files[2])]);
    assert_eq!((code, hits.len() as u64), (Some(0), FILES * SPANS / 100));
    assert!(hits.is_sorted_by_key(|hit| hit["ts_ns"].as_u64()));
    // Each file is searched once, by however many paths it is reached.
    std::os::unix::fs::symlink(&files[1], Path::new(&all).join("again.evc")).unwrap();
    let (_, again, _) = find(&["level>=ERROR", &all, &format!("{all}/../captures"), argument(&files[2])]);
    assert_eq!(again.len(), hits.len());
    fs::remove_file(Path::new(&all).join("again.evc")).unwrap();
    let (_, some, end) = find(&["level>=ERROR", &all, "--limit", "9"]);
    assert_eq!((&some[..], end["cut"].as_bool()), (&hits[..9], Some(true)));
    // From one file into the next.
    let after = end["next"].text();
    let (_, more, _) = find(&["level>=ERROR", &all, "--limit", "30", "--after", after]);
    assert_eq!(more, hits[9..39]);
    run!("find", "level>=ERROR", &all, "--limit", "2").warns("── 2 hits (there may be more)");
    let (from, to) = (hits[3]["ts_ns"].to_string(), hits[20]["ts_ns"].to_string());
    assert_eq!(find(&["level>=ERROR", &all, "--from", &from, "--to", &to]).1, hits[3..=20]);
    let (code, of_file, end) = find(&["span=request field.file=4", &all]);
    assert_eq!((code, of_file.len() as u64, end["blocks_read"].as_u64()), (Some(0), SPANS, Some(1)));
    let shown = run!("find", "field.number=150", &files[1]);
    assert!(shown.out.starts_with("── ") && shown.out.contains("failed"), "{shown:?}");
    assert!(shown.err.starts_with("── 1 hit, 1 of 1 block read in 1 file, no gap could hide a hit"), "{shown:?}");
}

#[test]
fn nothing_found_and_mistakes_have_exit_codes() {
    let (directory, all, _) = captures();
    let (code, _, end) = find(&["request_id=nobody", &all]);
    assert_eq!((code, end["hits"].as_u64()), (Some(19), Some(0)));
    run!("find", "requst_id=1", &all).fails(19, "no event has a field `requst_id`");
    refused(&["dur>1s", &all], 2, "no event says `dur` by itself");
    refused(&["", &all], 2, "expected span=NAME, level>=LEVEL, event=NAME, NAME=VALUE (a field), field.NAME=VALUE");
    refused(&["a=1", "/nowhere/at/all"], 3, "cannot read /nowhere/at/all");
    refused(&["a=1", argument(&place(&directory, "shop0"))], 4, "is no capture");
    let empty = place(&directory, "empty");
    fs::create_dir(&empty).unwrap();
    refused(&["a=1", argument(&empty)], 3, "there is no capture in");
    refused(&["level>=ERROR", &all, "--from", "2000", "--to", "1000"], 2, "ends before it begins");
}

#[test]
fn what_is_damaged_or_missing_could_hide_a_hit() {
    let (_directory, all, files) = captures();
    let wanted = format!("request_id={}", id(3, 123));
    let bytes = fs::read(&files[3]).unwrap();
    let magic = |bytes: &[u8]| bytes == b"EVRVALUE";
    let end = bytes.windows(8).position(magic).unwrap();
    let causes =
        |end: &Value| -> Vec<String> { end["gaps"].list().iter().map(|gap| gap["cause"].text().to_owned()).collect() };
    // The events of the block: what it says of its values is whole, so it is read.
    let mut damaged = bytes.clone();
    damaged[end / 2] ^= 1;
    fs::write(&files[3], &damaged).unwrap();
    let (code, hits, found) = find(&[&wanted, &all]);
    assert_eq!((code, hits.len(), causes(&found)), (Some(7), 0, vec!["damaged".to_owned()]));
    // What the block says of its values.
    let mut damaged = bytes.clone();
    damaged[end - 30] ^= 1;
    fs::write(&files[3], &damaged).unwrap();
    let (code, hits, found) = find(&[&wanted, &all]);
    assert_eq!((code, hits.len(), causes(&found)), (Some(7), 0, vec!["damaged".to_owned()]));
    // The end of the file: the block is whole.
    fs::write(&files[3], &bytes[..bytes.len() - 1]).unwrap();
    let (code, hits, found) = find(&[&wanted, &all]);
    assert_eq!((code, hits.len(), causes(&found)), (Some(0), 1, vec!["truncated".to_owned()]));
    assert!(found["gaps"][0]["from_ns"].is_u64() && found["gaps"][0]["to_ns"].is_null(), "{found}");
    let (code, ..) = find(&["request_id=nobody", &all]);
    assert_eq!(code, Some(6));
}

#[test]
fn a_block_whose_values_are_forged_hides_a_hit_and_the_answer_says_that_it_was_not_checked() {
    let (_directory, all, files) = captures();
    let wanted = format!("request_id={}", id(3, 123));
    let mut bytes = fs::read(&files[3]).unwrap();
    // The column of values ends with the sizes of its head and of itself, and before the head there is a page.
    let end = bytes.windows(8).position(|bytes| bytes == b"EVRVALUE").unwrap() + 8;
    let size = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let page = end - size(end - 20)..end - 24 - size(end - 24);
    bytes[page.start + 16..page.end].iter_mut().for_each(|byte| *byte ^= 0x55);
    let checksum = twox_hash::XxHash3_64::oneshot(&bytes[page.start + 8..page.end]);
    bytes[page.start..page.start + 8].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&files[3], bytes).unwrap();
    let found = run!("find", &wanted, &all).ends(19).shows_nothing();
    let not_checked = "that the other blocks have none is what they say, and was not checked (--scan reads them)";
    assert!(found.err.contains(not_checked) && !found.err.contains("whole"), "{found:?}");
    // What was read is damaged: the checksum of the block does not fit any more.
    let scanned = run!("find", &wanted, &all, "--scan");
    assert!(scanned.code == Some(7) && !scanned.err.contains("not checked"), "{scanned:?}");
    // The control: nothing is left out that was not read.
    let all_read = run!("find", "level>=ERROR", &all);
    assert!(all_read.code == Some(0) && !all_read.err.contains("not checked"), "{all_read:?}");
}

#[test]
fn losses_of_blocks_that_are_not_read_are_named_with_their_times() {
    let directory = directory();
    // A span has four events, and the ring has room for 32,768.
    let file = capture(&directory, 1, 9000);
    let (code, _, end) = find(&["request_id=nobody", argument(&file)]);
    assert_eq!((code, end["blocks_read"].as_u64()), (Some(19), Some(0)));
    let gaps = end["gaps"].list();
    assert_eq!(gaps.len(), 1, "{end}");
    assert_eq!((&gaps[0]["cause"], &gaps[0]["ring"]), (&"overwritten_before".into(), &"shop1".into()));
    assert!(gaps[0]["events"].as_u64() > Some(3000) && gaps[0]["from_ns"].is_null(), "{end}");
    let (_, _, scanned) = find(&["request_id=nobody", argument(&file), "--scan"]);
    assert_eq!((&scanned["gaps"], scanned["blocks_read"].as_u64()), (&end["gaps"], scanned["blocks"].as_u64()));
    // Outside of the window, nothing could be hidden.
    let after = end["gaps"][0]["to_ns"].number() + 1;
    assert_eq!(find(&["request_id=nobody", argument(&file), "--from", &after.to_string()]).2["gaps"], json!([]));
    assert!(Path::new(&file).exists());
}

/// A file into which runs of zeros are not written.
struct SparseFile {
    file: File,
    at: u64,
}

impl std::io::Write for SparseFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        for piece in bytes.chunks(1 << 12) {
            if piece.len() < 1 << 12 || piece.iter().any(|byte| *byte != 0) {
                self.file.write_all_at(piece, self.at)?;
            }
            self.at += piece.len() as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of zeros in each block.
const ZEROS: usize = 1 << 20;

/// Makes a capture of blocks of a MiB, each with orders and requests of its own.
fn make_large(path: &Path, blocks: u64) {
    let file = File::options().create_new(true).read(true).write(true).open(path).unwrap();
    let sparse = SparseFile { file: file.try_clone().unwrap(), at: 0 };
    let mut made = CaptureFixture::written(file, Box::new(sparse));
    let mut catalog = Catalog::new();
    for (id, kind, name) in [(1, CallSiteKind::Span, "request"), (2, CallSiteKind::Marker, "zeros")] {
        let view = CallSiteView {
            kind,
            level: CallSiteLevel::Info,
            name: name.into(),
            target: "shop".into(),
            module: "shop".into(),
            file: "src/shop.rs".into(),
            line: id,
            field_names: vec!["request_id".into()],
        };
        assert!(catalog.learn_call_site(id, &view.encode()));
    }
    assert!(catalog.learn_thread(1, &ThreadView::encode(1, 1, "main")));
    made.describe(&catalog);
    made.set_level(0);
    let typed = made.add_typed::<Shop>("orders");
    let zeros = vec![0; ZEROS];
    for block in 0..blocks {
        for number in 0..50 {
            let (span, nanos) = (1 + block * 50 + number, 1000 + block * 1_000_000 + number * 10);
            made.span_new(nanos, 1, (span, 0), 1, &[text(0, &id(7, span))]);
            let order = span.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            made.event(typed, Shop::OrderPlaced as u16, nanos + 1, [0; 4], &order.to_le_bytes());
        }
        let ext = PerfExt { call_site_id: 2, thread_id: 1, ..PerfExt::default() };
        made.perf(PerfEvent::Marker, 1000 + block * 1_000_000 + 900, ext, &zeros);
        let noted = [&[0; 8], &zeros[8..]].concat();
        made.event(typed, Shop::OrderNoted as u16, 1000 + block * 1_000_000 + 901, [0; 4], &noted);
        made.end_block();
    }
    drop(made.file());
}

/// `EVENTRING_FIND_BLOCKS` sets the number of blocks of each ring, and `EVENTRING_FIND_FILE` keeps the file.
#[test]
fn of_many_large_blocks_those_are_read_that_have_the_value() {
    let blocks = std::env::var("EVENTRING_FIND_BLOCKS").map_or(40, |blocks| blocks.parse().unwrap());
    let directory = directory();
    let kept = std::env::var_os("EVENTRING_FIND_FILE").map(PathBuf::from);
    let path = kept.unwrap_or_else(|| place(&directory, "large.evc"));
    make_large(&path, blocks);
    assert!(fs::metadata(&path).unwrap().len() > 2 * blocks * ZEROS as u64);
    let span = 1 + blocks / 2 * 50;
    let order = span.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    for wanted in [format!("request_id={}", id(7, span)), format!("id={order}")] {
        let (code, hits, end) = find(&[&wanted, argument(&path)]);
        assert_eq!((code, hits.len(), end["blocks"].as_u64()), (Some(0), 1, Some(2 * blocks)), "{end}");
        assert!(end["blocks_read"].number() <= 1 + blocks / 1000, "{end}");
    }
}
