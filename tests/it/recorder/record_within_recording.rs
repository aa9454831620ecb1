//! Recording within recording: code that computes a payload records an event itself, in every place where such code
//! can run.

use crate::fixtures::*;
use crate::read_back;
use eventring::global::EXEC;
use eventring::schema::exec::{BlockVerified, TxnReject};

fn noted(recorder: &Recorder, number: u64) -> BlockVerified {
    record!(recorder => ExecEvent::TxnReject, TxnReject { reason: number as u32 });
    BlockVerified { block_number: number }
}

#[test]
fn arguments_panics_and_open_reservations_record_too() {
    let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .anonymous()
        .prefault(false)
        .build()
        .unwrap();
    let _guard = EXEC.override_with(recorder.clone());

    // The code runs in the arguments, which are evaluated first.
    record!(ExecEvent::BlockVerified, noted(&recorder, 1); txn = record!(ExecEvent::TxnEnd));
    // This macro names its recorder. Its payload argument calls `noted`, which itself records an event with
    // `record!`.
    recordv!(recorder => raw(18), [&noted(&recorder, 2).block_number.to_le_bytes()]);

    // `noted` records while one reservation is open, and a second one within it.
    let mut outer = recorder.reserve(19, [0; 4], 10).unwrap();
    outer.append(b"outer");
    let mut inner = recorder.reserve(22, [0; 4], 10).unwrap();
    noted(&recorder, 3);
    inner.append(b"inner");
    inner.commit_written();
    outer.commit_written();

    // `noted` records in a destructor, while a panic unwinds and a reservation is open.
    struct Notes<'r>(&'r Recorder);
    impl Drop for Notes<'_> {
        fn drop(&mut self) {
            noted(self.0, 4);
        }
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _open = recorder.reserve(23, [0; 4], 4);
        let _notes = Notes(&recorder);
        panic!("on purpose");
    }));
    assert!(panicked.is_err());

    let reject = |number: u8| (14, vec![number, 0, 0, 0]);
    let eight = |number: u8| vec![number, 0, 0, 0, 0, 0, 0, 0];
    let events = read_back::events(&read_back::reader_of(&recorder)).into_iter();
    let found: Vec<_> = events.map(|(_, event_type, _, payload)| (event_type, payload)).collect();
    let missing = found[8].1.clone();
    assert_eq!(
        found,
        [
            (20, vec![]),
            reject(1),
            (9, eight(1)),
            reject(2),
            (18, eight(2)),
            (19, b"outer".to_vec()),
            (22, b"inner".to_vec()),
            reject(3),
            (1, missing.clone()),
            reject(4),
        ]
    );
    assert_eq!(missing[2..4], 23u16.to_le_bytes());
}
