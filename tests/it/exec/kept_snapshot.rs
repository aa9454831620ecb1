//! An earlier build recorded the events of the snapshot in `tests/data`. Today's build must read these events from the
//! snapshot. When today's build runs the code that recorded them, it must record the same events again.
//!
//! `EVENTRING_BLESS=1 cargo test -p eventring-tests --test it exec::kept_snapshot` records the snapshot again.

use crate::all_events;
use crate::fixtures::*;
use crate::read_back::events;
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecPayload;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/all-exec-events.snapshot.zst");

#[test]
fn what_an_earlier_build_recorded_is_read_and_recorded_alike_today() {
    let recorder = all_events::recorded();
    let today = Reader::options().open_fd(recorder.as_fd()).unwrap();
    if std::env::var_os("EVENTRING_BLESS").is_some() {
        let file = std::fs::File::create(SNAPSHOT).unwrap();
        today.write_snapshot(file, &SnapshotOptions::new().compression_level(19)).unwrap();
    }
    let kept = Reader::open_typed::<ExecEvent>(SNAPSHOT).unwrap();
    assert_eq!(events(&kept), events(&today));
    // Lines that begin with `#` may differ, because the schema hash does not cover them. They are comments, or look
    // like comments.
    let text = kept.schema_text().unwrap();
    let lines: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(lines, ExecEvent::schema().canonical_text());
}

#[test]
fn it_holds_every_event_of_the_schema_and_each_decodes() {
    let kept = Reader::open(SNAPSHOT).unwrap();
    let mut found = BTreeSet::new();
    for (_, code, _, payload) in events(&kept) {
        assert_eq!(ExecPayload::decode(code, &payload).unwrap().event().code(), code);
        found.insert(code);
    }
    assert_eq!(found, (1..=24).collect());
}
