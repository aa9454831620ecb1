//! A writer is killed and started again. Readers of the old ring read all of its events, notice that its writer is
//! gone, and go on with the new ring.

use crate::fixtures::*;
use eventring::reader::ReaderErrorKind;
use eventring::recorder::RecorderErrorKind;

fn recorder_at(path: &Path) -> Result<Recorder, eventring::recorder::RecorderError> {
    Recorder::builder(ContentDescription::new(300, "THINGS")).config(path).compact(true).shifts(15, 21).build()
}

fn follower(path: &Path) -> Follower {
    let mut cursor = Reader::open(path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    Follower::new(cursor, WaitStrategy::Adaptive)
}

/// Returns the mark of the next event: the first extension word, by which the test recognises the event.
fn mark(follower: &mut Follower) -> u64 {
    match follower.next_blocking() {
        Followed::Event(event) => event.content_ext[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_learn_that_the_ring_ended_and_follow_to_the_new_one() {
    let test = plays!(|part| {
        let recorder = recorder_at(&place()).unwrap();
        let first = if part == "first" { 10 } else { 20 };
        (0..3).for_each(|i| assert_eq!(recorder.record(2, [first + i, 0, 0, 0], b"x"), i + 1));
        say("recorded");
        wait_for_parent();
        // The parent has asked this writer to end normally.
    });
    let (_directory, [path]) = places(["ring"]);
    assert_eq!(Reader::open(&path).unwrap_err().kind(), ReaderErrorKind::NotFound);

    let mut first = Talk::told(test, "first", &path, "recorded");
    let mut old = follower(&path);
    let old_reader = old.cursor().reader();
    assert_eq!((mark(&mut old), old_reader.state(), old_reader.was_replaced()), (10, RingState::Live, false));
    // While the writer lives, no other process gets the name.
    let error = recorder_at(&path).unwrap_err();
    assert_eq!(error.kind(), RecorderErrorKind::AlreadyOwned { pid: Some(first.child.id()) });
    first.kill();

    let mut second = Talk::told(test, "second", &path, "recorded");
    // The old ring is still there for readers that have it open.
    assert_eq!((mark(&mut old), mark(&mut old)), (11, 12));
    assert_eq!(old.next_blocking(), Followed::Ended);
    assert_eq!((old_reader.state(), old_reader.was_replaced()), (RingState::WriterDied, true));

    let mut new = follower(&path);
    assert_eq!((mark(&mut new), mark(&mut new), mark(&mut new)), (20, 21, 22));
    assert_eq!(new.next_timeout(Duration::from_millis(120)), Followed::TimedOut);
    assert_eq!(new.cursor().reader().state(), RingState::Live);
    assert!(second.end().success());
    assert_eq!(new.next_blocking(), Followed::Ended);
    let new_reader = new.cursor().reader();
    assert_eq!((new_reader.state(), new_reader.was_replaced()), (RingState::Ended, false));
    assert!(!path.exists());
}
