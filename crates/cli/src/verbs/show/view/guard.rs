//! The rules about which requests the server accepts.
//!
//! Every program and web page on this machine can send requests to a port of 127.0.0.1. TCP does not show which user
//! sent a request. So a request must have a secret token.
//!
//! A page of another origin can only lead the browser to the start page. The server checks:
//!
//! - **Token**: other users, and pages of another origin, do not know it.
//! - **Host**: if the name of a hostile page leads to 127.0.0.1 (DNS rebinding), the browser sends that name.
//! - **Origin** and **Sec-Fetch-Site** show whether a page of another origin sent the request.

use hyper::{HeaderMap, Method, Request, StatusCode};

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
    pub(super) fn check<'r, B>(&self, request: &'r Request<B>) -> Result<&'r str, StatusCode> {
        let header = |name| value(request.headers(), name);
        let is_host = |name: &str| self.hosts.iter().any(|host| host == name);
        if !header("host").is_some_and(is_host) || ![Method::GET, Method::HEAD].contains(request.method()) {
            return Err(StatusCode::FORBIDDEN);
        }
        // A request to a proxy has a whole address in place of the path. We are no proxy.
        let path = request.uri().path().strip_prefix('/').filter(|_| request.uri().authority().is_none());
        let (token, path) = path.and_then(|path| path.split_once('/')).ok_or(StatusCode::NOT_FOUND)?;
        if !are_equal(token.as_bytes(), self.token.as_bytes()) {
            return Err(StatusCode::NOT_FOUND);
        }
        // A page of another origin must not ask.
        let is_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_host);
        let is_own = match header("sec-fetch-site") {
            None | Some("same-origin") => true,
            // The browser goes to the start page from the file that `browser.rs` writes, which counts as another site,
            // or from its address bar. It shows the page then, and gives nothing of it to another page.
            Some(site) => {
                let is_visit =
                    [header("sec-fetch-mode"), header("sec-fetch-dest")] == [Some("navigate"), Some("document")];
                is_visit && (path.is_empty() || site == "none")
            }
        };
        if is_own && header("origin").is_none_or(is_origin) { Ok(path) } else { Err(StatusCode::FORBIDDEN) }
    }
}

/// Returns the value of a header. The value of one that is there several times is no text, and fits nothing.
fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    Some(if values.next().is_none() { value.to_str().unwrap_or_default() } else { "" })
}

/// Compares in a time that does not depend on how many bytes are equal.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| std::hint::black_box(all | (one ^ other)));
    one.len() == other.len() && differences == 0
}
