//! That the soak would notice.

use super::follow;
use super::workload::{Torture, noise};
use super::{Exit, Followed, Outcome};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;

fn recorder(directory: &tempfile::TempDir) -> Recorder {
    let description = ContentDescription::of::<ExecEvent>();
    let builder = Recorder::builder(description).config(directory.path().join("ring"));
    builder.compact(true).shifts(15, 24).build().unwrap()
}

/// Records, with `also` in the middle; what a follower makes of it.
fn outcome_of(also: impl FnOnce(&Recorder)) -> Outcome {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let recorder = recorder(&directory);
    let following = follow::start(&directory.path().join("ring")).unwrap();
    let mut torture = Torture::new(recorder.clone(), 0, noise());
    for _ in 0..100 {
        torture.turn();
    }
    also(&recorder);
    for _ in 0..100 {
        torture.turn();
    }
    drop((torture, recorder));
    let mut outcome = Outcome::default();
    outcome.follower(following.end());
    outcome
}

#[test]
fn an_event_that_nobody_recorded_so_fails_the_soak_and_without_it_all_is_well() {
    let good = outcome_of(|_| {});
    assert!(good.events > 1000 && good.exit() == Exit::Done, "{good:?}");
    // As if half of a descriptor, or of a payload, were another event's.
    let torn =
        outcome_of(|recorder| assert_ne!(recorder.record(ExecEvent::TxnLog as u16, [1, 2, 3, 4], b"nobody's"), 0));
    assert!(torn.torn == 1 && torn.exit() == Exit::Failed, "{torn:?}");
}

#[test]
fn a_reader_that_hangs_and_a_seqno_that_is_unaccounted_fail_the_soak_and_counted_losses_do_not() {
    let mut hung = Outcome::default();
    hung.follower(None);
    assert!(hung.hung == 1 && hung.exit() == Exit::Failed);
    let mut outcome = Outcome::default();
    outcome.follower(Some(Followed { last_seqno: 10, read: 4, lost: 6, ..Followed::default() }));
    assert!(outcome.lost == 6 && outcome.exit() == Exit::Done);
    outcome.follower(Some(Followed { unaccounted: 1, ..Followed::default() }));
    assert_eq!(outcome.exit(), Exit::Failed);
}
