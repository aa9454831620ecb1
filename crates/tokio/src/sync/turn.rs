//! One wait for a lock, and the guard that it returns.

use crate::record::TARGET;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Level;

/// The number of a lock. It is given when the lock is first used, so that locks can be constants.
#[derive(Debug, Default)]
pub(super) struct LockId(AtomicU64);

impl LockId {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn get(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: the numbers publish no other memory.
        match self.0.load(Ordering::Relaxed) {
            0 => {
                let new = NEXT.fetch_add(1, Ordering::Relaxed);
                self.0.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|id| id, |_| new)
            }
            id => id,
        }
    }
}

/// A wait or a guard. When it is dropped, the lock is free of it.
#[derive(Debug)]
pub(super) struct Turn {
    lock: u64,
    /// The number of the guard; 0 if nobody records it.
    guard: u64,
    mode: &'static str,
}

impl Turn {
    #[inline]
    fn new(lock: &LockId, mode: &'static str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !tracing::enabled!(target: TARGET, Level::INFO) {
            return Self { lock: 0, guard: 0, mode };
        }
        Self { lock: lock.get(), guard: NEXT.fetch_add(1, Ordering::Relaxed), mode }
    }

    /// Notes that the lock was free.
    #[inline]
    pub(super) fn free(lock: &LockId, mode: &'static str) -> Self {
        let turn = Self::new(lock, mode);
        turn.held();
        turn
    }

    fn waits(lock: &LockId, mode: &'static str) -> Self {
        let turn = Self::new(lock, mode);
        let Self { lock, guard, mode } = turn;
        if guard != 0 {
            tracing::event!(name: "lock_wait", target: TARGET, Level::INFO, lock, guard, mode, "lock_wait");
        }
        turn
    }

    #[inline]
    fn held(&self) {
        let Self { lock, guard, mode } = *self;
        if guard != 0 {
            tracing::event!(name: "lock_held", target: TARGET, Level::INFO, lock, guard, mode, "lock_held");
        }
    }

    /// Waits for a lock.
    pub(super) async fn wait<G>(lock: &LockId, mode: &'static str, waiting: impl Future<Output = G>) -> (G, Self) {
        let mut waiting = pin!(waiting);
        let mut turn = None;
        let got = poll_fn(|context| {
            // Without it, tokio lets others go on, whether the lock is free or not: that is no wait for a lock.
            let has_budget = tokio::task::coop::has_budget_remaining();
            let polled = waiting.as_mut().poll(context);
            if polled.is_pending() && has_budget && turn.is_none() {
                turn = Some(Self::waits(lock, mode));
            }
            polled
        });
        let guard = got.await;
        let turn = match turn {
            Some(turn) => {
                turn.held();
                turn
            }
            None => Self::free(lock, mode),
        };
        (guard, turn)
    }

    /// Notes that a lock was got if it was free.
    pub(super) fn tried<G, E>(lock: &LockId, mode: &'static str, tried: Result<G, E>) -> Result<(G, Self), E> {
        tried.map(|guard| (guard, Self::free(lock, mode)))
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        let Self { lock, guard, .. } = *self;
        if guard != 0 {
            tracing::event!(name: "lock_free", target: TARGET, Level::INFO, lock, guard, "lock_free");
        }
    }
}
