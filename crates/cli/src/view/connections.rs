//! The connections of the server. A connection that does not know the token cannot keep the page's own ones out.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most connections that have not shown the token yet. If more come, the oldest is closed.
const UNPROVEN_MAX: usize = 64;
/// The time that a connection has for its first request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after the system could not accept a connection, for example because no descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// The proof that a connection has shown the token, once it has.
#[derive(Clone, Default)]
pub(super) struct Proof(Arc<OnceLock<()>>);

impl Proof {
    /// Notes that the connection has shown the token. From now on it is not closed.
    pub(super) fn give(&self) {
        self.0.get_or_init(|| ());
    }

    fn is_given(&self) -> bool {
        self.0.get().is_some()
    }
}

impl Connected<IncomingStream<'_, Door>> for Proof {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().proof.clone()
    }
}

/// A connection that has not shown the token yet.
struct Unproven {
    since: Instant,
    proof: Proof,
    /// The connection is closed when this is dropped.
    _open: oneshot::Sender<()>,
}

/// The listening socket.
pub(super) struct Door {
    listener: TcpListener,
    /// The unproven connections, the oldest first.
    unproven: VecDeque<Unproven>,
}

impl Door {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, unproven: VecDeque::new() }
    }

    /// Closes the connections that have waited too long, and forgets those that are closed or have shown the token.
    fn sweep(&mut self) {
        self.unproven.retain(|it| !it.proof.is_given() && !it._open.is_closed() && it.since.elapsed() < PATIENCE);
    }
}

impl Listener for Door {
    type Io = BrowserConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BrowserConnection, SocketAddr) {
        loop {
            // The connections that were accepted before get a turn first, and can show the token.
            tokio::task::yield_now().await;
            self.sweep();
            let oldest = self.unproven.front().map_or_else(|| Instant::now() + PATIENCE, |it| it.since + PATIENCE);
            let (stream, address) = match tokio::time::timeout_at(oldest, self.listener.accept()).await {
                Err(_) => continue,
                Ok(Err(_)) => {
                    self.unproven.pop_front();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Ok(Ok(accepted)) => accepted,
            };
            if self.unproven.len() >= UNPROVEN_MAX {
                self.unproven.pop_front();
            }
            let (open, closed) = oneshot::channel();
            let proof = Proof::default();
            self.unproven.push_back(Unproven { since: Instant::now(), proof: proof.clone(), _open: open });
            return (BrowserConnection { stream, proof, closed: Some(closed) }, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection. It fails when the door has closed it.
pub(super) struct BrowserConnection {
    stream: TcpStream,
    proof: Proof,
    closed: Option<oneshot::Receiver<()>>,
}

impl BrowserConnection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.proof.is_given() {
            self.closed = None;
        }
        match self.closed.as_mut().map(|closed| Pin::new(closed).poll(context)) {
            Some(Poll::Ready(_)) => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

impl AsyncRead for BrowserConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for BrowserConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
