//! The threads that wait for locks of `eventring::sync`, and cycles of threads.

use super::locks::{Known, Locks, Turn};
use eventring::now::LockCell;

/// The waits of the threads of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ThreadWaits {
    /// Each wait, with the cell that says who holds the lock, if one does. The longest wait comes first.
    pub waits: Vec<(LockCell, Option<LockCell>)>,
    /// The deadlocks: the places of waits whose locks the thread of the next one holds, and that of the first one the
    /// thread of the last.
    pub deadlocks: Vec<Vec<usize>>,
}

/// Returns the waits of threads that tables of the present show. Locks of tasks are left out.
#[must_use]
pub fn thread_waits(cells: &[LockCell]) -> ThreadWaits {
    let mut locks = Locks::default();
    let of_threads = || cells.iter().filter(|cell| cell.site != 0 && cell.guard != 0);
    for cell in of_threads() {
        let (is_shared, nanos) = (cell.mode() == "read", cell.since_epoch_nanos);
        let task = Some(cell.thread.into());
        let turn = Turn { lock: cell.lock, task, is_shared, since_nanos: nanos, told_nanos: nanos };
        match cell.waits() {
            true => locks.wait(cell.guard, turn),
            false => drop(locks.hold(cell.guard, turn)),
        }
    }
    let holder = |wait: &LockCell| {
        let holds = |cell: &&LockCell| {
            cell.is_held && cell.lock == wait.lock && !(cell.mode() == "read" && wait.mode() == "read")
        };
        of_threads().find(holds).copied()
    };
    let mut waits: Vec<_> = of_threads().filter(|cell| cell.waits()).map(|wait| (*wait, holder(wait))).collect();
    waits.sort_by_key(|(wait, _)| (wait.since_epoch_nanos, wait.guard));
    // A thread waits for one lock at a time.
    let place = |thread: &u64| waits.iter().position(|(wait, _)| u64::from(wait.thread) == *thread);
    let cycles = locks.stuck(|_, _| Known::IsAlive).cycles;
    let deadlocks = cycles.iter().filter_map(|cycle| cycle.iter().map(place).collect()).collect();
    ThreadWaits { waits, deadlocks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::now::Present;

    const HELD: u64 = 1 << 62;
    const MUTEX: u64 = 1;
    const READ: u64 = 2;
    const WRITE: u64 = 3;
    const CONDITION: u64 = 4;

    /// Makes cells as an image has them: each of a guard, a lock, a mode and a thread, at a call site.
    fn cells(of: &[(u64, u64, u64, u64)], site: u64) -> Vec<LockCell> {
        let counts = [0, 0, 0, 0, 0, 0, of.len() as u64, 0, 0];
        let cell = |(guard, lock, mode, thread): &(u64, u64, u64, u64)| {
            [*guard, *lock, 1000 + (guard & !HELD), mode | thread << 32, 9, site, 0, 0]
        };
        let words = counts.into_iter().chain(of.iter().flat_map(cell));
        let image: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        Present::of_image(&image).unwrap().locks
    }

    #[test]
    fn threads_that_hold_what_the_other_one_wants_are_a_deadlock_and_who_only_waits_is_in_none() {
        let all = [
            (HELD | 1, 10, MUTEX, 1),
            (HELD | 2, 11, MUTEX, 2),
            (3, 11, MUTEX, 1),
            (4, 10, MUTEX, 2),
            (5, 10, MUTEX, 3),
            (6, 12, CONDITION, 4),
        ];
        let found = thread_waits(&cells(&all, 7));
        let who: Vec<_> = found.waits.iter().map(|(wait, holder)| (wait.thread, holder.map(|it| it.thread))).collect();
        assert_eq!(who, [(1, Some(2)), (2, Some(1)), (3, Some(1)), (4, None)]);
        assert_eq!(found.deadlocks, [[0, 1]]);
        // The same locks are of tasks.
        assert_eq!(thread_waits(&cells(&all, 0)), ThreadWaits::default());
    }

    #[test]
    fn a_reader_waits_for_no_reader_and_a_writer_does() {
        let found = thread_waits(&cells(&[(HELD | 1, 10, READ, 1), (2, 10, WRITE, 2), (3, 10, READ, 3)], 7));
        let holders: Vec<_> = found.waits.iter().map(|(_, holder)| holder.map(|it| it.thread)).collect();
        assert_eq!((holders, found.deadlocks.len()), (vec![Some(1), None], 0));
    }
}
