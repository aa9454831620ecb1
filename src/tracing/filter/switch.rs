//! The lock that a thread holds while it switches recording on or off, replaces the filter, or replaces the recorder.
//!
//! `tracing` asks each subscriber which call sites it wants, and what its most verbose level is. The answers are stored
//! in the interest cache of `tracing`. The function `rebuild_interest_cache` asks again and stores the new answers.
//!
//! In its *turn*, a thread takes the lock, makes its change, and calls `rebuild_interest_cache`.
//!
//! Without the lock, the cache could get old answers. For example, thread A asks the subscribers while recording is
//! off. Thread B switches recording on and stores the new answers. Then thread A stores its old answers, and nothing is
//! recorded.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Lock that a thread holds during its turn.
static SWITCH: Mutex<()> = Mutex::new(());

/// Limit of how often `tracing` asks the subscribers in one turn. A layer can make a change each time `tracing` asks
/// it. Without a limit, the turn with such a layer would never end.
const ROUNDS_MAX: usize = 8;

/// The state of the calling thread: whether it is in its turn, and if so, whether `tracing` must ask again which call
/// sites are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    NotMine,
    Mine,
    /// Turn of the calling thread. Something has changed since `tracing` last began to ask which call sites are
    /// wanted, so `tracing` must ask again.
    MineWithChange,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::NotMine) };
}

/// Calls `change`, which makes a change and returns true if anything has changed. If so, makes `tracing` ask again,
/// for all call sites, whether they are wanted. `tracing` has the answers before this function returns. It asks
/// through the calling thread's subscriber.
///
/// A layer may call this function while `tracing` asks the layer. Then this function calls `change` and returns. The
/// outer call of this function notices the change, and makes `tracing` ask once more for all call sites.
pub(in crate::tracing) fn switch(change: impl FnOnce() -> bool) -> bool {
    if TURN.get() != Turn::NotMine {
        return note(change());
    }
    // A poisoned lock may be used. A layer can panic when `tracing` asks it, but `SWITCH` protects no data that could
    // be inconsistent after the panic.
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

/// A guard that ends the thread's turn when it is dropped, also while a panic unwinds.
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
