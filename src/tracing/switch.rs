//! The one turn of everything that changes what is recorded.
//!
//! `tracing` keeps the answers that subscribers gave for each call site, and the highest level of all, and asks again when it is told to. Of
//! two threads that change something and ask at the same time, one could ask before the other's change and store the answers after it: then
//! recording would stay off. So a change and the asking are one turn.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Who has it has the turn.
static SWITCH: Mutex<()> = Mutex::new(());

/// As often as this all call sites are asked in one turn: a layer that changes something each time it is asked would never be done.
const ROUNDS_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Another,
    Mine,
    /// Mine, and something has changed since the call sites were asked.
    MineWithChange,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::Another) };
}

/// Makes a change, which says whether it changed anything. If it did, all call sites are asked again, by way of the calling thread's
/// subscriber, before this returns.
///
/// A change from inside, by a layer that is just being asked, is made at once; the call sites are asked again when the asking that is under
/// way is done.
pub(super) fn switch(change: impl FnOnce() -> bool) -> bool {
    if TURN.get() != Turn::Another {
        return note(change());
    }
    // A layer that panics when it is asked leaves nothing half done.
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

/// Ends the thread's turn, also when a panic goes by.
struct MyTurn;

impl MyTurn {
    fn begin() -> Self {
        TURN.set(Turn::Mine);
        Self
    }
}

impl Drop for MyTurn {
    fn drop(&mut self) {
        TURN.set(Turn::Another);
    }
}
