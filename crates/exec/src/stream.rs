//! Updates of blocks for async programs.

use crate::blocks::{BlockUpdate, Blocks, NextUpdate};
use async_channel::Receiver;
use futures_core::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The news that wait for the program at most. If it is slower, the ring is read later, and may lose events.
const WAITING_MAX: usize = 64;
/// The longest time after which the thread notices that nobody wants more news.
const TIMEOUT: Duration = Duration::from_millis(250);

/// The news of a [`Blocks`] as a stream. A thread of its own reads the ring and sleeps while nothing comes.
///
/// It ends when the ring does; with [`Blocks::follow_restarts`] never. It is cancel-safe: a `next()` that is dropped
/// takes nothing. When the stream is dropped, its thread ends within a quarter of a second.
///
/// ```
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # use eventring::schema::exec::ExecEvent;
/// use eventring_exec::{Blocks, Wanted};
/// use futures_lite::{StreamExt as _, future::block_on};
/// # let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().build()?;
/// # let reader = eventring::reader::Reader::options().open_fd(recorder.as_fd())?;
/// # drop(recorder);
/// let mut news = Blocks::of_ring(&reader, Wanted::TRANSACTIONS)?.into_stream()?;
/// block_on(async {
///     while let Some(update) = news.next().await {
///         println!("{update:?}");
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockStream(Pin<Box<Receiver<BlockUpdate>>>);

impl Blocks {
    /// Makes a stream of the news.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn into_stream(mut self) -> io::Result<BlockStream> {
        let (sender, receiver) = async_channel::bounded(WAITING_MAX);
        let read = move || {
            loop {
                match self.next_timeout(TIMEOUT) {
                    NextUpdate::Update(update) => {
                        if sender.send_blocking(update).is_err() {
                            return;
                        }
                    }
                    NextUpdate::TimedOut if sender.is_closed() => return,
                    NextUpdate::TimedOut => {}
                    NextUpdate::Ended => return,
                }
            }
        };
        std::thread::Builder::new().name("eventring-blocks".into()).spawn(read)?;
        Ok(BlockStream(Box::pin(receiver)))
    }
}

impl Stream for BlockStream {
    type Item = BlockUpdate;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<BlockUpdate>> {
        self.0.as_mut().poll_next(context)
    }
}
