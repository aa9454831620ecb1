//! What was told lately, and who is to be told.

use eventring_exec::{Problem, Update};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of news that are remembered, so that a client can go on where it was.
const HISTORY_MAX: usize = 1024;
/// The number of news that wait for one client at most. Each keeps its block in memory.
const QUEUE_MAX: usize = 256;

/// News for clients.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A block has come to another state.
    State(Update),
    /// Events are missing, outside of any block.
    Gap(Problem),
}

/// What waits for one client.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    has_news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    news: VecDeque<Arc<News>>,
    lost: u64,
}

/// All clients, and what they were told.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    shared: Mutex<Shared>,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    history: VecDeque<Arc<News>>,
    queues: Vec<Arc<Queue>>,
}

/// A panic of another thread leaves nothing half done here: each change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn clients(&self) -> usize {
        lock(&self.shared).queues.len()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn join(&self) -> Arc<Queue> {
        let queue = Arc::<Queue>::default();
        lock(&self.shared).queues.push(queue.clone());
        queue
    }

    pub(crate) fn leave(&self, queue: &Arc<Queue>) {
        lock(&self.shared).queues.retain(|other| !Arc::ptr_eq(other, queue));
    }

    /// Passes news on. Never waits for a client.
    pub(crate) fn tell(&self, news: News) {
        let news = Arc::new(news);
        let mut shared = lock(&self.shared);
        shared.history.push_back(news.clone());
        if shared.history.len() > HISTORY_MAX {
            shared.history.pop_front();
        }
        for queue in &shared.queues {
            let mut waiting = lock(&queue.waiting);
            if waiting.news.len() < QUEUE_MAX {
                waiting.news.push_back(news.clone());
            } else {
                waiting.lost += 1;
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            queue.has_news.notify_one();
        }
    }

    /// Returns what was told lately, oldest first, and the end of it that waits for this client. Nothing waits any more
    /// then.
    pub(crate) fn history(&self, queue: &Queue) -> (Vec<Arc<News>>, Vec<Arc<News>>) {
        let shared = lock(&self.shared);
        let waiting = lock(&queue.waiting).news.drain(..).collect();
        (shared.history.iter().cloned().collect(), waiting)
    }

    /// Waits until all clients have been told everything, but not for longer than that.
    pub(crate) fn drain(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let are_waiting = || lock(&self.shared).queues.iter().any(|queue| !lock(&queue.waiting).news.is_empty());
        while Instant::now() < end && are_waiting() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Queue {
    /// Returns what waits, and how many news were lost. Waits for something as long as that.
    pub(crate) fn take(&self, limit: Duration) -> (Vec<Arc<News>>, u64) {
        let waiting = lock(&self.waiting);
        let is_empty = |waiting: &mut Waiting| waiting.news.is_empty() && waiting.lost == 0;
        let waited = self.has_news.wait_timeout_while(waiting, limit, is_empty);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (waiting.news.drain(..).collect(), std::mem::take(&mut waiting.lost))
    }
}
