//! Tests of the waker's unchanged source in random schedules of `shuttle`. An executor polls a task with one outer
//! waker and then with another. Other threads wake the task or drop their clones of its waker.

#[expect(clippy::duplicate_mod, reason = "here it is made of what the model can schedule")]
#[path = "waker.rs"]
mod waker;

mod primitives {
    pub(super) use shuttle::sync::atomic::AtomicBool;
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}

mod record {
    use super::Queue;
    use std::sync::Arc;

    /// Stands for the recorder.
    pub(super) struct Recorded(pub(super) Arc<Queue>);

    impl Recorded {
        pub(super) fn woken(&self) {}

        pub(super) fn unwakeable(&self) {
            self.0.change(|state| state.unwakeable += 1);
        }
    }
}

use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use std::sync::Arc;
use std::task::{Wake, Waker};
use waker::Shared;

/// The executor waits for this: a wake, or that nobody can wake the task.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
struct State {
    is_woken: bool,
    /// Which of the executor's wakers the last poll had. The other one wakes nobody.
    outer: usize,
    unwakeable: u32,
}

impl Queue {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits for a wake, or until nobody can wake the task. If neither comes, `shuttle` says that all threads wait.
    fn next(&self) -> State {
        let mut state = self.state.lock().unwrap();
        while !state.is_woken && state.unwakeable == 0 {
            state = self.changed.wait(state).unwrap();
        }
        let next = *state;
        state.is_woken = false;
        next
    }
}

/// The waker of the executor.
struct Outer(Arc<Queue>, usize);

impl Wake for Outer {
    fn wake(self: Arc<Self>) {
        self.0.change(|state| state.is_woken |= state.outer == self.1);
    }
}

/// The number of things that each thread leaves.
const THINGS: u32 = 3;

/// How a thread tells the task of a thing. One that drops leaves the last thing out, and drops its waker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Wakes,
    WakesByRef,
    Drops,
}

/// The task waits for things, which come one after the other.
#[derive(Default)]
struct Awaited {
    are_there: u32,
    is_given_up: bool,
    waker: Option<Waker>,
}

/// Where a thread leaves them, each after the task has waited for it.
#[derive(Default)]
struct Slot {
    awaited: Mutex<Awaited>,
    has_waker: Condvar,
}

fn run(ways: &[Way]) {
    let queue = Arc::new(Queue {
        state: Mutex::new(State { is_woken: true, outer: 0, unwakeable: 0 }),
        changed: Condvar::new(),
    });
    let shared = Shared::new(record::Recorded(queue.clone()));
    let awaited: Vec<Arc<Slot>> = ways.iter().map(|_| Arc::default()).collect();
    let sides = awaited.iter().zip(ways).map(|(slot, way)| {
        let (slot, way) = (slot.clone(), *way);
        thread::spawn(move || {
            for number in 1..=THINGS {
                let is_left_out = way == Way::Drops && number == THINGS;
                let mut awaited = slot.awaited.lock().unwrap();
                while awaited.waker.is_none() {
                    awaited = slot.has_waker.wait(awaited).unwrap();
                }
                let waker = awaited.waker.take();
                awaited.is_given_up = is_left_out;
                awaited.are_there += u32::from(!is_left_out);
                drop(awaited);
                match way {
                    _ if is_left_out => drop(waker),
                    Way::WakesByRef => waker.iter().for_each(Waker::wake_by_ref),
                    Way::Wakes | Way::Drops => waker.into_iter().for_each(Waker::wake),
                }
            }
        })
    });
    let sides: Vec<_> = sides.collect();
    let outers = [0, 1].map(|outer| Waker::from(Arc::new(Outer(queue.clone(), outer))));
    let (mut kept, mut seen, wanted) = (None, 0, THINGS * ways.len() as u32);
    for outer in [0, 0, 0, 1, 1].into_iter().cycle() {
        if !queue.next().is_woken {
            break;
        }
        queue.change(|state| state.outer = outer);
        let waker = shared.begin_poll(&outers[outer], kept.take());
        seen = 0;
        for slot in &awaited {
            let mut awaited = slot.awaited.lock().unwrap();
            seen += awaited.are_there;
            if awaited.are_there < THINGS && !awaited.is_given_up {
                let old = awaited.waker.replace(waker.clone());
                drop(awaited);
                slot.has_waker.notify_one();
                drop(old);
            }
        }
        if seen == wanted {
            shared.end();
            break;
        }
        kept = shared.end_poll(waker);
    }
    sides.into_iter().for_each(|side| side.join().unwrap());
    drop(kept);
    let drops = ways.iter().filter(|way| **way == Way::Drops).count() as u32;
    let unwakeable = queue.state.lock().unwrap().unwakeable;
    assert_eq!((seen, unwakeable), (wanted - drops, u32::from(drops > 0)), "{ways:?}");
}

#[test]
fn no_wake_is_lost_and_a_task_that_nobody_can_wake_says_so_once() {
    use Way::{Drops, Wakes, WakesByRef};
    for ways in [
        &[Wakes, Wakes][..],
        &[WakesByRef, WakesByRef],
        &[Wakes, WakesByRef, Wakes],
        &[Drops],
        &[Wakes, Drops],
        &[WakesByRef, Drops, Drops],
    ] {
        // EVENTRING_SCHEDULES=100000 runs longer.
        let schedules = std::env::var("EVENTRING_SCHEDULES").map_or(1000, |text| text.parse().unwrap());
        shuttle::check_random(move || run(ways), schedules);
        // Threads with priorities, which change so often.
        shuttle::check_pct(move || run(ways), schedules, 3);
    }
}
