//! A connection to a stream of NATS JetStream, with its own thread. Each request to the broker blocks until the broker
//! answers.

use super::connect::{ANSWER_TIME, StreamOptions, first_connection, stream_of};
use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{Context, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind};
use eventring_capture::{CaptureError, CaptureErrorKind};
use futures_util::StreamExt as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The largest batch, with its subject and headers, even if the broker takes larger messages.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Room for the subject and the headers of a batch.
const HEADERS_BYTES: usize = 4 << 10;
/// The time after which the broker forgets a consumer that nobody asks.
const CONSUMER_TIME: Duration = Duration::from_secs(60);
/// The pause between two questions whether an answer is still awaited.
const ASK_PAUSE: Duration = Duration::from_millis(100);
/// The problem with a broker that is silent.
const NO_ANSWER: &str = "no answer came";
/// The problem if the connection to the broker was lost.
const CONNECTION_LOST: &str = "the connection is lost";

/// A stream of a broker. Clones share one connection.
#[derive(Clone)]
pub struct EventStream {
    runtime: Arc<Runtime>,
    client: Client,
    context: Context,
    stream: stream::Stream<()>,
    name: String,
    other_limits: Option<String>,
    /// The stream that is made if the broker has none of this name; `None` if it must be there.
    made: Option<Arc<StreamOptions>>,
}

/// A message of a stream.
pub(super) struct StoredBatch {
    pub(super) subject: String,
    pub(super) sequence: u64,
    /// The id under which it was published; empty if it had none.
    pub(super) id: String,
    /// The time at which the broker has stored it, in nanoseconds since the epoch.
    pub(super) stored_epoch_nanos: u64,
    pub(super) bytes: Vec<u8>,
}

/// A batch that is to be published.
pub(super) struct NewBatch<'b> {
    pub(super) subject: &'b str,
    pub(super) id: &'b str,
    /// The sequence number of the last batch of the subject; 0 if there is none.
    pub(super) after: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) bytes: &'b [u8],
}

/// The reason why a batch was not published, as far as it is known.
pub(super) enum NotPublished {
    /// The last batch of the subject is another one.
    AnotherIsLast,
    /// The broker takes no message of this size.
    TooLarge(String),
    /// No answer came, or one that may change: the message may be there or not.
    NotNow(String),
}

impl EventStream {
    /// Connects to the broker, and makes the stream if there is none of this name.
    ///
    /// # Errors
    /// No connection comes about within the time of [`StreamOptions::timeout`]; the broker refuses; it has no
    /// JetStream; or the stream takes other subjects than those of batches.
    pub fn open_or_make(options: &StreamOptions) -> Result<Self, CaptureError> {
        Self::connect(options, true)
    }

    /// Connects to the broker and a stream that is there.
    ///
    /// # Errors
    /// As [`Self::open_or_make`], or there is no such stream.
    pub fn open(options: &StreamOptions) -> Result<Self, CaptureError> {
        Self::connect(options, false)
    }

