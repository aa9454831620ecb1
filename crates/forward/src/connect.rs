//! Connecting to a broker: options, the first connection, creating the stream.

use async_nats::jetstream::context::{Context, ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, StorageType};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use eventring::internal::shm::read_text;
use eventring_capture::secret::{Secret, SecretAddress};
use eventring_capture::{CaptureError, CaptureErrorKind};
use percent_encoding::percent_decode_str;
use std::error::Error as _;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::{Duration, Instant};

/// The time for which the broker may keep an answer back.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect for the first time.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The broker, the stream, and how to get at them.
#[derive(Clone, Debug)]
#[must_use]
pub struct StreamOptions {
    servers: SecretAddress,
    pub(super) name: String,
    credentials: Option<PathBuf>,
    nkey: Option<Secret>,
    root_certificates: Option<PathBuf>,
    client_certificate: Option<(PathBuf, PathBuf)>,
    timeout: Duration,
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
            servers: SecretAddress::from(servers.into()),
            name: name.into(),
            credentials: None,
            nkey: None,
            root_certificates: None,
            client_certificate: None,
            timeout: Duration::from_secs(10),
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
        Self { nkey: Some(Secret(seed.into())), ..self }
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
    pub fn timeout(self, time: Duration) -> Self {
        Self { timeout: time, ..self }
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
            let text = read_text(file).map_err(|error| CaptureError::io("read the credentials", error).at(file))?;
            options = options.credentials(&text).map_err(|error| CaptureError::io("use them", error).at(file))?;
        }
        if let Some(Secret(seed)) = &self.nkey {
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
        let servers = self.servers.expose().split(',').filter_map(|server| ServerAddr::from_str(server.trim()).ok());
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

/// Connects for the first time. Tries again while no broker is there.
pub(super) async fn first_connection(options: &StreamOptions) -> Result<(Client, Context), CaptureError> {
    let deadline = Instant::now() + options.timeout;
    let servers: Vec<&str> = options.servers.expose().split(',').map(str::trim).collect();
    for server in &servers {
        check_address(server)?;
    }
    loop {
        match options.connect_options()?.connect(servers.as_slice()).await {
            Ok(client) => {
                let context = ContextBuilder::new().timeout(ANSWER_TIME).ack_timeout(ANSWER_TIME).build(client.clone());
                return Ok((client, context));
            }
            Err(error) if Instant::now() >= deadline || (servers.len() == 1 && is_lasting(&error)) => {
                let message = format!(
                    "cannot connect to {}: {error}; check the address, the credentials, and that nats-server runs there",
                    options.servers
                );
                return Err(CaptureError::new(CaptureErrorKind::Broker, message));
            }
            Err(_) => tokio::time::sleep(CONNECT_PAUSE).await,
        }
    }
}

/// Checks that an address can be one of a broker.
fn check_address(server: &str) -> Result<(), CaptureError> {
    let problem = match ServerAddr::from_str(server) {
        Ok(address) if address.host().is_empty() => "there is no host".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let message = format!("the address {}: {problem}, expected nats://HOST:PORT", SecretAddress::from(server));
    Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
}

/// Returns true if the broker is there, and gives the same answer to the same credentials each time.
fn is_lasting(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Tls => true,
        // What is wrong with a certificate.
        _ => error
            .source()
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .is_some_and(|error| error.kind() == std::io::ErrorKind::InvalidData),
    }
}

/// Returns the stream, once the broker can say whether it is there, and its settings.
pub(super) async fn stream_of(
    context: &Context,
    options: &StreamOptions,
    makes: bool,
) -> Result<(stream::Stream<()>, stream::Config), CaptureError> {
    let broker = |message: String| CaptureError::new(CaptureErrorKind::Broker, message);
    let deadline = Instant::now() + options.timeout;
    let name = &options.name;
    let not_made = loop {
        let problem = match context.get_stream(name).await {
            Ok(stream) => {
                let config = stream.cached_info().config.clone();
                let subjects = &config.subjects;
                let wanted = format!("{name}.>");
                if makes && !subjects.iter().any(|subject| *subject == wanted || subject == ">") {
                    return Err(broker(format!(
                        "the stream {name} takes the subjects {}, expected {wanted}; name another stream, or have it take these",
                        subjects.join(", ")
                    )));
                }
                let stream = context.get_stream_no_info(name).await.map_err(|error| broker(error.to_string()))?;
                return Ok((stream, config));
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(refused) if refused.code() == 404 && makes => {
                    match context.create_stream(options.config()).await {
                        Ok(_) => continue,
                        Err(error) => format!("cannot make the stream {name}: {error}"),
                    }
                }
                GetStreamErrorKind::JetStream(refused) if refused.code() == 404 => {
                    let message = format!(
                        "there is no stream {name}; `eventring forward` makes it, and `receive --wait` waits for it"
                    );
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

impl StreamOptions {
    /// Returns which limits of these options a stream does not have, which was made with others.
    pub(super) fn limits_not_in(&self, config: &stream::Config) -> Option<String> {
        let of_age = self.max_age.filter(|age| *age != config.max_age).map(|_| match config.max_age {
            Duration::ZERO => "batches of any age".to_owned(),
            age => format!("batches of the last {age:?}"),
        });
        let is_other = |bytes: &u64| i64::try_from(*bytes).is_ok_and(|bytes| bytes != config.max_bytes);
        let of_size = self.max_bytes.filter(is_other).map(|_| match config.max_bytes {
            ..=0 => "any number of bytes".to_owned(),
            bytes => format!("{bytes} bytes"),
        });
        let keeps: Vec<String> = of_age.into_iter().chain(of_size).collect();
        (!keeps.is_empty()).then(|| {
            format!(
                "the stream {} was made with other limits, and keeps {}; change them with the broker's own tools",
                self.name,
                keeps.join(" and ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_a_stream_does_not_have_are_named() {
        let options = StreamOptions::new("nats://h", "S").max_age(Duration::from_secs(60)).max_bytes(1000);
        assert_eq!(options.limits_not_in(&options.config()), None);
        let other = stream::Config { max_age: Duration::ZERO, max_bytes: 7, ..options.config() };
        let said = options.limits_not_in(&other).unwrap();
        assert!(said.contains("keeps batches of any age and 7 bytes"), "{said}");
        assert_eq!(StreamOptions::new("nats://h", "S").limits_not_in(&other), None);
    }

    #[test]
    fn secrets_are_not_shown() {
        let options = StreamOptions::new("nats://u:PW@a:1", "S").nkey("PW");
        assert!(!format!("{options:?}").contains("PW"), "{options:?}");
    }
}
