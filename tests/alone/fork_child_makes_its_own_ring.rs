//! A forked child may install a recorder with a ring of its own in the inherited global recorder. Parent and child then
//! record side by side.

use crate::fixtures::*;
use eventring::global::{EXEC, InitErrorKind};
use eventring::schema::exec::BlockVerified;

fn block_numbers(path: &Path) -> Vec<u8> {
    let mut cursor = Reader::open_typed::<ExecEvent>(path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    std::iter::from_fn(|| match cursor.next() {
        Next::Event(event) => Some(cursor.payload(&event, &mut buffer).valid().unwrap()[0]),
        _ => None,
    })
    .collect()
}

#[test]
fn parent_and_child_record_into_rings_of_their_own() {
    alone!();
    let (_directory, [path, child_path]) = places(["parent", "child"]);
    let builder = |path: &Path| {
        let description = ContentDescription::from_event_type::<ExecEvent>();
        Recorder::builder(description).config(path).compact(true).shifts(15, 21)
    };
    EXEC.try_init_with(builder(&path)).unwrap();
    assert_eq!(record!(ExecEvent::BlockVerified, BlockVerified { block_number: 1 }), 1);

    let code = forked::in_child(|| {
        // Nothing is recorded until the child has a ring.
        if record!(ExecEvent::BlockVerified, BlockVerified { block_number: 2 }) != 0 || EXEC.is_enabled() {
            return 1;
        }
        if EXEC.try_init_with(builder(&child_path).keep(true)).is_err() || !EXEC.is_enabled() {
            return 2;
        }
        for block_number in [3, 4] {
            record!(ExecEvent::BlockVerified, BlockVerified { block_number });
        }
        0
    });
    assert_eq!(code, 0);
    record!(ExecEvent::BlockVerified, BlockVerified { block_number: 5 });
    assert_eq!((block_numbers(&path), block_numbers(&child_path)), (vec![1, 5], vec![3, 4]));
    // The parent still has its recorder installed, so it cannot install another one.
    assert_eq!(EXEC.try_init_with(builder(&path)).unwrap_err().kind(), InitErrorKind::AlreadyInstalled);
}
