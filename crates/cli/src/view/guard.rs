//! The rules about who may ask for what.
//!
//! Any program and any web page on this machine can send requests to a port of 127.0.0.1. TCP does not say which user
//! asks. So a request must know a secret, the token, and must come from our own page:
//!
//! - Another user, and a page of another origin, do not know the **token**.
//! - A page whose name was made to resolve to 127.0.0.1 (DNS rebinding) sends its own name as **Host**.
//! - A page of another origin that fetches sends its **Origin** and **Sec-Fetch-Site**.

use super::server::{FORBIDDEN, NOT_FOUND};
use httparse::{Header, Request};

/// The secret and the address of a server.
pub(super) struct RequestGuard {
    token: String,
    hosts: [String; 2],
}

impl RequestGuard {
    /// Makes the guard of a port, with a new token.
    pub(super) fn new(port: u16) -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { token, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] })
    }

    /// Returns the address of the start page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// Checks a request. Returns the path behind the token, or the status of the refusal.
    pub(super) fn check<'r>(&self, request: &Request<'_, 'r>) -> Result<&'r str, &'static str> {
        let headers = &*request.headers;
        if !self.hosts.iter().any(|host| is(headers, "host", host)) || !matches!(request.method, Some("GET" | "HEAD")) {
            return Err(FORBIDDEN);
        }
        // A request to a proxy has a whole address in place of the path. We are no proxy.
        let path = request.path.and_then(|path| path.strip_prefix('/')).ok_or(NOT_FOUND)?;
        let (token, path) = path.split_once('/').ok_or(NOT_FOUND)?;
        if !are_equal(token.as_bytes(), self.token.as_bytes()) {
            return Err(NOT_FOUND);
        }
        let path = path.split('?').next().unwrap_or_default();
        if self.is_own_page(headers, path) { Ok(path) } else { Err(FORBIDDEN) }
    }

    /// Returns true unless the headers say that a page of another origin asks.
    fn is_own_page(&self, headers: &[Header<'_>], path: &str) -> bool {
        if has(headers, "origin") && !self.hosts.iter().any(|host| is(headers, "origin", &format!("http://{host}"))) {
            return false;
        }
        if !has(headers, "sec-fetch-site") || is(headers, "sec-fetch-site", "same-origin") {
            return true;
        }
        // The browser goes to the start page from the file that `browser.rs` writes, which counts as another site, or
        // from its address bar. It shows the page then, and gives nothing of it to another page.
        let is_visit = is(headers, "sec-fetch-mode", "navigate") && is(headers, "sec-fetch-dest", "document");
        is_visit && (path.is_empty() || is(headers, "sec-fetch-site", "none"))
    }
}

fn has(headers: &[Header<'_>], name: &str) -> bool {
    headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
}

/// Returns true if the request has this header once, with this value.
fn is(headers: &[Header<'_>], name: &str, value: &str) -> bool {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
    values.next() == Some(value.as_bytes()) && values.next().is_none()
}

/// Compares in a time that does not depend on how many bytes are equal.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| std::hint::black_box(all | (one ^ other)));
    one.len() == other.len() && differences == 0
}
