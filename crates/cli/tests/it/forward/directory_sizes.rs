//! Files of a directory that are hardly larger than what they say about their call sites.

use crate::program::{program, run};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Records spans of many call sites, whose descriptions take more than the events.
fn record_many_call_sites(ring: &Path) {
    macro_rules! span_of_each {
        ($($name:literal)*) => { $( drop(tracing::info_span!($name, the_number_of_the_order = 1, its_customer = "x").entered()); )* };
    }
    let recorder = PerfRecorder::builder().config(ring).shifts(15, 21).prefault(false).keep(true).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        for _ in 0..4 {
            span_of_each!("a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "t" "u" "v");
        }
    });
}

#[test]
fn files_that_have_room_for_their_descriptions_only_have_an_event_each_and_lack_none() {
    let dir = tempfile::tempdir().unwrap();
    let ring = dir.path().join("shop");
    record_many_call_sites(&ring);
    let capture = dir.path().join("all.evc");
    let words = ["capture", ring.to_str().unwrap(), "--now", "--json", "-o", capture.to_str().unwrap()];
    let all = run(&words);
    let all = all.json()["events"].as_u64().unwrap();
    assert!(all > 340, "{all}");
    for bytes in (1000..9000).step_by(500) {
        let (to, bytes) = (dir.path().join(bytes.to_string()), bytes.to_string());
        let words = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--rotate-size", &bytes];
        let account = File::create(dir.path().join("account")).unwrap();
        let mut child = program(&[&words[..], &["--level", "0", "--json"]].concat()).stdout(account).spawn().unwrap();
        let mut ended = None;
        for _ in 0..6000 {
            ended = child.try_wait().unwrap();
            if ended.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        assert!(ended.is_some_and(|status| status.success()), "{bytes}: {ended:?}");
        let account = serde_json::from_reader::<_, Value>(File::open(dir.path().join("account")).unwrap()).unwrap();
        let counts = [&account["events"], &account["lost"], &account["rings"][0]["omitted_payloads"]];
        assert_eq!(counts, [all, 0, 0], "{bytes}");
    }
}

#[test]
fn a_payload_larger_than_a_file_is_in_a_file_with_its_call_site() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("shop"), dir.path().join("out"));
    let recorder = PerfRecorder::builder().config(&ring).shifts(15, 22).prefault(false).keep(true).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        for number in 0..10_u32 {
            tracing::info!(number, "a short one");
            let long = "x".repeat(3_500);
            tracing::warn!(number, long, "a long one");
        }
    });
    drop(recorder);
    let words =
        ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--rotate-size", "3k", "--level", "0"];
    assert_eq!(run(&[&words[..], &["--json"]].concat()).json()["lost"], 0);
    let (mut long, mut files) = (0, 0);
    for file in std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "evc") {
            continue;
        }
        files += 1;
        for line in run(&["export", file.to_str().unwrap(), "--format", "jsonl"]).json_lines() {
            if line["type"] == "log" || line["type"] == "event" {
                assert!(line["target"] == module_path!(), "{file:?}: {line}");
                long += u64::from(line["fields"]["long"].as_str().is_some_and(|text| text.len() == 3_500));
            }
        }
    }
    assert!(long == 10 && files > 5, "{long} long payloads in {files} files");
}
