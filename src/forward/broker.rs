//! A connection to a stream of NATS JetStream. The functions of this module wait for the broker; the connection lives
//! on a thread of its own.

use crate::capture::{CaptureError, CaptureErrorKind};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{Context, ContextBuilder, GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, StorageType};
use async_nats::{Client, ConnectOptions, ServerAddr};
use futures_util::StreamExt as _;
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The time for which the broker may keep an answer back.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect for the first time.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
/// The largest batch, with its subject and headers, even if the broker takes larger messages.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Room for the subject and the headers of a batch.
const HEADERS_BYTES: usize = 4 << 10;
/// The time after which the broker forgets a consumer that nobody asks.
const CONSUMER_TIME: Duration = Duration::from_secs(60);

/// The broker, the stream, and how to get at them.
#[derive(Clone, Debug)]
#[must_use]
pub struct StreamOptions {
    servers: String,
    name: String,
    credentials: Option<PathBuf>,
    nkey: Option<String>,
    root_certificates: Option<PathBuf>,
    client_certificate: Option<(PathBuf, PathBuf)>,
    patience: Duration,
    max_age: Option<Duration>,
    max_bytes: Option<u64>,
    replicas: usize,
}

impl StreamOptions {
    /// Makes options for the stream `name` of a broker. `servers` is one address, or several with commas between them:
    /// `nats://HOST:PORT`, or `tls://HOST:PORT` for a connection by TLS only. A user and a password, or a token, may
    /// stand before the host: `nats://USER:PASSWORD@HOST`, with `%40` for an `@` in them.
    pub fn new(servers: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            name: name.into(),
            credentials: None,
            nkey: None,
            root_certificates: None,
            client_certificate: None,
            patience: Duration::from_secs(10),
            max_age: None,
            max_bytes: None,
            replicas: 1,
        }
    }

    /// Authenticates with a credentials file (`.creds`: a JWT and a seed).
    pub fn credentials(self, file: impl Into<PathBuf>) -> Self {
        Self { credentials: Some(file.into()), ..self }
    }

    /// Authenticates with the seed of an NKey.
    pub fn nkey(self, seed: impl Into<String>) -> Self {
        Self { nkey: Some(seed.into()), ..self }
    }

    /// Trusts the certificates in this PEM file, besides those of the system.
    pub fn root_certificates(self, file: impl Into<PathBuf>) -> Self {
        Self { root_certificates: Some(file.into()), ..self }
    }

    /// Shows the broker this certificate; `key` is the file of its key. Both are PEM.
    pub fn client_certificate(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { client_certificate: Some((certificate.into(), key.into())), ..self }
    }

    /// Sets how long the first connection is tried. Default: 10 seconds. A connection that breaks later is tried again
    /// without end.
    pub fn patience(self, time: Duration) -> Self {
        Self { patience: time, ..self }
    }

    /// Sets how long a stream that is made keeps its batches. Default: without end.
    pub fn max_age(self, time: Duration) -> Self {
        Self { max_age: Some(time), ..self }
    }

    /// Sets how many bytes a stream that is made keeps; the oldest batches go first. Default: no limit.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// Sets on how many brokers of a cluster a stream that is made is kept. Default: 1.
    pub fn replicas(self, replicas: usize) -> Self {
        Self { replicas, ..self }
    }

    fn connect_options(&self) -> Result<ConnectOptions, CaptureError> {
        let mut options = ConnectOptions::new().name("eventring").request_timeout(Some(ANSWER_TIME));
        options = options.max_reconnects(None).ignore_discovered_servers();
        options = options.reconnect_delay_callback(|attempts| {
            Duration::from_millis(50 * (attempts as u64).min(20)).min(Duration::from_secs(1))
        });
        if let Some((user, password)) = self.user() {
            options = match password {
                Some(password) => options.user_and_password(user, password),
                None => options.token(user),
            };
        }
        if let Some(file) = &self.credentials {
            let text = std::fs::read_to_string(file)
                .map_err(|error| CaptureError::io("read the credentials", error).at(file))?;
            options = options.credentials(&text).map_err(|error| CaptureError::io("use them", error).at(file))?;
        }
        if let Some(seed) = &self.nkey {
            options = options.nkey(seed.clone());
        }
        if let Some(file) = &self.root_certificates {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.client_certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }

    /// Returns the user and the password, or the token, that stand in the first address that has any.
    fn user(&self) -> Option<(String, Option<String>)> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let servers = self.servers.split(',').filter_map(|server| ServerAddr::from_str(server.trim()).ok());
        let of_server = |server: ServerAddr| Some((decoded(server.username()?), server.password().map(decoded)));
        servers.filter_map(of_server).next()
    }

    fn config(&self) -> stream::Config {
        stream::Config {
            name: self.name.clone(),
            subjects: vec![format!("{}.>", self.name)],
            storage: StorageType::File,
            max_age: self.max_age.unwrap_or_default(),
            max_bytes: self.max_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            num_replicas: self.replicas,
            description: Some("Batches of eventring".into()),
            ..stream::Config::default()
        }
    }
}

