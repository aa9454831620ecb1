//! The order of the clients' turns: clients with many requests or news do not delay the others.

use crate::client::Turn;
use std::collections::{HashMap, HashSet, VecDeque};

/// The number of turns of busy clients until all others are looked at again.
const BUSY_OF_ROUND: usize = 16;

/// The busy clients, by their tokens, in the order of their turns. A client is busy that has said something, that takes
/// what is sent again, or that has much to be told. The others have had all news but the newest ones.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    waiting: VecDeque<usize>,
    are_waiting: HashSet<usize>,
}

impl Turns {
    /// Lets a client wait for its turn among the busy ones.
    pub(crate) fn wait(&mut self, token: usize) {
        if self.are_waiting.insert(token) {
            self.waiting.push_back(token);
        }
    }

    pub(crate) fn is_any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives a turn to each client that is not busy, and to the next ones of the busy clients. Clients that are gone
    /// are removed.
    pub(crate) fn round<C>(&mut self, clients: &mut HashMap<usize, C>, mut serve: impl FnMut(&mut C) -> Turn) {
        clients.retain(|token, client| {
            if self.are_waiting.contains(token) {
                return true;
            }
            let turn = serve(client);
            if turn == Turn::Busy {
                self.wait(*token);
            }
            turn != Turn::Gone
        });
        for _ in 0..self.waiting.len().min(BUSY_OF_ROUND) {
            let Some(token) = self.waiting.pop_front() else { return };
            self.are_waiting.remove(&token);
            match clients.get_mut(&token).map(&mut serve) {
                Some(Turn::Busy) => self.wait(token),
                Some(Turn::Gone) => _ = clients.remove(&token),
                Some(Turn::Idle | Turn::Full) | None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_not_busy_waits_for_few_turns_however_many_busy_ones_there_are() {
        const BUSY: usize = 990;
        const WORK: usize = 40;
        // How often each must be served until it has everything. The last one asks for nothing.
        let mut clients: HashMap<usize, usize> = (0..BUSY).map(|token| (token, WORK)).collect();
        clients.insert(BUSY, 0);
        let mut turns = Turns::default();
        (0..BUSY).for_each(|token| turns.wait(token));
        let (mut rounds, mut served) = (0, 0);
        while turns.is_any_waiting() {
            let (mut of_round, mut of_quiet) = (0, 0);
            turns.round(&mut clients, |work| {
                of_round += usize::from(*work > 0);
                of_quiet += usize::from(*work == 0);
                *work = work.saturating_sub(1);
                if *work > 0 { Turn::Busy } else { Turn::Idle }
            });
            assert!(of_round <= BUSY_OF_ROUND && of_quiet > 0, "{of_round} turns in a round");
            (rounds, served) = (rounds + 1, served + of_round);
        }
        // Each of them had all its turns.
        assert_eq!((served, rounds), (BUSY * WORK, (BUSY * WORK).div_ceil(BUSY_OF_ROUND)));
        assert!(clients.values().all(|work| *work == 0));
        // One that is gone waits for nothing.
        turns.wait(7);
        turns.round(&mut clients, |_| Turn::Gone);
        assert!(clients.is_empty() && !turns.is_any_waiting());
    }
}
