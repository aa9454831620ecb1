//! Whatever a forked child tries, it records nothing into its parent's ring. When it ends, it removes no file of the
//! ring.

use crate::fixtures::*;
use eventring::recorder::RecorderError;

fn recorder_at(path: &Path) -> Result<Recorder, RecorderError> {
    let description = ContentDescription::new(300, "THINGS");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).context_shift(12).build()
}

#[test]
fn a_child_leaves_its_parents_rings_alone() {
    alone!();
    let (_directory, [path, other_path]) = places(["ring", "other"]);
    let recorder = recorder_at(&path).unwrap();
    let mut other = Some(recorder_at(&other_path).unwrap());
    recorder.record(2, [0; 4], b"before");
    let mut open = recorder.reserve(2, [0; 4], 8);
    open.as_mut().unwrap().append(b"half");
    let mut dropped = recorder.reserve(3, [0; 4], 8);
    let image = std::fs::read(&path).unwrap();

    let code = forked::in_child(|| {
        if recorder.is_enabled() || recorder.belongs_to_this_process() {
            return 1;
        }
        recorder.set_enabled(true);
        if recorder.record(2, [0; 4], b"x") != 0 || recorder.recordv(2, [0; 4], &[b"x", b"y"]) != 0 {
            return 2;
        }
        if recorder.reserve(2, [0; 4], 8).is_some() || recorder.write_context(0, b"x") {
            return 3;
        }
        let mut open = open.take().unwrap();
        if open.append(b"of the child") != 0 || open.commit() != 0 {
            return 4;
        }
        drop(dropped.take());
        // The parent lives and still holds the ring's lock, so the child cannot make a ring of the same name.
        if recorder_at(&path).is_ok() {
            return 5;
        }
        drop(other.take());
        0
    });
    assert_eq!(code, 0);
    assert!(image == std::fs::read(&path).unwrap(), "a byte of the ring has changed");

    // In the parent, the reservation is still open. The parent completes it.
    let mut open = open.unwrap();
    open.append(b"done");
    assert_eq!(open.commit(), 2);
    drop(dropped);
    assert_eq!(recorder.record(2, [0; 4], b"behind"), 4);
    let mut cursor = Reader::open(&path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    for expected in [&b"before"[..], b"halfdone"] {
        let Next::Event(event) = cursor.next() else { panic!() };
        assert_eq!(cursor.payload(&event, &mut buffer).valid(), Some(expected));
    }
    let other = Reader::open(&other_path).unwrap();
    assert_eq!(other.state(), RingState::Live);
}