/// A stream of a broker. Clones share one connection.
#[derive(Clone)]
pub struct EventStream {
    runtime: Arc<Runtime>,
    client: Client,
    context: Context,
    stream: stream::Stream<()>,
    name: String,
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
    /// No connection comes about within the time of [`StreamOptions::patience`]; the broker refuses; it has no
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
        if options.name.is_empty() || options.name.contains(['.', '*', '>', ' ', '\t', '/', '\\']) {
            let message = format!(
                "the name of the stream is {:?}, expected one without dots, spaces, slashes, `*` and `>`",
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
        let stream = runtime.block_on(stream_of(&context, options, makes))?;
        Ok(Self { runtime: Arc::new(runtime), client, context, stream, name: options.name.clone() })
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
        self.client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the last batch of a subject.
    pub(super) fn last_of(&self, subject: &str) -> Result<Option<StoredBatch>, String> {
        let found = self.runtime.block_on(self.stream.get_last_raw_message_by_subject(subject));
        match found {
            Ok(message) => Ok(Some(StoredBatch {
                subject: message.subject.to_string(),
                sequence: message.sequence,
                id: id_in(Some(&message.headers)),
                stored_epoch_nanos: epoch_nanos(message.time),
                bytes: message.payload.to_vec(),
            })),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the id of the message with this number.
    pub(super) fn id_of(&self, sequence: u64) -> Result<Option<String>, String> {
        match self.runtime.block_on(self.stream.get_raw_message(sequence)) {
            Ok(message) => Ok(Some(id_in(Some(&message.headers)))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the time at which the broker has stored the message with this number, in nanoseconds since the epoch.
    pub(super) fn stored_epoch_nanos(&self, sequence: u64) -> Result<Option<u64>, String> {
        match self.runtime.block_on(self.stream.get_raw_message(sequence)) {
            Ok(message) => Ok(Some(epoch_nanos(message.time))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Publishes a batch, and waits until the broker has stored it. Returns its sequence number.
    pub(super) fn publish(&self, batch: &NewBatch<'_>) -> Result<u64, NotPublished> {
        let message = PublishMessage::build()
            .payload(batch.bytes.to_vec().into())
            .message_id(batch.id)
            .expected_last_subject_sequence(batch.after)
            .header("Eventring-Events", batch.events.to_string())
            .header("Eventring-Lost", batch.lost.to_string());
        let published = self.runtime.block_on(async {
            let ack = self.context.send_publish(batch.subject.to_owned(), message).await?;
            ack.await
        });
        match published {
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
        Ok(BatchesOfStream { runtime: Arc::clone(&self.runtime), consumer, delivered: 0 })
    }

    /// Returns the first and the last sequence number of the stream.
    pub(super) fn sequences(&self) -> Result<(u64, u64), String> {
        let info = self.runtime.block_on(self.stream.get_info()).map_err(|error| error.to_string())?;
        Ok((info.state.first_sequence, info.state.last_sequence))
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Batches as they come from a stream.
pub(super) struct BatchesOfStream {
    runtime: Arc<Runtime>,
    consumer: PullConsumer,
    /// The number of batches that were delivered.
    delivered: u64,
}

impl BatchesOfStream {
    /// Waits up to `time` for batches, and calls `take` with each. Returns how many came.
    ///
    /// # Errors
    /// The broker is not there, or a batch was lost on the way: then they must be read anew.
    pub(super) fn fetch(
        &mut self,
        time: Duration,
        mut take: impl FnMut(StoredBatch) -> Result<(), CaptureError>,
    ) -> Result<Result<u64, CaptureError>, String> {
        const MESSAGES: usize = 64;
        const BYTES: usize = 16 << 20;
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(async {
            let asked = self.consumer.fetch().max_messages(MESSAGES).max_bytes(BYTES).expires(time);
            let mut messages = asked.messages().await.map_err(|error| error.to_string())?;
            // A broker that has died does not end the wait.
            let deadline = tokio::time::Instant::now() + time + ANSWER_TIME;
            let mut count = 0;
            loop {
                let next = tokio::time::timeout_at(deadline, messages.next()).await;
                let Some(message) = next.map_err(|_| "no answer came".to_owned())? else {
                    if count == 0 {
                        // A broker that was started again does not know the consumer, and says nothing of it.
                        self.consumer.info().await.map_err(|error| error.to_string())?;
                    }
                    return Ok(Ok(count));
                };
                let message = message.map_err(|error| error.to_string())?;
                let info = message.info().map_err(|error| error.to_string())?;
                if info.consumer_sequence != self.delivered + 1 {
                    return Err("a batch was lost on the way".into());
                }
                self.delivered += 1;
                count += 1;
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

/// Connects for the first time. Tries again while no broker is there.
async fn first_connection(options: &StreamOptions) -> Result<(Client, Context), CaptureError> {
    let deadline = Instant::now() + options.patience;
    let servers: Vec<&str> = options.servers.split(',').map(str::trim).collect();
    loop {
        match options.connect_options()?.connect(servers.as_slice()).await {
            Ok(client) => {
                let context = ContextBuilder::new().timeout(ANSWER_TIME).ack_timeout(ANSWER_TIME).build(client.clone());
                return Ok((client, context));
            }
            Err(error) if Instant::now() >= deadline => {
                let message = format!(
                    "cannot connect to {}: {error}; check the address, the credentials, and that nats-server runs there",
                    without_password(&options.servers)
                );
                return Err(CaptureError::new(CaptureErrorKind::Broker, message));
            }
            Err(_) => tokio::time::sleep(CONNECT_PAUSE).await,
        }
    }
}

/// Returns the stream, once the broker can say whether it is there.
async fn stream_of(
    context: &Context,
    options: &StreamOptions,
    makes: bool,
) -> Result<stream::Stream<()>, CaptureError> {
    let broker = |message: String| CaptureError::new(CaptureErrorKind::Broker, message);
    let deadline = Instant::now() + options.patience;
    let name = &options.name;
    let not_made = loop {
        let problem = match context.get_stream(name).await {
            Ok(stream) => {
                let subjects = &stream.cached_info().config.subjects;
                let wanted = format!("{name}.>");
                if makes && !subjects.iter().any(|subject| *subject == wanted || subject == ">") {
                    return Err(broker(format!(
                        "the stream {name} takes the subjects {}, expected {wanted}; name another stream, or have it take these",
                        subjects.join(", ")
                    )));
                }
                return context.get_stream_no_info(name).await.map_err(|error| broker(error.to_string()));
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(refused) if refused.code() == 404 && makes => {
                    match context.create_stream(options.config()).await {
                        Ok(_) => continue,
                        Err(error) => format!("cannot make the stream {name}: {error}"),
                    }
                }
                GetStreamErrorKind::JetStream(refused) if refused.code() == 404 => {
                    let message =
                        format!("there is no stream {name}; `eventring forward` makes it, or `nats stream add`");
                    return Err(CaptureError::new(CaptureErrorKind::NotFound, message));
                }
                // A broker that has just begun says so until it has read its streams.
                _ => {
                    format!("cannot ask for the stream {name}: {error}; JetStream must be enabled (`nats-server -js`)")
                }
            },
        };
        if Instant::now() >= deadline {
            break problem;
        }
        tokio::time::sleep(CONNECT_PAUSE).await;
    };
    Err(broker(not_made))
}

/// Returns addresses without what stands before an `@`.
fn without_password(servers: &str) -> String {
    let shown = servers.split(',').map(|server| match (server.split_once("://"), server.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        _ => server.to_owned(),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let shown = without_password("nats://u:p@a:1,tls://b:2,t@c");
        assert_eq!(shown, "nats://a:1,tls://b:2,c");
    }

    #[test]
    fn a_name_that_no_stream_can_have_is_refused_without_a_connection() {
        let error = EventStream::open(&StreamOptions::new("nats://127.0.0.1:1", "a.b")).unwrap_err();
        assert_eq!(error.kind(), CaptureErrorKind::BadOptions);
    }
}
