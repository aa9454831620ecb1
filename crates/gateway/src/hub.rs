//! The state that all connections share: the last notifications, and counts.

use crate::notification::{Gap, Notification, Standings, StateChange, gap_in};
use crate::turns::Turns;
use eventring_exec::{Problem, Update};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// The number of notifications that are remembered. A client may be so far behind, and can go on where it was.
const HISTORY_MAX: usize = 1024;
/// The number of bytes that long messages of all clients may take, beside the buffer that each client has.
const LONG_BYTES_MAX: usize = 256 << 20;

/// The notifications, and the counts of all connections.
#[derive(Debug)]
pub(crate) struct Hub {
    history: RwLock<History>,
    news: watch::Sender<News>,
    pub(crate) turns: Turns,
    slots: AtomicUsize,
    /// The clients that came, and those that were refused.
    pub(crate) clients: AtomicU64,
    pub(crate) refused: AtomicU64,
    lost: AtomicU64,
    long_bytes: AtomicUsize,
}

/// What all clients are woken for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// The place of the next notification.
    pub(crate) end: u64,
    /// True if no more notifications will come.
    pub(crate) is_last: bool,
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
    /// Makes a hub without notifications.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            history: RwLock::default(),
            news: watch::Sender::default(),
            turns: Turns::new(),
            slots: AtomicUsize::new(0),
            clients: AtomicU64::new(0),
            refused: AtomicU64::new(0),
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
        let end = history.end();
        drop(history);
        self.news.send_modify(|news| news.end = end);
    }

    /// Passes on that something is wrong outside of any block.
    pub(crate) fn problem(&self, problem: &Problem) {
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        history.push(Notification::Gap(Gap::outside(problem)));
        let end = history.end();
        drop(history);
        self.news.send_modify(|news| news.end = end);
    }

    /// Returns the place of the next notification.
    pub(crate) fn end(&self) -> u64 {
        self.news.borrow().end
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

    /// Returns what changes when there is a further notification.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Says that no more notifications will come.
    pub(crate) fn set_ended(&self) {
        self.news.send_modify(|news| news.is_last = true);
    }

    /// Waits until no more notifications will come.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut news = self.news();
        async move { _ = news.wait_for(|news| news.is_last).await }
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
    let taken = hub.slots.fetch_add(1, Ordering::Relaxed);
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
        self.0.slots.fetch_sub(1, Ordering::Relaxed);
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
