//! The answers that are too long, or too slow, for memory: files, and the stream that shows that a page is open.

use super::conversion::{Conversion, Sign};
use super::session::{OpenAnswer, OpenPage};
use axum::body::Bytes;
use eventring::__internals::shm::read_exact_at;
use http_body::{Body, Frame, SizeHint};
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Interval;

const PIECE_BYTES: u64 = 256 << 10;
/// The time between two signs of life. If one cannot be sent, the page is closed.
pub(super) const PULSE: Duration = Duration::from_millis(250);

/// The bytes of a file. A piece is read when the browser has taken the one before.
pub(super) struct FileBody {
    file: Arc<File>,
    at: u64,
    bytes: u64,
    is_trace: bool,
    answer: OpenAnswer,
}

impl FileBody {
    /// Makes the answer with the first `bytes` bytes of a file. `is_trace` says that the file is the trace.
    pub(super) fn new(file: Arc<File>, bytes: u64, is_trace: bool, answer: OpenAnswer) -> Self {
        Self { file, at: 0, bytes, is_trace, answer }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.at == self.bytes {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; usize::try_from(PIECE_BYTES.min(self.bytes - self.at)).unwrap_or(0)];
        if let Err(error) = read_exact_at(&self.file, &mut piece, self.at) {
            return Poll::Ready(Some(Err(error)));
        }
        self.at += piece.len() as u64;
        if self.at == self.bytes && self.is_trace {
            self.answer.session().fetched();
        }
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.bytes
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes - self.at)
    }
}

/// The stream that a page keeps open: server-sent events that say how far the conversion is, and comments when nothing
/// has changed.
pub(super) struct AliveBody {
    pulse: Interval,
    page: OpenPage,
    conversion: Conversion,
    last: Option<Sign>,
}

impl AliveBody {
    pub(super) fn new(page: OpenPage, conversion: Conversion) -> Self {
        Self { pulse: tokio::time::interval(PULSE), page, conversion, last: None }
    }

    /// Returns the next sign of life.
    fn next(&mut self) -> Bytes {
        let sign = self.conversion.sign();
        if self.last.as_ref() == Some(&sign) {
            return Bytes::from_static(b":\n");
        }
        let event = sign.event();
        self.last = Some(sign);
        event.into()
    }
}

impl Body for AliveBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.pulse.poll_tick(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) if self.page.session().has_ended() => Poll::Ready(None),
            Poll::Ready(_) => Poll::Ready(Some(Ok(Frame::data(self.next())))),
        }
    }
}
