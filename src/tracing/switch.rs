//! Turns of changes of the recording: one thread at a time changes it.
//!
//! `tracing` caches the answers of subscribers for each call site, and the most verbose level of all. It collects the
//! answers again when `rebuild_interest_cache` is called. Without turns, a thread could collect the answers, and store
//! them only after another thread has switched recording on and collected the new answers. Recording would then stay
//! off. So a change and the call after it are one turn, under a lock.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Lock of the thread that has the turn.
static SWITCH: Mutex<()> = Mutex::new(());

/// Most times that `tracing` asks the subscriber again in one turn. Without a limit, a layer that makes a change each
/// time it is asked would never end.
const ROUNDS_MAX: usize = 8;

/// The answer to the question whether the calling thread has the turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    NotMine,
    Mine,
    /// Turn of the calling thread, with a change since `tracing` asked for the call sites.
    MineWithChange,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::NotMine) };
}

/// Calls `change`, which returns true if it changed anything. If so, `tracing` asks again for all call sites, through
/// the calling thread's subscriber, before this function returns.
///
/// A layer may also call this while `tracing` asks it. The change is then made immediately, and `tracing` asks once
/// more afterwards.
pub(super) fn switch(change: impl FnOnce() -> bool) -> bool {
    if TURN.get() != Turn::NotMine {
        return note(change());
    }
    // A poisoned lock does no harm: a layer that panics when it is asked leaves nothing half done.
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
