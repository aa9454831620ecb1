//! The state that all connections share: the last notifications, and counts.

use crate::notification::{Gap, Notification, Standings, StateChange, gap_in};
use eventring_exec::{Problem, Update};
use mio::Waker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The number of notifications that are remembered. A client may be so far behind, and can go on where it was.
const HISTORY_MAX: usize = 1024;
/// The number of bytes that long messages of all clients may take, beside the buffer that each client has.
const LONG_BYTES_MAX: usize = 256 << 20;

/// The notifications, and the counts of all connections.
#[derive(Debug)]
pub(crate) struct Hub {
    history: RwLock<History>,
    /// The place of the next notification.
    end: AtomicU64,
    wakers: Vec<Waker>,
    has_ended: AtomicBool,
    clients: AtomicUsize,
    lost: AtomicU64,
    long_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct History {
    /// The place of the first one in `notification`.
    first: u64,
    notification: VecDeque<Arc<Notification>>,
    standings: Standings,
}

/// What is at a place of the history.
#[derive(Debug)]
pub(crate) enum At {
    Notification(Arc<Notification>),
    /// So many notifications are not remembered any more.
    Lost(u64),
    /// Nothing yet.
    End,
}

/// The right to be a client; there is a number of them.
#[derive(Debug)]
pub(crate) struct ClientSlot(Arc<Hub>);

/// The right to keep a long message.
#[derive(Debug)]
pub(crate) struct LongMessageBudget(Arc<Hub>, usize);

impl Hub {
    /// Makes a hub without notifications. The wakers wake those who pass notifications on.
    pub(crate) fn new(wakers: Vec<Waker>) -> Arc<Self> {
        Arc::new(Self {
            history: RwLock::default(),
            end: AtomicU64::new(0),
            wakers,
            has_ended: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            long_bytes: AtomicUsize::new(0),
        })
    }

    /// Passes on that a block has come to another state. Never waits for a client.
    pub(crate) fn changed(&self, update: Update) {
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        if update.is_new
            && let Some(gap) = update.block.as_deref().and_then(gap_in)
        {
            history.push(Notification::Gap(gap));
        }
        let place = history.end();
        let earlier = history.standings.learn(&update, place);
        history.push(Notification::State(StateChange { update, earlier }));
        self.end.store(history.end(), Ordering::Release);
        drop(history);
        self.wake();
    }

    /// Passes on that something is wrong outside of any block.
    pub(crate) fn problem(&self, problem: &Problem) {
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        history.push(Notification::Gap(Gap::outside(problem)));
        self.end.store(history.end(), Ordering::Release);
        drop(history);
        self.wake();
    }

    /// Returns the place of the next notification.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn at(&self, place: u64) -> At {
        if place >= self.end() {
            return At::End;
        }
        let history = self.history.read().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = place.checked_sub(history.first) else { return At::Lost(history.first - place) };
        history.notification.get(index as usize).map_or(At::End, |notification| At::Notification(notification.clone()))
    }

    /// Returns what is remembered, and the place of the first one.
    pub(crate) fn history(&self) -> (u64, Vec<Arc<Notification>>) {
        let history = self.history.read().unwrap_or_else(PoisonError::into_inner);
        (history.first, history.notification.iter().cloned().collect())
    }

    /// Says that no more notifications will come.
    pub(crate) fn set_ended(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Wakes those who pass notifications on.
    pub(crate) fn wake(&self) {
        // Without it they look after a while.
        self.wakers.iter().for_each(|waker| _ = waker.wake());
    }

    pub(crate) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Returns a slot of a client, unless so many are taken.
pub(crate) fn client_slot(hub: &Arc<Hub>, seats_max: usize) -> Option<ClientSlot> {
    let taken = hub.clients.fetch_add(1, Ordering::Relaxed);
    let client_slot = ClientSlot(hub.clone());
    (taken < seats_max).then_some(client_slot)
}

/// Returns room for a long message, unless those of all clients take too much already.
pub(crate) fn room(hub: &Arc<Hub>, bytes: usize) -> Option<LongMessageBudget> {
    let taken = hub.long_bytes.fetch_add(bytes, Ordering::Relaxed);
    let room = LongMessageBudget(hub.clone(), bytes);
    (taken.saturating_add(bytes) <= LONG_BYTES_MAX).then_some(room)
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for LongMessageBudget {
    fn drop(&mut self) {
        self.0.long_bytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl History {
    fn end(&self) -> u64 {
        self.first + self.notification.len() as u64
    }

    fn push(&mut self, notification: Notification) {
        self.notification.push_back(Arc::new(notification));
        if self.notification.len() > HISTORY_MAX {
            self.notification.pop_front();
            self.first += 1;
        }
    }
}
