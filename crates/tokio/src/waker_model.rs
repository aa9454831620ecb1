//! The waker's source, unchanged, in random schedules of `shuttle`: an executor that polls a task with one outer waker and
//! then another, and threads that wake the task, or drop their clone of its waker.

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

/// What the executor waits for.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Wakes,
    WakesByRef,
    Drops,
}

/// One thing that the task waits for.
#[derive(Default)]
struct Awaited {
    is_there: bool,
    is_given_up: bool,
    waker: Option<Waker>,
}

fn run(ways: &[Way]) {
    let queue = Arc::new(Queue {
        state: Mutex::new(State { is_woken: true, outer: 0, unwakeable: 0 }),
        changed: Condvar::new(),
    });
    let shared = Shared::new(record::Recorded(queue.clone()));
    let awaited: Vec<Arc<Mutex<Awaited>>> = ways.iter().map(|_| Arc::default()).collect();
    let sides = awaited.iter().zip(ways).map(|(awaited, way)| {
        let (awaited, way) = (awaited.clone(), *way);
        thread::spawn(move || {
            let waker = {
                let mut awaited = awaited.lock().unwrap();
                awaited.is_there = way != Way::Drops;
                awaited.is_given_up = way == Way::Drops;
                awaited.waker.take()
            };
            match way {
                Way::Wakes => waker.into_iter().for_each(Waker::wake),
                Way::WakesByRef => waker.iter().for_each(Waker::wake_by_ref),
                Way::Drops => drop(waker),
            }
        })
    });
    let sides: Vec<_> = sides.collect();
    let outers = [0, 1].map(|outer| (outer, Waker::from(Arc::new(Outer(queue.clone(), outer)))));
    let (mut kept, mut seen) = (None, 0);
    for (outer, waker) in outers.iter().cycle() {
        if !queue.next().is_woken {
            break;
        }
        queue.change(|state| state.outer = *outer);
        let waker = shared.begin_poll(waker, kept.take());
        seen = 0;
        for awaited in &awaited {
            let mut awaited = awaited.lock().unwrap();
            if awaited.is_there {
                seen += 1;
            } else if !awaited.is_given_up {
                let old = awaited.waker.replace(waker.clone());
                drop(awaited);
                drop(old);
            }
        }
        if seen == ways.len() {
            shared.end();
            break;
        }
        kept = shared.end_poll(waker);
    }
    sides.into_iter().for_each(|side| side.join().unwrap());
    drop(kept);
    let drops = ways.iter().filter(|way| **way == Way::Drops).count();
    let unwakeable = queue.state.lock().unwrap().unwakeable;
    assert_eq!((seen, unwakeable), (ways.len() - drops, u32::from(drops > 0)), "{ways:?}");
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
    }
}