    fn connect(options: &StreamOptions, makes: bool) -> Result<Self, CaptureError> {
        let is_bad = |c: char| ".*>/\\".contains(c) || c.is_whitespace() || c.is_control();
        if options.name.is_empty() || options.name.contains(is_bad) {
            let message = format!(
                "the name of the stream is {:?}, expected one without dots, spaces, slashes, `*`, `>` and control characters",
                options.name
            );
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(|error| CaptureError::io("start a thread", error))?;
        let (client, context) = runtime.block_on(first_connection(options))?;
        let (stream, config) = runtime.block_on(stream_of(&context, options, makes))?;
        let other_limits = options.limits_not_in(&config);
        let made = makes.then(|| Arc::new(options.clone()));
        let (runtime, name) = (Arc::new(runtime), options.name.clone());
        Ok(Self { runtime, client, context, stream, name, other_limits, made })
    }

    /// Returns a text about limits of the options which the stream does not have, because it was there already.
    #[must_use]
    pub fn other_limits(&self) -> Option<&str> {
        self.other_limits.as_deref()
    }

    /// Returns the name of the stream.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the largest batch that the broker takes, in bytes.
    pub(super) fn batch_bytes_max(&self) -> u64 {
        let of_broker = self.client.server_info().max_payload;
        MESSAGE_BYTES_MAX.min(of_broker).saturating_sub(HEADERS_BYTES) as u64
    }

    /// Returns the number of times that a connection was made. If it is another number than before, the broker may have
    /// been started again, and may have lost its last batches.
    pub(super) fn connections(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Waits for the answer to a request. Asks several times a second whether it is given up. Returns `None` if it is.
    fn answer<T>(&self, request: impl Future<Output = T>, is_given_up: &mut dyn FnMut() -> bool) -> Option<T> {
        self.runtime.block_on(async {
            let mut request = pin!(request);
            loop {
                match tokio::time::timeout(ASK_PAUSE, request.as_mut()).await {
                    Ok(answer) => return Some(answer),
                    Err(_) if is_given_up() => return None,
                    Err(_) => {}
                }
            }
        })
    }

    /// Returns the last batch of a subject. A stream that is gone is made again, if this connection may make it.
    pub(super) fn last_of(
        &self,
        subject: &str,
        is_given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Option<StoredBatch>, String> {
        let found = self.answer(self.stream.get_last_raw_message_by_subject(subject), is_given_up);
        match found.ok_or(NO_ANSWER)? {
            Ok(message) => Ok(Some(StoredBatch {
                subject: message.subject.to_string(),
                sequence: message.sequence,
                id: id_in(Some(&message.headers)),
                stored_epoch_nanos: epoch_nanos(message.time),
                bytes: message.payload.to_vec(),
            })),
            Err(error) => match (error.kind(), &self.made) {
                (LastRawMessageErrorKind::NoMessageFound, _) => Ok(None),
                (LastRawMessageErrorKind::JetStream(refused), Some(made))
                    if refused.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    let made = self.answer(stream_of(&self.context, made, true), is_given_up).ok_or(NO_ANSWER)?;
                    made.map(|_| None).map_err(|error| error.to_string())
                }
                _ => Err(error.to_string()),
            },
        }
    }

    /// Returns the id of the message with this number.
    pub(super) fn id_of(&self, sequence: u64) -> Result<Option<String>, String> {
        Ok(self.message(sequence)?.map(|message| id_in(Some(&message.headers))))
    }

    /// Returns the time at which the broker has stored the message with this number, in nanoseconds since the epoch.
    pub(super) fn stored_epoch_nanos(&self, sequence: u64) -> Result<Option<u64>, String> {
        Ok(self.message(sequence)?.map(|message| epoch_nanos(message.time)))
    }

    fn message(&self, sequence: u64) -> Result<Option<StreamMessage>, String> {
        match self.runtime.block_on(self.stream.get_raw_message(sequence)) {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Publishes a batch, and waits until the broker has stored it or the batch is given up. Returns its sequence
    /// number.
    pub(super) fn publish(
        &self,
        batch: &NewBatch<'_>,
        is_given_up: &mut dyn FnMut() -> bool,
    ) -> Result<u64, NotPublished> {
        let message = PublishMessage::build()
            .payload(batch.bytes.to_vec().into())
            .message_id(batch.id)
            .expected_last_subject_sequence(batch.after)
            .header("Eventring-Events", batch.events.to_string())
            .header("Eventring-Lost", batch.lost.to_string());
        let publish = async {
            let ack = self.context.send_publish(batch.subject.to_owned(), message).await?;
            ack.await
        };
        match self.answer(publish, is_given_up).ok_or_else(|| NotPublished::NotNow(NO_ANSWER.into()))? {
            // The id is taken. What is stored under it may be another forwarder's, and end elsewhere.
            Ok(ack) if ack.duplicate => Err(NotPublished::AnotherIsLast),
            Ok(ack) => Ok(ack.sequence),
            Err(error) => Err(match error.kind() {
                PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => {
                    NotPublished::AnotherIsLast
                }
                PublishErrorKind::MaxPayloadExceeded => NotPublished::TooLarge(error.to_string()),
                _ => NotPublished::NotNow(error.to_string()),
            }),
        }
    }

    /// Begins to read the batches of some subjects, from this sequence number on.
    pub(super) fn read_from(&self, sequence: u64, filter: &str) -> Result<BatchesOfStream, String> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequence.max(1) },
            ack_policy: AckPolicy::None,
            filter_subject: filter.to_owned(),
            inactive_threshold: CONSUMER_TIME,
            memory_storage: true,
            ..pull::Config::default()
        };
        let consumer = self.runtime.block_on(self.stream.create_consumer(config)).map_err(|error| error.to_string())?;
        let (runtime, client) = (Arc::clone(&self.runtime), self.client.clone());
        Ok(BatchesOfStream { runtime, client, consumer, delivered: 0 })
    }

    /// Returns the first and the last sequence number of the stream.
    pub(super) fn sequences(&self) -> Result<(u64, u64), String> {
        // A request would wait for the time of an answer.
        if self.client.connection_state() != State::Connected {
            return Err(CONNECTION_LOST.into());
        }
        let info = self.runtime.block_on(self.stream.get_info()).map_err(|error| error.to_string())?;
        Ok((info.state.first_sequence, info.state.last_sequence))
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What one call of [`BatchesOfStream::fetch`] has brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    /// The number of batches that came.
    pub(super) batches: u64,
    /// The number of batches that the broker still had for this reader after the last of them.
    pub(super) pending: u64,
}

/// Batches as they come from a stream.
pub(super) struct BatchesOfStream {
    runtime: Arc<Runtime>,
    client: Client,
    consumer: PullConsumer,
    /// The number of batches that were delivered.
    delivered: u64,
}

impl BatchesOfStream {
    /// Waits up to `time` for batches, and calls `take` with each. A call brings a bounded number of them.
    ///
    /// # Errors
    /// The broker is not there, or a batch was lost on the way: then they must be read anew.
    pub(super) fn fetch(
        &mut self,
        time: Duration,
        mut take: impl FnMut(StoredBatch) -> Result<(), CaptureError>,
    ) -> Result<Result<Fetched, CaptureError>, String> {
        const MESSAGES: usize = 64;
        const BYTES: usize = 16 << 20;
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(async {
            let asked = self.consumer.fetch().max_messages(MESSAGES).max_bytes(BYTES).expires(time);
            let mut messages = asked.messages().await.map_err(|error| error.to_string())?;
            // A broker that has died does not end the wait.
            let deadline = tokio::time::Instant::now() + time + ANSWER_TIME;
            let mut fetched = Fetched { batches: 0, pending: 0 };
            loop {
                let next = loop {
                    match tokio::time::timeout(ASK_PAUSE, messages.next()).await {
                        Ok(next) => break next,
                        // What was asked for over a connection that is gone does not come.
                        Err(_) if self.client.connection_state() != State::Connected => {
                            return Err(CONNECTION_LOST.into());
                        }
                        Err(_) if tokio::time::Instant::now() >= deadline => return Err(NO_ANSWER.into()),
                        Err(_) => {}
                    }
                };
                let Some(message) = next else {
                    if fetched.batches == 0 {
                        // A broker that was started again does not know the consumer, and says nothing of it.
                        fetched.pending = self.consumer.info().await.map_err(|error| error.to_string())?.num_pending;
                    }
                    return Ok(Ok(fetched));
                };
                let message = message.map_err(|error| error.to_string())?;
                let info = message.info().map_err(|error| error.to_string())?;
                if info.consumer_sequence != self.delivered + 1 {
                    return Err("a batch was lost on the way".into());
                }
                self.delivered += 1;
                fetched = Fetched { batches: fetched.batches + 1, pending: info.pending };
                let batch = StoredBatch {
                    subject: message.subject.to_string(),
                    sequence: info.stream_sequence,
                    id: id_in(message.headers.as_ref()),
                    stored_epoch_nanos: epoch_nanos(info.published),
                    bytes: message.payload.to_vec(),
                };
                if let Err(error) = take(batch) {
                    return Ok(Err(error));
                }
            }
        })
    }
}

fn id_in(headers: Option<&async_nats::HeaderMap>) -> String {
    headers.and_then(|headers| headers.get("Nats-Msg-Id")).map(ToString::to_string).unwrap_or_default()
}

fn epoch_nanos(time: async_nats::datetime::DateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_no_broker_can_have_is_refused_at_once() {
        for servers in ["nats://127.0.0.1:99999", "nats://", "nats://127.0.0.1:4222,tls://:99999999"] {
            let error = EventStream::open(&StreamOptions::new(servers, "S")).unwrap_err();
            assert_eq!(error.kind(), CaptureErrorKind::BadOptions, "{error}");
            assert!(error.to_string().contains("expected nats://HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn a_name_that_no_stream_can_have_is_refused_without_a_connection() {
        let error = EventStream::open(&StreamOptions::new("nats://127.0.0.1:1", "a.b")).unwrap_err();
        assert_eq!(error.kind(), CaptureErrorKind::BadOptions);
    }
}
