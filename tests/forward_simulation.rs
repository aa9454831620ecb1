//! A thousand hosts send events through brokers that crash, lose what they had acknowledged, and forget old batches.
//! Forwarders and receivers are killed. Afterwards each seqno is in a receiver's file once, or lies in one stated gap.
//!
//! This is a model: it has no sockets, no threads and no clock, and the same seed always gives the same course. The
//! rules of its forwarders and receivers are those of `src/forward/` and `src/capture/received/`, under the same
//! names. `crates/cli/tests/it/forward/kills.rs` has the real ones.
//!
//! `EVENTRING_SIMULATION_SEEDS=1000` runs more courses than 2.

mod forward_model;

use forward_model::{Course, Fault, Outcome};

/// The number of hosts, and the number of steps that each of them takes.
const HOSTS: usize = 1000;
const STEPS: usize = 250;

fn seeds() -> u64 {
    std::env::var("EVENTRING_SIMULATION_SEEDS").map_or(2, |seeds| seeds.parse().unwrap())
}

fn outcome(seed: u64, fault: Option<Fault>) -> Outcome {
    Course::new(seed, HOSTS, fault).run(STEPS)
}

#[test]
fn no_event_of_a_thousand_hosts_is_unaccounted_for() {
    for seed in 1..=seeds() {
        let outcome = outcome(seed, None);
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
        println!("seed {seed}: {:?}", outcome.counts);
        // A course in which nothing happened would show nothing.
        let counts = &outcome.counts;
        for (what, count) in [
            ("events", counts.events),
            ("batches", counts.batches),
            ("kills of forwarders", counts.forwarder_kills),
            ("kills of receivers", counts.receiver_kills),
            ("crashes of brokers", counts.crashes),
            ("acknowledged batches that a broker lost", counts.lost_batches),
            ("lost answers", counts.lost_answers),
            ("refused batches", counts.refused),
            ("new beginnings of forwarders", counts.restarts),
            ("rewinds of receivers", counts.rewinds),
            ("overwritten events", counts.overwritten),
            ("forgotten batches", counts.forgotten),
            ("second forwarders", counts.second_forwarders),
            ("programs that were started again", counts.new_rings),
            ("shards that were made later", counts.more_shards),
            ("ends", counts.ends),
        ] {
            assert!(count > 0, "seed {seed}: there were no {what}");
        }
    }
}

/// Returns the violations of courses with a rule switched off, one after the other.
fn violations_with(fault: Option<Fault>) -> impl Iterator<Item = String> {
    (1..=20).flat_map(move |seed| outcome(seed, fault).violations)
}

/// Returns the violations of courses with few hosts. Their crashes hit the same subjects again and again, and their
/// streams forget nothing.
fn violations_of_few_hosts(fault: Option<Fault>) -> impl Iterator<Item = String> {
    (1..=40).flat_map(move |seed| Course::new(seed, 10, fault).run(1000).violations)
}

#[test]
fn nothing_is_missing_among_few_hosts_with_many_crashes() {
    assert_eq!(violations_of_few_hosts(None).next(), None);
}

#[test]
fn a_batch_that_does_not_name_the_one_before_it_is_noticed() {
    assert!(violations_with(Some(Fault::NothingExpected)).next().is_some());
}

#[test]
fn a_forwarder_that_takes_a_duplicate_for_its_own_is_noticed() {
    assert!(violations_with(Some(Fault::DuplicateIsSuccess)).next().is_some());
}

#[test]
fn a_forwarder_that_takes_the_refusal_of_an_end_for_its_arrival_is_noticed() {
    let mut violations = violations_with(Some(Fault::RefusedEndIsSuccess));
    assert!(violations.any(|violation| violation.contains("no receiver knows that it has ended")));
}

#[test]
fn a_forwarder_that_does_not_look_at_shards_of_others_is_noticed() {
    assert!(violations_of_few_hosts(Some(Fault::OtherShardsDoNotMatter)).next().is_some());
}

#[test]
fn a_forwarder_that_does_not_send_lost_shards_again_is_noticed() {
    assert!(violations_of_few_hosts(Some(Fault::UnknownShardsStay)).next().is_some());
}

#[test]
fn a_forwarder_that_does_not_remember_the_batches_of_an_earlier_one_is_noticed() {
    assert!(violations_of_few_hosts(Some(Fault::OnlyOwnBatchesAreRemembered)).next().is_some());
}

#[test]
fn a_forwarder_that_does_not_ask_again_after_a_crash_is_noticed() {
    // With few hosts, a number is soon given to another batch of the same subject.
    assert!(violations_of_few_hosts(Some(Fault::NumberIsEnough)).next().is_some());
}

#[test]
fn a_receiver_that_trusts_its_place_after_a_crash_is_noticed() {
    assert!(violations_with(Some(Fault::PlaceIsEnough)).next().is_some());
}

#[test]
fn a_receiver_that_does_not_look_at_seqnos_is_noticed() {
    assert!(violations_with(Some(Fault::NoSeqnos)).next().is_some());
}
