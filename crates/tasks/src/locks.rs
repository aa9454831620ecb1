//! Who waits for which lock, and who holds it.

use std::collections::{BTreeMap, HashMap, HashSet};

/// A wait for a lock, or a guard.
#[derive(Clone, Copy, Debug)]
struct Turn {
    lock: u64,
    /// The task; `None` if the thread was in none.
    task: Option<u64>,
    is_held: bool,
    /// When the wait began; 0 of a guard.
    since_nanos: u64,
}

/// The largest number of locks whose last holders are known.
const FREED_MAX: usize = 65_536;

/// The locks of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    /// By the number of the guard.
    turns: BTreeMap<u64, Turn>,
    /// The names of the tasks that freed locks last, by the lock.
    freed: HashMap<u64, String>,
}

impl Locks {
    pub(crate) fn wait(&mut self, lock: u64, guard: u64, task: Option<u64>, since_nanos: u64) {
        self.turns.insert(guard, Turn { lock, task, is_held: false, since_nanos });
    }

    /// Takes the end of a wait. Returns when it began, and the name of the task that freed the lock last.
    pub(crate) fn hold(&mut self, lock: u64, guard: u64, task: Option<u64>) -> Option<(u64, &str)> {
        let waited = self.turns.insert(guard, Turn { lock, task, is_held: true, since_nanos: 0 });
        let since_nanos = waited.filter(|turn| !turn.is_held)?.since_nanos;
        Some((since_nanos, self.freed.get(&lock).map_or("", String::as_str)))
    }

    pub(crate) fn free(&mut self, guard: u64, holder: impl FnOnce(u64) -> String) {
        let Some(turn) = self.turns.remove(&guard).filter(|turn| turn.is_held) else { return };
        if self.freed.len() >= FREED_MAX {
            self.freed.clear();
        }
        self.freed.insert(turn.lock, turn.task.map(holder).unwrap_or_default());
    }

    pub(crate) fn len(&self) -> usize {
        self.turns.len() + self.freed.len()
    }

    /// Returns the cycles of tasks that wait for locks which the next one holds, each from its smallest id on.
    pub(crate) fn cycles(&self, is_alive: impl Fn(u64) -> bool) -> Vec<Vec<u64>> {
        let mut holders: HashMap<u64, Vec<u64>> = HashMap::new();
        let of_task = |turn: &Turn| turn.task.filter(|task| is_alive(*task));
        for turn in self.turns.values().filter(|turn| turn.is_held) {
            holders.entry(turn.lock).or_default().extend(of_task(turn));
        }
        let mut next: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for turn in self.turns.values().filter(|turn| !turn.is_held) {
            if let (Some(task), Some(holders)) = (of_task(turn), holders.get(&turn.lock)) {
                next.entry(task).or_default().extend(holders);
            }
        }
        let (mut cycles, mut seen) = (Vec::new(), HashSet::new());
        for start in next.keys() {
            search(*start, &next, &mut seen, &mut cycles);
        }
        cycles
    }
}

/// Goes along the edges from a task, in depth, and adds the cycles that it finds.
fn search(start: u64, next: &BTreeMap<u64, Vec<u64>>, seen: &mut HashSet<u64>, cycles: &mut Vec<Vec<u64>>) {
    // Each task of the way, and how many of its edges were taken.
    let (mut way, mut places): (Vec<(u64, usize)>, HashMap<u64, usize>) = (Vec::new(), HashMap::new());
    if !seen.insert(start) {
        return;
    }
    way.push((start, 0));
    places.insert(start, 0);
    while let Some((task, taken)) = way.last_mut() {
        let Some(to) = next.get(task).and_then(|edges| edges.get(*taken)).copied() else {
            places.remove(task);
            way.pop();
            continue;
        };
        *taken += 1;
        if let Some(place) = places.get(&to) {
            let mut cycle: Vec<u64> = way[*place..].iter().map(|(task, _)| *task).collect();
            let smallest = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(at, _)| at);
            cycle.rotate_left(smallest);
            cycles.push(cycle);
        } else if seen.insert(to) {
            places.insert(to, way.len());
            way.push((to, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_of_three_is_found_once_and_who_only_waits_is_in_none() {
        let mut locks = Locks::default();
        for (task, holds, wants) in [(1, 10, 11), (2, 11, 12), (3, 12, 10), (4, 13, 10)] {
            locks.hold(holds, task * 2, Some(task));
            locks.wait(wants, task * 2 + 1, Some(task), 0);
        }
        // Somebody waits for a task that goes on.
        locks.wait(13, 100, Some(5), 0);
        assert_eq!(locks.cycles(|_| true), [[1, 2, 3]]);
        assert!(locks.cycles(|task| task != 2).is_empty());
        locks.free(2, |_| String::new());
        assert!(locks.cycles(|_| true).is_empty());
    }

    #[test]
    fn a_task_that_waits_for_its_own_lock_is_a_cycle_alone_and_a_writer_waits_for_each_reader() {
        let mut locks = Locks::default();
        locks.hold(1, 1, Some(7));
        locks.wait(1, 2, Some(7), 0);
        assert_eq!(locks.cycles(|_| true), [[7]]);
        let mut locks = Locks::default();
        locks.hold(1, 1, Some(1));
        locks.hold(1, 2, Some(2));
        locks.hold(2, 3, Some(3));
        locks.wait(1, 4, Some(3), 0);
        locks.wait(2, 5, Some(2), 0);
        assert_eq!(locks.cycles(|_| true), [[2, 3]]);
    }
}
