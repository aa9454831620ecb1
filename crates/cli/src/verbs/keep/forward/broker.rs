//! The options of verbs that connect to a broker.

use crate::args::amounts::{parse_file_bytes, parse_file_time};
use crate::exit::{Exit, Failure};
use crate::input::LOOK_PAUSE;
use crate::interrupt::Interrupt;

use crate::text::secrets::without_secrets;
use eventring::internal::shm;
use eventring_capture::CaptureError;
use eventring_capture::secret::SecretAddress;
use eventring_forward::{EventStream, StreamOptions};
use eventring_otlp::{OtlpEndpoint, OtlpError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The way to a stream of NATS JetStream.
#[derive(clap::Args)]
pub(super) struct BrokerArgs {
    /// The stream. Its batches have the subjects STREAM.HOST.RING.KIND
    #[arg(long, value_name = "STREAM")]
    pub(super) stream: Option<String>,
    /// Authenticate with this credentials file (.creds)
    #[arg(long, value_name = "FILE", env = "NATS_CREDS", hide_env_values = true)]
    creds: Option<PathBuf>,
    /// Authenticate with the NKey seed in this file
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    nkey: Option<PathBuf>,
    /// Trust the certificates in this PEM file: for a broker besides the system's, for a collector only these
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Show the broker or the collector this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// The limits of what is kept.
#[derive(clap::Args)]
pub(super) struct RetentionArgs {
    /// Age from which on batches of a stream that is made are removed
    #[arg(long, value_name = "TIME", value_parser = parse_file_time)]
    pub(super) max_age: Option<Duration>,
    /// Size of all of them together; when there is more, the oldest are removed
    #[arg(long, value_name = "SIZE", value_parser = parse_file_bytes)]
    pub(super) max_bytes: Option<u64>,
}

impl BrokerArgs {
    /// Returns which of these options are given, with their names. What the environment says is for all brokers, and is
    /// not given.
    pub(super) fn given(&self) -> [(bool, &'static str); 3] {
        let creds_of_environment = std::env::var_os("NATS_CREDS").map(PathBuf::from);
        [
            (self.stream.is_some(), "--stream"),
            (self.creds.is_some() && self.creds != creds_of_environment, "--creds"),
            (self.nkey.is_some(), "--nkey"),
        ]
    }

    /// Returns which of the options of TLS are given, with their names.
    pub(super) fn tls_given(&self) -> [(bool, &'static str); 3] {
        [
            (self.tls_ca.is_some(), "--tls-ca"),
            (self.tls_cert.is_some(), "--tls-cert"),
            (self.tls_key.is_some(), "--tls-key"),
        ]
    }

    /// Reads the certificates for a collector, and returns its address with them.
    pub(super) fn with_certificates(&self, mut endpoint: OtlpEndpoint) -> anyhow::Result<OtlpEndpoint> {
        let named = |file: &Path, error: OtlpError| Exit::Usage.failure(format!("{}: {error}", file.display()));
        if let Some(file) = &self.tls_ca {
            let certificates = read(file)?;
            endpoint = endpoint.root_certificates(certificates.as_bytes()).map_err(|error| named(file, error))?;
        }
        if let (Some(file), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let (certificate, key) = (read(file)?, read(key)?);
            let with_client = endpoint.client_certificate(certificate.as_bytes(), key.as_bytes());
            endpoint = with_client.map_err(|error| named(file, error))?;
        }
        Ok(endpoint)
    }

    pub(super) fn options(&self, servers: &SecretAddress) -> Result<StreamOptions, Failure> {
        let Some(stream) = &self.stream else {
            return Exit::Usage.fail("a broker has many streams: name one with --stream");
        };
        for file in [&self.creds, &self.nkey, &self.tls_ca, &self.tls_cert, &self.tls_key].into_iter().flatten() {
            read(file)?;
        }
        let options = StreamOptions::new(servers.expose(), stream);
        let options = self.creds.iter().fold(options, StreamOptions::credentials);
        let mut options = self.tls_ca.iter().fold(options, StreamOptions::root_certificates);
        if let Some(file) = &self.nkey {
            options = options.nkey(read(file)?.trim());
        }
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            options = options.client_certificate(certificate, key);
        }
        Ok(options)
    }
}

/// Connects to a broker on another thread, because that may take a while. Ends with an error if the user does not want
/// to wait any longer: then the thread is left to itself.
pub(super) fn connect(
    interrupt: &Interrupt,
    connect: impl FnOnce() -> Result<EventStream, CaptureError> + Send + 'static,
) -> anyhow::Result<EventStream> {
    let (tell, connected) = channel();
    std::thread::spawn(move || {
        // Nobody waits for it any longer if the user has ended the command.
        let _ = tell.send(connect());
    });
    loop {
        match connected.recv_timeout(LOOK_PAUSE) {
            Ok(stream) => return Ok(stream?),
            Err(RecvTimeoutError::Timeout) if !interrupt.came() => {}
            Err(_) => {
                return Exit::Failed.fail("interrupted before the broker has answered; nothing was sent or received");
            }
        }
    }
}

/// Reads a file of keys or certificates.
fn read(file: &Path) -> Result<String, Failure> {
    shm::read_text(file).map_err(|error| {
        let path = file.to_string_lossy();
        // No path has several lines, and a key is no path.
        let file = match path.contains('\n') || without_secrets(&path) != path {
            true => "found a key, expected the path of its file".into(),
            false => path,
        };
        Failure::io(format!("{file}: cannot read it"), &error)
    })
}

/// Returns true if the text is the address of a broker.
pub(super) fn is_broker(address: &str) -> bool {
    ["nats://", "tls://"].iter().any(|scheme| address.starts_with(scheme))
}
