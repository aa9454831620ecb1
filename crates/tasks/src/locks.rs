//! The locks of a program: the tasks that wait for each lock, and the task that holds it.

use std::collections::{BTreeMap, HashMap, HashSet};

/// A wait for a lock, or a guard. Its number is larger than those of earlier ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) lock: u64,
    /// The task; `None` if the thread was in none.
    pub(crate) task: Option<u64>,
    /// True if others may have the lock in the same way at the same time.
    pub(crate) is_shared: bool,
    /// When the wait began, or the lock was got.
    pub(crate) since_nanos: u64,
    /// The last time at which it was known.
    pub(crate) told_nanos: u64,
}

/// The largest number of locks whose last holders are known.
const FREED_MAX: usize = 65_536;

/// The locks of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    /// By the number of the guard.
    held: BTreeMap<u64, Turn>,
    waiting: BTreeMap<u64, Turn>,
    /// Who freed locks last, by the lock.
    freed: HashMap<u64, Freed>,
}

/// The last freeing of a lock.
#[derive(Clone, Debug)]
struct Freed {
    task: Option<u64>,
    name: String,
    epoch_nanos: u64,
}

/// What is known of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// It has ended, or nobody knows.
    Nothing,
    /// It has not ended.
    IsAlive,
    /// It waits to be woken.
    IsIdle,
}

/// Tasks that do not go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// The cycles of tasks that wait for locks which the next one holds, each from its smallest id on.
    pub(crate) cycles: Vec<Vec<u64>>,
    /// The tasks that do not take a lock that they were given.
    pub(crate) futurelocks: Vec<u64>,
}

impl Locks {
    pub(crate) fn wait(&mut self, guard: u64, turn: Turn) {
        self.waiting.insert(guard, turn);
    }

    /// Takes the end of a wait. Returns when it began, and the name of the other task that freed the lock last.
    pub(crate) fn hold(&mut self, guard: u64, turn: Turn) -> Option<(u64, &str)> {
        self.held.insert(guard, turn);
        let since_nanos = self.waiting.remove(&guard)?.since_nanos;
        let by_another = self.freed.get(&turn.lock).filter(|freed| freed.task != turn.task);
        Some((since_nanos, by_another.map_or("", |freed| &freed.name)))
    }

    pub(crate) fn free(&mut self, guard: u64, epoch_nanos: u64, name_of: impl FnOnce(u64) -> String) {
        self.waiting.remove(&guard);
        let Some(turn) = self.held.remove(&guard) else { return };
        if self.freed.len() >= FREED_MAX {
            self.freed.clear();
        }
        let name = turn.task.map(name_of).unwrap_or_default();
        self.freed.insert(turn.lock, Freed { task: turn.task, name, epoch_nanos });
    }

