//! The order of the clients' turns: clients with many requests or news do not delay the others.

use std::future::poll_fn;
use std::mem::replace;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// The number of turns of busy clients until all others are looked at again.
pub(crate) const BUSY_OF_ROUND: u32 = 16;

/// The turns of busy clients, in the order in which they ask. A client is busy that has said something, that takes what
/// is sent again, or that has much to be told. The others have had all news but the newest ones.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

impl Turns {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(BUSY_OF_ROUND as usize))
    }

    /// Goes on with what there is to do for a client, in turns, to its end. Of those that are not quiet, only so many are
    /// in the runtime's queue for a turn: so many are before a quiet one at most.
    pub(crate) async fn take<T>(&self, is_quiet: &AtomicBool, client: impl Future<Output = T>) -> T {
        let mut client = pin!(client);
        loop {
            let mut turn = None;
            if !is_quiet.load(Ordering::Relaxed) {
                turn = self.0.acquire().await.ok();
                yield_now().await;
            }
            if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(client.as_mut().poll(context))).await {
                return output;
            }
            drop(turn);
            let mut is_woken = false;
            poll_fn(|_| if replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::watch;

    #[tokio::test]
    async fn a_client_that_is_not_busy_waits_for_few_turns_however_many_busy_ones_there_are() {
        const BUSY: usize = 990;
        const WORK: usize = 40;
        const PAUSE: usize = 100;
        let (turns, served, news) = (Arc::new(Turns::new()), Arc::<AtomicUsize>::default(), watch::Sender::new(0));
        let (mut told, quiet_turns, quiet_served) = (news.subscribe(), turns.clone(), served.clone());
        let quiet = tokio::spawn(async move {
            let mut waits = Vec::new();
            let work = async {
                while told.changed().await.is_ok() {
                    waits.push(quiet_served.load(Ordering::Relaxed) - *told.borrow_and_update());
                }
            };
            quiet_turns.take(&AtomicBool::new(true), work).await;
            waits
        });
        let mut busy = tokio::task::JoinSet::new();
        for _ in 0..BUSY {
            let (turns, served, news) = (turns.clone(), served.clone(), news.clone());
            busy.spawn(async move {
                let work = async {
                    for _ in 0..WORK {
                        let number = served.fetch_add(1, Ordering::Relaxed) + 1;
                        if number.is_multiple_of(PAUSE) {
                            _ = news.send(number);
                        }
                        yield_now().await;
                    }
                };
                turns.take(&AtomicBool::new(false), work).await;
            });
        }
        drop(news);
        busy.join_all().await;
        // Each of them had all its turns.
        assert_eq!(served.load(Ordering::Relaxed), BUSY * WORK);
        let waits = quiet.await.unwrap();
        assert_eq!(waits.len(), BUSY * WORK / PAUSE);
        assert!(
            waits.iter().all(|turns| *turns <= BUSY_OF_ROUND as usize),
            "{:?} turns of busy clients",
            waits.iter().max()
        );
    }
}
