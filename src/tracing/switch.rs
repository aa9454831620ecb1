//! Changes of the recording (on or off, another filter, another recorder). One thread at a time makes a change.
//!
//! `tracing` asks each subscriber whether it wants a call site, and caches the answers and the most verbose level of
//! all. It asks again when `rebuild_interest_cache` is called.
//!
//! A change and the call of `rebuild_interest_cache` after it are made together under a lock, and are called the
//! thread's *turn*. Without the lock, a thread could collect answers while recording is off, and store them after
//! another thread has switched recording on and stored the new answers. `tracing` would then keep the old answers, and
//! nothing would be recorded.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Lock that a thread holds during its turn.
static SWITCH: Mutex<()> = Mutex::new(());

/// Most times that `tracing` asks the subscriber again in one turn. Without a limit, a layer that makes a change each
/// time it is asked would never end.
const ROUNDS_MAX: usize = 8;

/// The state of the calling thread: whether it has the turn, and whether `tracing` has to ask again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    NotMine,
    Mine,
    /// Turn of the calling thread. There was a change after `tracing` began to ask for the call sites, so `tracing` has
    /// to ask once more.
    MineWithChange,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::NotMine) };
}

/// Calls `change`, which returns true if it changed anything. After a change, this function makes `tracing` ask again
/// for all call sites, through the calling thread's subscriber, before it returns.
///
/// A layer may also call this while `tracing` asks it. The change is then made immediately, and `tracing` asks once
/// more afterwards.
pub(super) fn switch(change: impl FnOnce() -> bool) -> bool {
    if TURN.get() != Turn::NotMine {
        return note(change());
    }
    // A poisoned lock can be used: the lock protects no data, so a layer that panics when `tracing` asks it leaves
    // nothing inconsistent.
    let _lock = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    let _mine = MyTurn::begin();
    let has_changed = note(change());
    for _ in 0..ROUNDS_MAX {
        if TURN.replace(Turn::Mine) != Turn::MineWithChange {
            break;
        }
        tracing_core::callsite::rebuild_interest_cache();
    }
    has_changed
}

fn note(has_changed: bool) -> bool {
    if has_changed {
        TURN.set(Turn::MineWithChange);
    }
    has_changed
}

/// A guard that ends the thread's turn, also when a panic unwinds through it.
struct MyTurn;

impl MyTurn {
    fn begin() -> Self {
        TURN.set(Turn::Mine);
        Self
    }
}

impl Drop for MyTurn {
    fn drop(&mut self) {
        TURN.set(Turn::NotMine);
    }
}
