//! Nodes that end and are started again.

use crate::{Client, serve};
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring_exec::{Blocks, Wanted};
use eventring_stress::chain::Made;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

fn node(path: &Path) -> Recorder {
    let content = ContentDescription::from_event_type::<ExecEvent>();
    Recorder::builder(content).config(path).shifts(15, 24).compact(true).keep(true).prefault(false).build().unwrap()
}

#[test]
fn the_time_after_the_end_counts_from_the_last_ring() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("node");
    let first = node(&path);
    let reader = Reader::open(&path).unwrap();
    let blocks = Blocks::of_ring(&reader, Wanted::TRANSACTIONS).unwrap().follow_restarts();
    let linger = Duration::from_millis(1500);
    let (address, _, thread) = serve(blocks, |gateway| gateway.linger(linger));
    let mut client = Client::new(address);
    client.subscribe("newHeads", &json!({}));
    drop(first);
    std::thread::sleep(Duration::from_millis(900));
    let second = node(&path);
    let mut made = Made::default();
    made.block(7, 7, 1);
    made.record(0, &second);
    assert_eq!(client.next()["number"], "0x7");
    drop(second);
    let ended = Instant::now();
    thread.join().unwrap();
    let lingered = ended.elapsed();
    assert!(lingered > linger && lingered < linger * 3, "{lingered:?}");
}