    /// Takes what tables have shown at a time: these waits and guards.
    pub(crate) fn look(&mut self, guards: impl Iterator<Item = u64>, epoch_nanos: u64) {
        for guard in guards {
            let turns = [self.held.get_mut(&guard), self.waiting.get_mut(&guard)];
            turns.into_iter().flatten().for_each(|turn| turn.told_nanos = turn.told_nanos.max(epoch_nanos));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.waiting.len() + self.freed.len()
    }

    /// Finds the tasks that wait for each other. `known` is asked about a task and the time at which its turn began.
    ///
    /// The locks of tokio are fair: a reader also waits for a writer before it, and a lock that is freed is given to the
    /// first wait. Its task is woken then. If it is idle all the same, it does not poll the wait: nobody gets the lock.
    /// A lock is free if it was freed, and nothing can be lost since: of one without a holder, the holder may be lost.
    pub(crate) fn stuck(&self, known_since: impl Fn(u64, u64) -> Known) -> Stuck {
        let known = |turn: &Turn| turn.task.map_or(Known::Nothing, |task| known_since(task, turn.told_nanos));
        let is_given = |turn: &Turn| {
            let freed = self.freed.get(&turn.lock).zip(turn.task);
            known(turn) == Known::IsIdle
                && freed.is_some_and(|(freed, task)| known_since(task, freed.epoch_nanos) != Known::Nothing)
        };
        let mut of_locks: BTreeMap<u64, (Vec<&Turn>, Vec<&Turn>)> = BTreeMap::new();
        for (turns, are_held) in [(&self.held, true), (&self.waiting, false)] {
            for turn in turns.values() {
                let (held, waiting) = of_locks.entry(turn.lock).or_default();
                if are_held { held } else { waiting }.push(turn);
            }
        }
        let mut next: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut stuck = Stuck::default();
        for (held, waiting) in of_locks.values() {
            let given = waiting.first().filter(|turn| held.is_empty() && is_given(turn));
            if waiting.len() > 1 {
                stuck.futurelocks.extend(given.and_then(|turn| turn.task));
            }
            let mut writer: Option<&Turn> = None;
            for (at, turn) in waiting.iter().enumerate() {
                let holders = held.iter().filter(|holder| !(holder.is_shared && turn.is_shared));
                let before = writer.filter(|_| turn.is_shared).into_iter().chain(given.copied().filter(|_| at > 0));
                let awaited = holders.copied().chain(before).filter(|turn| known(turn) != Known::Nothing);
                if let Some(task) = turn.task.filter(|_| known(turn) != Known::Nothing) {
                    next.entry(task).or_default().extend(awaited.filter_map(|turn| turn.task));
                }
                if !turn.is_shared {
                    writer.get_or_insert(turn);
                }
            }
        }
        let mut seen = HashSet::new();
        for start in next.keys() {
            search(*start, &next, &mut seen, &mut stuck.cycles);
        }
        stuck
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

    fn turn(lock: u64, task: u64) -> Turn {
        Turn { lock, task: Some(task), is_shared: false, since_nanos: 0, told_nanos: 0 }
    }

    fn shared(lock: u64, task: u64) -> Turn {
        Turn { is_shared: true, ..turn(lock, task) }
    }

    fn cycles(locks: &Locks) -> Vec<Vec<u64>> {
        let stuck = locks.stuck(|_, _| Known::IsAlive);
        assert!(stuck.futurelocks.is_empty());
        stuck.cycles
    }

    #[test]
    fn a_cycle_of_three_is_found_once_and_who_only_waits_is_in_none() {
        let mut locks = Locks::default();
        for (task, holds, wants) in [(1, 10, 11), (2, 11, 12), (3, 12, 10), (4, 13, 10)] {
            locks.hold(task * 2, turn(holds, task));
            locks.wait(task * 2 + 1, turn(wants, task));
        }
        // Somebody waits for a task that goes on.
        locks.wait(100, turn(13, 5));
        assert_eq!(cycles(&locks), [[1, 2, 3]]);
        let without_two = |task, _| if task == 2 { Known::Nothing } else { Known::IsAlive };
        assert_eq!(locks.stuck(without_two), Stuck::default());
        locks.free(2, 0, |_| String::new());
        assert!(cycles(&locks).is_empty());
    }

    #[test]
    fn a_task_that_waits_for_its_own_lock_is_a_cycle_alone_and_a_writer_waits_for_each_reader() {
        let mut locks = Locks::default();
        locks.hold(1, turn(1, 7));
        locks.wait(2, turn(1, 7));
        assert_eq!(cycles(&locks), [[7]]);
        let mut locks = Locks::default();
        locks.hold(1, shared(1, 1));
        locks.hold(2, shared(1, 2));
        locks.hold(3, turn(2, 3));
        locks.wait(4, turn(1, 3));
        locks.wait(5, turn(2, 2));
        assert_eq!(cycles(&locks), [[2, 3]]);
    }

    #[test]
    fn readers_wait_for_no_reader_but_for_a_writer_who_came_before() {
        let mut locks = Locks::default();
        locks.hold(1, shared(1, 7));
        locks.wait(2, shared(1, 7));
        assert!(cycles(&locks).is_empty());
        // The second read of the task comes after a writer, who waits for its first one.
        let mut locks = Locks::default();
        locks.hold(1, shared(1, 7));
        locks.wait(2, turn(1, 8));
        locks.wait(3, shared(1, 7));
        assert_eq!(cycles(&locks), [[7, 8]]);
    }

    #[test]
    fn a_task_that_polls_two_waits_for_a_lock_of_another_task_is_no_deadlock() {
        let mut locks = Locks::default();
        locks.hold(1, turn(1, 8));
        locks.wait(2, turn(1, 7));
        locks.wait(3, turn(1, 7));
        assert!(cycles(&locks).is_empty());
        // Nobody holds it, and the first one is about to take it.
        locks.free(1, 0, |_| String::new());
        assert!(cycles(&locks).is_empty());
    }

    #[test]
    fn a_lock_that_a_task_was_given_and_does_not_take_is_a_futurelock_and_holds_up_the_others() {
        let mut locks = Locks::default();
        locks.hold(0, turn(1, 6));
        locks.wait(1, turn(1, 7));
        locks.free(0, 5, |_| String::new());
        let idle = |_, _| Known::IsIdle;
        assert_eq!(locks.stuck(idle), Stuck::default(), "nobody else wants it");
        locks.wait(2, turn(1, 8));
        // Something may be lost that came after it was freed: who has taken it.
        let lost_later = |_, nanos| if nanos == 5 { Known::Nothing } else { Known::IsIdle };
        assert_eq!(locks.stuck(lost_later), Stuck::default());
        assert_eq!(locks.stuck(idle), Stuck { cycles: vec![], futurelocks: vec![7] });
        locks.wait(3, turn(1, 7));
        assert_eq!(locks.stuck(idle), Stuck { cycles: vec![vec![7]], futurelocks: vec![7] });
        // The task has been woken: it will take the lock.
        assert_eq!(locks.stuck(|_, _| Known::IsAlive).futurelocks, [0; 0]);
        // The wait was given up.
        locks.free(1, 0, |_| String::new());
        assert_eq!(locks.stuck(idle), Stuck { cycles: vec![], futurelocks: vec![8] });
    }

    #[test]
    fn a_lock_whose_holder_was_never_seen_is_not_taken_for_a_free_one() {
        let mut locks = Locks::default();
        locks.wait(1, turn(1, 7));
        locks.wait(2, turn(1, 8));
        assert_eq!(locks.stuck(|_, _| Known::IsIdle), Stuck::default());
    }

    #[test]
    fn who_freed_a_lock_last_is_named_unless_it_is_the_one_that_waited() {
        let mut locks = Locks::default();
        locks.hold(1, turn(1, 7));
        locks.wait(2, Turn { since_nanos: 5, told_nanos: 5, ..turn(1, 8) });
        locks.free(1, 0, |task| task.to_string());
        assert_eq!(locks.hold(2, turn(1, 8)), Some((5, "7")));
        locks.wait(3, turn(1, 8));
        locks.free(2, 0, |task| task.to_string());
        assert_eq!(locks.hold(3, turn(1, 8)), Some((0, "")));
    }
}
