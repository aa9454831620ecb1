//! The rules about who may ask for what.
//!
//! Any program and any web page on this machine can send requests to a port of 127.0.0.1. TCP does not say which user
//! asks. So a request must know a secret, the token, and must come from our own page:
//!
//! - Another user, and a page of another origin, do not know the **token**.
//! - A page whose name was made to resolve to 127.0.0.1 (DNS rebinding) sends its own name as **Host**.
//! - A page of another origin that fetches sends its **Origin** and **Sec-Fetch-Site**.

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};

const TOKEN_BYTES: usize = 16;

/// The secret and the address of a server.
pub(super) struct RequestGuard {
    token: String,
    hosts: [String; 2],
}

impl RequestGuard {
    /// Makes the guard of a port, with a new token.
    pub(super) fn new(port: u16) -> std::io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { token, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] })
    }

    /// Returns the address of the start page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// Checks a request. Returns the path behind the token.
    pub(super) fn check<'r>(&self, request: &'r Parts) -> Result<&'r str, StatusCode> {
        // A request to a proxy names a host in its first line, too. We are no proxy.
        if request.uri.authority().is_some() || !self.hosts.iter().any(|host| is(&request.headers, HOST, host)) {
            return Err(StatusCode::FORBIDDEN);
        }
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(StatusCode::FORBIDDEN);
        }
        let path = request.uri.path().strip_prefix('/').ok_or(StatusCode::NOT_FOUND)?;
        let (token, rest) = path.split_once('/').ok_or(StatusCode::NOT_FOUND)?;
        if !are_equal(token.as_bytes(), self.token.as_bytes()) {
            return Err(StatusCode::NOT_FOUND);
        }
        if !self.is_own_page(&request.headers, rest) {
            return Err(StatusCode::FORBIDDEN);
        }
        Ok(rest)
    }

    /// Returns true unless the headers say that a page of another origin asks.
    fn is_own_page(&self, headers: &HeaderMap, path: &str) -> bool {
        let origins = self.hosts.iter().map(|host| format!("http://{host}"));
        if headers.contains_key(ORIGIN) && !origins.into_iter().any(|origin| is(headers, ORIGIN, &origin)) {
            return false;
        }
        if !headers.contains_key("sec-fetch-site") || is(headers, "sec-fetch-site", "same-origin") {
            return true;
        }
        // The browser goes to the start page from the file that `browser.rs` writes, which counts as another site, or
        // from its address bar. It shows the page then, and gives nothing of it to another page.
        let is_visit = is(headers, "sec-fetch-mode", "navigate") && is(headers, "sec-fetch-dest", "document");
        is_visit && (path.is_empty() || is(headers, "sec-fetch-site", "none"))
    }
}

/// Returns true if the request has this header once, with this value.
fn is(headers: &HeaderMap, name: impl axum::http::header::AsHeaderName, value: &str) -> bool {
    let mut values = headers.get_all(name).iter();
    values.next().is_some_and(|found| found.as_bytes() == value.as_bytes()) && values.next().is_none()
}

/// Compares in a time that does not depend on how many bytes are equal.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| std::hint::black_box(all | (one ^ other)));
    one.len() == other.len() && differences == 0
}
