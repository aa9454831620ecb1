//! `record!` evaluates neither payload nor extension words while its recorder is off, and records nothing.

use crate::fixtures::*;
use eventring::global::EXEC;
use eventring::schema::exec::{BlockVerified, TxnLog};

#[test]
fn arguments_are_evaluated_only_while_the_recorder_is_on() {
    alone!();
    let evaluated = Cell::new(0);
    let payload = || {
        evaluated.set(evaluated.get() + 1);
        BlockVerified { block_number: 7 }
    };
    let word = || {
        evaluated.set(evaluated.get() + 1);
        9
    };
    let bytes = || {
        evaluated.set(evaluated.get() + 1);
        b"abc"
    };
    let log = TxnLog { data_length: 3, ..TxnLog::default() };
    let record_all = || {
        [
            record!(ExecEvent::BlockVerified, payload(); txn = word()),
            recordv!(ExecEvent::TxnLog, &log, [bytes()]; ext[0] = word()),
        ]
    };

    // No recorder is installed.
    assert_eq!((record_all(), evaluated.get()), ([0, 0], 0));

    let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .anonymous()
        .prefault(false)
        .build()
        .unwrap();
    EXEC.install(recorder.clone()).unwrap();
    assert_eq!((record_all(), evaluated.get()), ([1, 2], 4));

    // The global recorder is switched off while the program runs.
    EXEC.set_enabled(false);
    assert_eq!((record_all(), evaluated.get()), ([0, 0], 4));
    EXEC.set_enabled(true);
    assert_eq!((record_all(), evaluated.get()), ([3, 4], 8));

    // These macros name the recorder, and this recorder itself is switched off. No global recorder is involved.
    let own = || {
        [
            record!(recorder => ExecEvent::BlockVerified, payload(); txn = word()),
            recordv!(recorder => ExecEvent::TxnLog, &log, [bytes()]; ext[0] = word()),
            recordv!(recorder => raw(word() as u16), [bytes()]),
        ]
    };
    recorder.set_enabled(false);
    assert_eq!((own(), evaluated.get()), ([0, 0, 0], 8));
    recorder.set_enabled(true);
    assert_eq!((own(), evaluated.get()), ([5, 6, 7], 14));
    assert_eq!(recorder.stats().last_seqno, 7);
}
