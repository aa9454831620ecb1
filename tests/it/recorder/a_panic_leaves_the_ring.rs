//! Events that were recorded before a panic can be read after it: the ring's file stays, as after any other crash.

use crate::fixtures::*;
use crate::read_back::events;
use eventring::global::EXEC;

/// Returns what a reader finds in the ring: the types of its events, and the state in which the ring was left.
fn left_in(path: &Path) -> (Vec<u16>, RingState) {
    let reader = Reader::open(path).unwrap();
    (events(&reader).into_iter().map(|(_, event_type, ..)| event_type).collect(), reader.state())
}

#[test]
fn a_panicking_program_leaves_the_ring_of_its_global_recorder_and_a_returning_one_does_not() {
    let test = plays!(|part| {
        EXEC.try_init::<ExecEvent>(&format!("{}:16:27", place().display())).unwrap();
        record!(ExecEvent::TxnEnd);
        // If this process plays the part `panics`, it panics here. The test harness then exits with status 101, like
        // a program whose `main` panics.
        assert_ne!(part, "panics", "as told");
    });
    let (_directory, [path]) = places(["ring"]);
    assert!(play(test, "returns", &path).output().unwrap().status.success());
    assert!(!path.exists());
    #[cfg(target_env = "gnu")]
    {
        assert_eq!(play(test, "panics", &path).output().unwrap().status.code(), Some(101));
        assert_eq!(left_in(&path), (vec![ExecEvent::TxnEnd as u16], RingState::WriterDied));
        // The next recorder replaces the ring of the panicked program.
        assert!(play(test, "returns", &path).output().unwrap().status.success());
        assert!(!path.exists());
    }
}

#[test]
fn a_recorder_that_is_dropped_by_a_panic_leaves_its_ring() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = || {
        Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).config(&path).compact(true).shifts(15, 21)
    };
    drop(recorder().build().unwrap());
    assert!(!path.exists());
    let panic = std::panic::catch_unwind(|| {
        let recorder = recorder().build().unwrap();
        recorder.record(17, [0; 4], b"");
        panic!("as told");
    });
    assert!(panic.is_err());
    assert_eq!(left_in(&path), (vec![17], RingState::Ended));
}
