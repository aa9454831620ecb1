//! A scoped override: for a while, one thread records to another recorder. The other threads are not affected.

use crate::fixtures::*;
use eventring::global::EXEC;

fn recorder() -> Recorder {
    Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().prefault(false).build().unwrap()
}

fn counts(recorders: [&Recorder; 3]) -> [u64; 3] {
    recorders.map(|recorder| recorder.stats().last_seqno)
}

#[test]
fn an_override_is_of_its_thread_nests_and_ends_with_its_guard() {
    alone!();
    let (installed, outer, inner) = (recorder(), recorder(), recorder());
    let all = [&installed, &outer, &inner];
    {
        // An override does not need an installed recorder.
        let _outer = EXEC.override_with(outer.clone());
        assert!(EXEC.is_enabled());
        record!(ExecEvent::TxnEnd);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!((record!(ExecEvent::TxnEnd), EXEC.is_enabled()), (0, false)));
        });
    }
    assert!(!EXEC.is_enabled());
    assert_eq!((record!(ExecEvent::TxnEnd), counts(all)), (0, [0, 1, 0]));

    EXEC.install(installed.clone()).unwrap();
    let guard = EXEC.override_with(outer.clone());
    record!(ExecEvent::TxnEnd);
    {
        let _inner = EXEC.override_with(inner.clone());
        record!(ExecEvent::TxnEnd);
        std::thread::scope(|scope| {
            scope.spawn(|| record!(ExecEvent::TxnEnd));
        });
    }
    record!(ExecEvent::TxnEnd);
    assert_eq!(counts(all), [1, 3, 1]);

    // The guards may be dropped in any order.
    let inner_guard = EXEC.override_with(inner.clone());
    drop(guard);
    record!(ExecEvent::TxnEnd);
    assert_eq!(counts(all), [1, 3, 2]);
    let guard = EXEC.override_with(outer.clone());
    drop(inner_guard);

    // The override goes on recording although the global recorder is switched off, because overrides are made for
    // tests.
    EXEC.set_enabled(false);
    record!(ExecEvent::TxnEnd);
    drop(guard);
    assert_eq!((record!(ExecEvent::TxnEnd), counts(all)), (0, [1, 4, 2]));
    EXEC.set_enabled(true);
    record!(ExecEvent::TxnEnd);
    assert_eq!(counts(all), [2, 4, 2]);
}
