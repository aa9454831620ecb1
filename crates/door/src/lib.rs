//! Accepts connections for servers that read requests with `hyper`, and limits the connections that wait.
//!
//! An accepted connection waits at the [`Door`] until its server has checked the request and admits the connection. A
//! limited number of connections may wait, each at most 5 seconds.
//!
//! If too many connections wait, or the system has no file descriptor left, the connection that has waited longest is
//! closed. So connections without a request cannot exclude other clients.

#![forbid(unsafe_code)]

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, Id, JoinSet, yield_now};
use tokio::time::{Instant, sleep, timeout};

/// The longest time from a connection until it is let in.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// The pause after the system could not accept a connection, although none waits that can be closed.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest time between two looks at who has waited for too long.
const TICK: Duration = Duration::from_millis(100);

/// A listener, and the connections that wait to be let in.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    waiting_max: usize,
    waiting: Arc<Waiting>,
}

/// The tasks of the connections that wait, the one that came first in front, with the ends of their times.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<VecDeque<(AbortHandle, Instant)>>);

impl Door {
    /// Opens a door for connections to a listener, at which so many may wait.
    ///
    /// # Errors
    /// The system does not watch the listener.
    ///
    /// # Panics
    /// No runtime of tokio with input, output and time is there.
    pub fn open(listener: std::net::TcpListener, waiting_max: usize) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(listener)?, waiting_max, waiting: Arc::default() })
    }

    /// Serves each connection in a task, until `end` is ready. Those that wait are closed then, and the others end
    /// within `rest`. The task of a connection calls [`Waiting::let_in`] when it knows that it is wanted.
    pub async fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        end: impl Future<Output = ()>,
        rest: Duration,
        mut serve: impl FnMut(TcpStream, Arc<Waiting>) -> F,
    ) {
        let (mut tasks, mut end) = (JoinSet::new(), pin!(end));
        loop {
            tokio::select! {
                () = &mut end => break,
                Some(ended) = tasks.join_next_with_id() => {
                    self.waiting.forget(ended.map_or_else(|failed| failed.id(), |(id, ())| id));
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // Without it the last part of an answer may wait.
                        _ = stream.set_nodelay(true);
                        let mut waiting = self.waiting.lock();
                        if waiting.len() >= self.waiting_max {
                            close_first(&mut waiting);
                        }
                        let task = tasks.spawn(serve(stream, self.waiting.clone()));
                        waiting.push_back((task, Instant::now() + WAIT_LIMIT));
                    }
                    // There may be no file descriptors left. A task that is to end does so meanwhile.
                    Err(_) if close_first(&mut self.waiting.lock()) => yield_now().await,
                    Err(_) => sleep(PAUSE).await,
                },
                () = sleep(TICK) => {}
            }
            let now = Instant::now();
            let mut waiting = self.waiting.lock();
            while waiting.front().is_some_and(|(_, until)| *until <= now) {
                close_first(&mut waiting);
            }
        }
        while close_first(&mut self.waiting.lock()) {}
        // Tasks that have not ended by then are ended.
        _ = timeout(rest, async { while tasks.join_next().await.is_some() {} }).await;
    }
}

impl Waiting {
    /// Lets the connection in that the present task serves: it waits no more.
    ///
    /// # Panics
    /// This is no task.
    pub fn let_in(&self) {
        self.forget(tokio::task::id());
    }

    fn forget(&self, id: Id) {
        self.lock().retain(|(task, _)| task.id() != id);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(AbortHandle, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connection that has waited longest. Returns false if none waits.
fn close_first(waiting: &mut VecDeque<(AbortHandle, Instant)>) -> bool {
    waiting.pop_front().is_some_and(|(task, _)| {
        task.abort();
        true
    })
}

/// Reads and answers requests, until an answer says `connection: close` or has the status 101. A head of more than
/// `head_bytes_max` bytes is refused; that may not be less than 8,192.
pub fn answer<S, B>(stream: &mut TcpStream, head_bytes_max: usize, service: S) -> Connection<TokioIo<&mut TcpStream>, S>
where
    S: HttpService<Incoming, ResBody = B, Error: Into<Box<dyn Error + Send + Sync>>>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    Builder::new().max_buf_size(head_bytes_max).serve_connection(TokioIo::new(stream), service)
}

/// Ends a connection. What the other side still says is thrown away, until it ends it, too, or for `limit`: else the
/// system would reset the connection, and the other side could not read the last that it was told.
pub async fn part(stream: &mut TcpStream, limit: Duration) {
    _ = stream.shutdown().await;
    _ = timeout(limit, copy(stream, &mut sink())).await;
}
