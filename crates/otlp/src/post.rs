//! Sending one request.

use super::endpoint::OtlpEndpoint;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::time::{Duration, SystemTime};
use ureq::Agent;
use ureq::http::Response;

/// The longest time for a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause that a collector may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The bytes of an answer that are read at most.
const ANSWER_BYTES: u64 = 1 << 20;

/// The way to a collector.
pub(super) struct Post {
    agent: Agent,
    endpoint: OtlpEndpoint,
}

/// The answer of a collector.
pub(super) enum CollectorAnswer {
    /// Success, with the body, which may say that a part was rejected.
    Taken(Vec<u8>),
    /// A request to send it again: after this pause, if the collector said so. The text says why.
    Later(Option<Duration>, String),
    /// A refusal for good, and why.
    Never(String),
}

impl Post {
    pub fn new(endpoint: OtlpEndpoint) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            // A redirected request would go elsewhere with the headers of this one.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(endpoint.tls().config())
            .user_agent(concat!("eventring/", env!("CARGO_PKG_VERSION")));
        // The proxies of the environment lead to other hosts.
        let config = if endpoint.is_this_host() { config.proxy(None) } else { config };
        Self { agent: config.build().into(), endpoint }
    }

    pub(super) fn endpoint(&self) -> &OtlpEndpoint {
        &self.endpoint
    }

    /// Sends a body that [`compress`] has made.
    pub(super) fn send(&self, url: &str, body: &[u8]) -> CollectorAnswer {
        let mut request = self.agent.post(url);
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/x-protobuf").header("content-encoding", "gzip");
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(ureq::Error::BadUri(problem)) => return CollectorAnswer::Never(format!("{url}: {problem}")),
            // These do not change by themselves.
            Err(error @ (ureq::Error::Http(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_))) => {
                return CollectorAnswer::Never(format!("{url}: {error}"));
            }
            // What is wrong with a certificate comes as this kind of error.
            Err(ureq::Error::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                return CollectorAnswer::Never(format!("{url}: {error}"));
            }
            Err(error) => return CollectorAnswer::Later(None, format!("{url}: {error}")),
        };
        let status = response.status();
        let pause = pause(&response);
        let answer = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        match status.as_u16() {
            200..=299 => match answer {
                // Some say in JSON that there is nothing to say.
                Ok(answer) if answer.trim_ascii() == b"{}" => CollectorAnswer::Taken(Vec::new()),
                Ok(answer) => CollectorAnswer::Taken(answer),
                // The collector has the request, but nobody knows whether it has taken all of it.
                Err(error) => {
                    CollectorAnswer::Never(format!("{url}: {status}, and the answer cannot be read ({error})"))
                }
            },
            429 | 502 | 503 | 504 => CollectorAnswer::Later(pause, format!("{url}: {status}")),
            _ => CollectorAnswer::Never(format!("{url}: {status}{}", printable(&answer.unwrap_or_default()))),
        }
    }
}

/// Returns the pause that an answer asks for, in seconds or until a date.
pub(super) fn pause<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get("retry-after")?.to_str().ok()?.trim();
    let pause = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = SystemTime::from(jiff::fmt::rfc2822::parse(text).ok()?.timestamp());
            // A date that is over asks for no pause.
            until.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(pause.min(PAUSE_MAX))
}

/// Returns the beginning of a text that a collector has sent.
pub(super) fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Returns the beginning of an answer's text, if it is text.
fn printable(answer: &[u8]) -> String {
    let text = std::str::from_utf8(answer).unwrap_or_default();
    let text = one_line(text);
    if text.is_empty() { text } else { format!(": {text}") }
}

/// Compresses a body as HTTP names it `gzip`.
pub(super) fn compress(body: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    // Writing into memory does not fail.
    let written = gzip.write_all(body).and_then(|()| gzip.finish());
    written.unwrap_or_default()
}
