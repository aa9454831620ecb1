//! The bodies of answers.

use super::session::SharedSession;
use super::trace::ShownTrace;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Interval;

/// The time between two signs of life for a page. If one cannot be sent, the page is closed.
pub(super) const PULSE: Duration = Duration::from_millis(250);
const PIECE_BYTES: usize = 256 << 10;

/// What is at a path.
pub(super) enum Content {
    Bytes(Bytes),
    /// A trace, and how much of it was sent.
    Trace(Arc<ShownTrace>, u64),
    /// The stream that a page keeps open: server-sent events that say how far the conversion is, and comments when
    /// nothing has changed. With the last event.
    Alive(SharedSession, Interval, String),
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match self.get_mut() {
            Self::Bytes(bytes) => std::mem::take(bytes),
            Self::Trace(trace, at) => {
                let mut piece = vec![0; PIECE_BYTES];
                let read = trace.read_at(*at, &mut piece)?;
                piece.truncate(read);
                *at += read as u64;
                piece.into()
            }
            Self::Alive(session, pulse, last) => {
                ready!(pulse.poll_tick(context));
                let event = session.lock().event();
                let is_new = event != std::mem::replace(last, event.clone());
                if is_new { event.into() } else { Bytes::from_static(b":\n") }
            }
        };
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Trace(trace, at) => SizeHint::with_exact(trace.bytes - at),
            Self::Alive(..) => SizeHint::default(),
        }
    }
}
