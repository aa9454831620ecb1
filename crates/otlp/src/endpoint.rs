//! The address of a collector.

use super::error::OtlpError;
use super::tls::OtlpTls;
use eventring_capture::secret::SecretAddress;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use ureq::http::{HeaderName, HeaderValue, Uri, header};

/// The port that collectors listen on for OTLP over HTTP.
const PORT: u16 = 4318;

/// The headers that say how a request is sent. The forwarding knows them better than its user.
const OWN_HEADERS: [HeaderName; 10] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The address of a collector, the headers of each request, and certificates.
///
/// `otlp://HOST` and `otlps://HOST` mean HTTP and HTTPS, with the port 4318 if none is named. `http://…` and
/// `https://…` mean the same, with their usual ports. `/v1/traces` and `/v1/logs` are appended to the path.
///
/// ```
/// use eventring_otlp::OtlpEndpoint;
///
/// let endpoint: OtlpEndpoint = "otlp://localhost".parse()?;
/// assert_eq!(endpoint.to_string(), "http://localhost:4318");
/// let endpoint: OtlpEndpoint = "otlps://collector.example:443/tenant/".parse()?;
/// assert_eq!(endpoint.to_string(), "https://collector.example:443/tenant");
/// assert!("localhost:4318".parse::<OtlpEndpoint>().is_err());
/// # Ok::<(), eventring_otlp::OtlpError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpEndpoint {
    base: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    tls: OtlpTls,
}

impl OtlpEndpoint {
    /// Adds a header to each request, for authentication for example. It replaces an earlier one of the same name.
    ///
    /// # Errors
    /// The name or the value has a character that a header cannot have, or the header says how the request is sent.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, OtlpError> {
        let bad = |what: &str| {
            // A value may be a secret, so it is not repeated.
            let message = format!("the {what} of the header `{name}` has a character that headers cannot have");
            OtlpError(message)
        };
        let header = HeaderName::from_str(name).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        if OWN_HEADERS.contains(&header) {
            let message = format!("the header `{header}` is set by the forwarding itself; leave it out");
            return Err(OtlpError(message));
        }
        self.headers.retain(|(known, _)| *known != header);
        self.headers.push((header, value));
        Ok(self)
    }

    /// Sets the authorities that are trusted, instead of the usual ones: certificates as PEM.
    ///
    /// # Errors
    /// There is no certificate, or one of them cannot be used.
    pub fn root_certificates(self, pem: &[u8]) -> Result<Self, OtlpError> {
        Ok(Self { tls: self.tls.root_certificates(pem)?, ..self })
    }

    /// Sets the certificate that the collector is shown, with its chain, and its key: both as PEM.
    ///
    /// # Errors
    /// There is no certificate or no key, or they do not fit each other.
    pub fn client_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, OtlpError> {
        Ok(Self { tls: self.tls.client_certificate(chain, key)?, ..self })
    }

    /// Returns true if requests are sent over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.base.starts_with("https://")
    }

    pub(super) fn tls(&self) -> &OtlpTls {
        &self.tls
    }

    pub(super) fn traces(&self) -> String {
        format!("{}/v1/traces", self.base)
    }

    pub(super) fn logs(&self) -> String {
        format!("{}/v1/logs", self.base)
    }

    /// Returns true if the collector is on this host.
    pub(super) fn is_this_host(&self) -> bool {
        let uri = self.base.parse::<Uri>();
        let host = uri.as_ref().ok().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    pub(super) fn headers(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.headers.iter()
    }
}

impl FromStr for OtlpEndpoint {
    type Err = OtlpError;

    fn from_str(text: &str) -> Result<Self, OtlpError> {
        let bad = |problem: &str| {
            let shown = SecretAddress::from(text);
            let message = format!(
                "`{shown}` is no address of a collector: {problem}, expected otlp://HOST[:PORT][/PATH], or otlps://… for TLS"
            );
            OtlpError(message)
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| bad("it has no scheme"))?;
        let (scheme, port) = match scheme {
            "otlp" => ("http", Some(PORT)),
            "otlps" => ("https", Some(PORT)),
            "http" | "https" => (scheme, None),
            _ => return Err(bad("its scheme is another one")),
        };
        let uri: Uri =
            format!("{scheme}://{rest}").parse().map_err(|error| bad(&format!("it cannot be read ({error})")))?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it has a user; name a header for authentication instead"));
        }
        if uri.query().is_some() {
            return Err(bad("it has a query"));
        }
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if !after_host.is_empty() && authority.port_u16().is_none() {
            return Err(bad("its port is no number from 0 to 65535"));
        }
        let port = authority.port_u16().or(port).map_or_else(String::new, |port| format!(":{port}"));
        let path = uri.path().trim_end_matches('/');
        Ok(Self {
            base: format!("{scheme}://{}{port}{path}", authority.host()),
            headers: Vec::new(),
            tls: OtlpTls::default(),
        })
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}
