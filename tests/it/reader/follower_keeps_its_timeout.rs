//! A follower may sleep longer than its timeout while it waits. It still wakes up when the timeout has passed.

use crate::fixtures::*;

#[test]
fn a_sleep_of_an_hour_ends_with_a_timeout_of_milliseconds() {
    let builder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).prefault(false);
    let recorder = builder.build().unwrap();
    let cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
    let mut follower = Follower::new(cursor, WaitStrategy::Sleep(Duration::from_secs(3600)));
    let start = Instant::now();
    assert!(matches!(follower.next_timeout(Duration::from_millis(20)), Followed::TimedOut));
    // The limit is wide, because the test does not measure the timeout. A follower that ignored its timeout would
    // sleep for an hour.
    assert!(start.elapsed() < Duration::from_secs(600));
}
