//! Faults that the soak must find.

use crate::follow;
use crate::workload::{Stress, noise, stalls_in};
use crate::{FollowCounts, SoakOutcome};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;

fn recorder(directory: &tempfile::TempDir) -> Recorder {
    let description = ContentDescription::from_event_type::<ExecEvent>();
    let builder = Recorder::builder(description).config(directory.path().join("ring"));
    builder.compact(true).shifts(15, 24).build().unwrap()
}

/// Records events, calls `also` in the middle to record a faulty event, and returns the soak's counts for all of
/// these.
fn outcome_of(also: impl FnOnce(&Recorder)) -> SoakOutcome {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let recorder = recorder(&directory);
    let follower = follow::start(&directory.path().join("ring")).unwrap();
    let mut stress = Stress::new(recorder.clone(), 0, noise());
    for _ in 0..100 {
        stress.turn();
    }
    also(&recorder);
    for _ in 0..100 {
        stress.turn();
    }
    drop((stress, recorder));
    let mut outcome = SoakOutcome::default();
    outcome.add_follower(follower.end());
    outcome
}

#[test]
fn an_event_with_a_wrong_checksum_fails_the_soak() {
    let good = outcome_of(|_| {});
    assert!(good.events > 1000 && good.is_good(), "{good:?}");
    // The descriptor and the payload of this event do not belong together: its checksum is wrong. So it counts as
    // torn.
    let torn =
        outcome_of(|recorder| assert_ne!(recorder.record(ExecEvent::TxnLog as u16, [1, 2, 3, 4], b"nobody's"), 0));
    assert!(torn.torn == 1 && !torn.is_good(), "{torn:?}");
}

#[test]
fn hung_readers_and_unaccounted_seqnos_fail_the_soak_and_counted_losses_do_not() {
    let mut hung = SoakOutcome::default();
    hung.add_follower(None);
    assert!(hung.hung == 1 && !hung.is_good());
    let mut outcome = SoakOutcome::default();
    outcome.add_follower(Some(FollowCounts { last_seqno: 10, read: 4, lost: 6, ..FollowCounts::default() }));
    assert!(outcome.lost == 6 && outcome.is_good());
    outcome.add_follower(Some(FollowCounts { unaccounted: 1, ..FollowCounts::default() }));
    assert!(!outcome.is_good());
}

#[test]
fn a_thread_with_any_number_stalls_once_in_three_thousand_turns() {
    for thread in 0..100 {
        assert_eq!((1..=3000).filter(|turn| stalls_in(*turn, thread)).count(), 1, "thread {thread}");
    }
}
