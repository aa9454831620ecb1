//! Small things that people read: numbers with their nouns, and bytes that are text.

use crate::program::{argument, directory, place, run};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use tracing::{Dispatch, info, info_span};

#[test]
fn one_of_a_thing_has_its_singular_and_the_entries_of_a_span_are_counted_beside_it() {
    let dir = directory();
    let (ring, capture, trace) = (place(&dir, "shop"), place(&dir, "shop.evc"), place(&dir, "trace.json"));
    let recorder = PerfRecorder::builder().config(argument(&ring)).build().unwrap();
    let span = tracing::dispatcher::with_default(&Dispatch::new(RecorderSubscriber::new(recorder)), || {
        let span = info_span!("poll");
        (0..3).for_each(|_| span.in_scope(|| ()));
        info!(parent: &span, "done");
        span
    });
    assert_eq!(run(&["capture", argument(&ring), "--now", "-o", argument(&capture)]).code, Some(0));
    let exported = run(&["export", argument(&capture), "--format", "chrome", "-o", argument(&trace)]);
    let (said, _) = exported.err.split_once(" written to ").unwrap();
    assert_eq!(said, "1 span, entered 3 times, 1 still open, 1 log record");
    drop(span);
}

#[test]
fn bytes_that_are_text_are_shown_as_text_beside_their_digits() {
    let dir = directory();
    let ring = place(&dir, "shop");
    let recorder = PerfRecorder::builder().config(argument(&ring)).keep(true).build().unwrap();
    tracing::dispatcher::with_default(&Dispatch::new(RecorderSubscriber::new(recorder)), || {
        info!(key = &b"caf\xc3\xa9 \"7\""[..], hash = &[0x61_u8, 0, 0x62][..], "bytes");
    });
    let shown = run(&["watch", argument(&ring), "--last", "1"]).out;
    assert!(shown.contains(r#"key=0x636166c3a920223722 "café \"7\"" "#), "{shown}");
    assert!(shown.contains("hash=0x610062 "), "{shown}");
}
