//! Times of threads, wakers, and counts of switches agree with what the kernel counts itself.

use super::roles::{HANDOVERS, play};
use super::{Profiled, profile};
use crate::fixtures::*;

/// Returns the nanoseconds that a thread ran until a time, those that it waited for a processor, and those that it
/// slept.
pub fn times(profiled: &Profiled, thread: u64, end: u64) -> [u64; 3] {
    let names = ["WOKEN", "SWITCHED_OUT", "SWITCHED_IN"];
    let mut events: Vec<(u64, &str, bool)> = Vec::new();
    for name in names {
        let of_thread = profiled.of(name).filter(|(at, payload)| payload["thread_id"] == thread && *at <= end);
        events.extend(of_thread.map(|(at, payload)| (at, name, payload["state"] == "RUNNABLE")));
    }
    events.sort_unstable();
    let (mut ran, mut waited, mut slept) = (0, 0, 0);
    let (mut since_in, mut since_ready, mut since_asleep) = (None, None, None::<u64>);
    for (at, name, is_runnable) in events {
        match name {
            "WOKEN" => {
                slept += since_asleep.take().map_or(0, |begin| at - begin);
                since_ready.get_or_insert(at);
            }
            "SWITCHED_IN" => {
                waited += since_ready.take().map_or(0, |ready| at - ready);
                since_in = Some(at);
            }
            _ => {
                ran += since_in.take().map_or(0, |begin| at - begin);
                since_ready = is_runnable.then_some(at);
                since_asleep = (!is_runnable).then_some(at);
            }
        }
    }
    [ran + since_in.map_or(0, |begin| end - begin), waited, slept]
}

#[test]
fn times_agree_with_those_of_the_scheduler() {
    let test = plays!(|part| play(&part));
    let mut found = Vec::new();
    let (profiled, thread) = loop {
        let Some(profiled) = profile(test, "times", &["--sched"]) else { return };
        let [thread, end, run, wait, _] = profiled.numbers("schedstat")[..] else { panic!("{}", profiled.said) };
        let [ran, waited, _] = times(&profiled, thread, end);
        assert!(waited > 50_000_000, "nobody else wanted the processor");
        // The scheduler does not count what the hypervisor has taken, and the kernel counts that in steps of ten
        // milliseconds.
        let stolen = profiled.numbers("stolen")[0];
        if [(ran, run), (waited, wait)].iter().all(|(a, b)| a.abs_diff(*b) <= a.max(b) / 20 + stolen) {
            break (profiled, thread);
        }
        // A machine that is busy with other things delays what is compared.
        found.push(([ran, waited], [run, wait], stolen, profiled.summary["kernel_lost"].clone()));
        assert!(found.len() < 3, "ran and waited, by the profile and by the scheduler, stolen, lost: {found:?}");
    };
    // The thread has slept 100 ms, and only then.
    let asleep =
        profiled.of("SWITCHED_OUT").filter(|(_, out)| out["thread_id"] == thread && out["state"] == "SLEEPING");
    assert!(asleep.count() >= 1);

    // Who leaves a processor comes back to one, or ends.
    let mut ends: BTreeMap<u64, Vec<(u64, &str)>> = BTreeMap::new();
    for name in ["SWITCHED_IN", "SWITCHED_OUT", "THREAD_ENDED"] {
        profiled.of(name).for_each(|(at, payload)| {
            ends.entry(payload["thread_id"].number()).or_default().push((at, name));
        });
    }
    for (thread, mut events) in ends {
        events.sort_by_key(|(at, name)| (*at, *name == "THREAD_ENDED"));
        // What the kernel says of a thread that is ending is not always told in this order.
        let pairs = events[..events.len().saturating_sub(3)].windows(2);
        let wrong =
            pairs.filter(|pair| pair[0].1 == pair[1].1 || (pair[0].1, pair[1].1) == ("SWITCHED_IN", "THREAD_ENDED"));
        assert!(wrong.count() == 0 || profiled.summary["kernel_lost"] != 0, "{thread}: {events:?}");
        assert_eq!(events.last().unwrap().1, "THREAD_ENDED", "{thread}: {events:?}");
    }
}

#[test]
fn a_thread_that_is_woken_names_who_woke_it() {
    let test = plays!(|part| play(&part));
    let Some(profiled) = profile(test, "handover", &["--sched", "--syscalls"]) else { return };
    let [left, right] = profiled.numbers("threads")[..] else { panic!("{}", profiled.said) };
    let pair = BTreeSet::from([left, right]);
    let wakers = profiled.of("WOKEN").filter(|(_, woken)| pair.contains(&woken["thread_id"].number()));
    let (mut by_other, mut others) = (0, Vec::new());
    for (_, woken) in wakers {
        let (thread, waker) = (woken["thread_id"].number(), woken["waker_thread_id"].number());
        match waker {
            // The timer of its own sleep.
            0 => {}
            _ if pair.contains(&waker) && waker != thread => {
                let name = if waker == left { "left" } else { "right" };
                assert_eq!(woken["waker_name"], name);
                by_other += 1;
            }
            _ => others.push(woken.clone()),
        }
    }
    assert!(by_other >= HANDOVERS, "{by_other} of {HANDOVERS}");
    // The thread that has made both is a waker of each, once.
    assert!(others.len() <= 4, "{others:?}");
    // Both were asleep in futex and in clock_nanosleep.
    let futex = profiled.of("SYSCALL").filter(|(_, call)| call["number"] == libc::SYS_futex);
    let slept = profiled.of("SYSCALL").filter(|(_, call)| call["number"] == libc::SYS_clock_nanosleep);
    assert!(futex.count() as u32 >= HANDOVERS - 2 && slept.count() as u32 >= HANDOVERS);
}

const SWITCHES: &str = test_name!("thousands_of_switches_are_counted");

#[test]
fn thousands_of_switches_are_counted() {
    if let Some(part) = part() {
        play(&part);
    }
    // As many as there can be, and about a hundred thousand a second.
    for part in ["switches", "hundred thousand"] {
        count(part);
    }
}

fn count(part: &str) {
    let Some(profiled) = profile(SWITCHES, part, &["--sched"]) else { return };
    let [lost, of_ring] = ["kernel_lost", "lost"].map(|name| profiled.summary[name].number());
    let told: u64 = profiled.of("KERNEL_LOST").map(|(_, lost)| lost["count"].number()).sum();
    // A ring that was overwritten before it was copied may have had some of them.
    assert!(told == lost || (told < lost && of_ring > 0), "{told} of {lost}, {of_ring}");
    let lost = lost + of_ring;
    let (numbers, mut rate) = (profiled.numbers("switches"), 0);
    for numbers in numbers.chunks_exact(3) {
        let [thread, counted, micros] = numbers[..] else { unreachable!() };
        let seen = profiled.of("SWITCHED_OUT").filter(|(_, out)| out["thread_id"] == thread).count() as u64;
        assert!(counted > 1000, "{counted} switches are too few for this test");
        // The thread has left its processor a few times more after it has counted.
        assert!(seen <= counted + 10 && seen + lost + 5 >= counted, "{seen} of {counted}, {lost} lost");
        // The other thread of the pair has left it as often.
        rate += 2 * counted * 1_000_000 / micros;
    }
    println!("{part}: {rate} switches a second; {lost} records were lost, and told");
}
