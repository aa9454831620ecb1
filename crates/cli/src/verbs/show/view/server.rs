//! The HTTP server, which serves the start page, the UI and the trace to our own page only. Each connection carries one
//! request.

use super::content::{Content, PULSE};
use super::guard::RequestGuard;
use super::session::SharedSession;
use super::ui::{ONLINE, Ui, content_type};
use crate::exit::Failure;
use eventring_door::{Door, Waiting, answer, part};
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::thread::spawn;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::interval;

/// The most connections that have not shown the token yet. If more come, the oldest is closed, so that such connections
/// cannot keep the page's own ones out.
const UNPROVEN_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The time that a connection has to read its answer to the end.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Nothing on the start page comes from elsewhere, and no other page may show it.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                           frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The UI compiles WebAssembly and has scripts and styles in its page. It must not talk to any other server: neither
/// to those that count its users, nor to another program on this machine that claims to be a trace_processor.
const UI_POLICY: &str = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; \
                         base-uri 'self'; form-action 'none'; frame-ancestors 'self'";
/// The headers that all answers have.
const HEADERS: [(&str, &str); 5] = [
    ("connection", "close"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A server on a port of 127.0.0.1.
pub(super) struct ViewServer {
    pub(super) guard: RequestGuard,
    /// The name of the trace: letters, digits, `.`, `_` and `-`.
    title: String,
    pub(super) ui: Ui,
    pub(super) session: SharedSession,
}

/// What is found at a path: its content type, its policy, and itself.
type Found = (&'static str, &'static str, Content);

impl ViewServer {
    /// Starts a server on this port, or on any free one if `port` is 0.
    pub(super) fn start(port: u16, title: String, ui: Ui) -> Result<Arc<Self>, Failure> {
        let cannot = |error: io::Error| {
            let remedy =
                if port == 0 { "is the network of this machine up?" } else { "without --port, a free one is chosen" };
            Failure::io(format!("cannot listen on 127.0.0.1:{port}"), &error).and(remedy)
        };
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            let guard = RequestGuard::new(listener.local_addr()?.port())?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let door = runtime.block_on(async { Door::open(listener, UNPROVEN_MAX) })?;
            Ok((guard, runtime, door))
        };
        let (guard, runtime, door) = listen().map_err(cannot)?;
        let server = Arc::new(Self { guard, title, ui, session: SharedSession::default() });
        let visited = server.clone();
        let visit = move |stream, waiting| visited.clone().visit(stream, waiting);
        spawn(move || runtime.block_on(door.serve(std::future::pending(), Duration::ZERO, visit)));
        Ok(server)
    }

    /// Reads the request of a connection and answers it.
    async fn visit(self: Arc<Self>, mut stream: TcpStream, waiting: Arc<Waiting>) {
        // The answer is over when it was sent, which is later than the end of its content.
        let answered = OnceLock::new();
        let service = service_fn(async |request| {
            let path = self.guard.check(&request).inspect(|_| waiting.let_in());
            let found = path.and_then(|path| self.find(path)).inspect(|(.., content)| {
                let is_page = matches!(content, Content::Alive(..));
                let is_trace = matches!(content, Content::Trace(..)) && *request.method() == Method::GET;
                self.session.lock().count(is_page, true);
                _ = answered.set((is_page, is_trace));
            });
            Ok::<_, Infallible>(response(found))
        });
        let sent = answer(&mut stream, HEAD_BYTES_MAX, service).without_shutdown().await.map(drop);
        if let Some((is_page, is_trace)) = answered.into_inner() {
            let mut session = self.session.lock();
            session.has_fetched |= is_trace && sent.is_ok();
            session.count(is_page, false);
        }
        part(&mut stream, END_LIMIT).await;
    }

    /// Finds what a path names, or returns the status of the answer.
    fn find(self: &Arc<Self>, path: &str) -> Result<Found, StatusCode> {
        let text = |text: &'static str| Content::Bytes(Bytes::from_static(text.as_bytes()));
        let (content, policy) = match path {
            "" => (Content::Bytes(self.page().into()), PAGE_POLICY),
            "page.js" => (text(include_str!("page.js")), ""),
            "page.css" => (text(include_str!("page.css")), ""),
            "alive" => {
                let alive = Content::Alive(self.session.clone(), interval(PULSE), String::new());
                return Ok(("text/event-stream", "", alive));
            }
            // The page asks when it was told that the trace is there.
            _ if path == format!("trace/{}.perfetto-trace", self.title) => {
                (Content::Trace(self.session.lock().trace.clone().ok_or(StatusCode::SERVICE_UNAVAILABLE)?, 0), "")
            }
            _ => {
                let file = path.strip_prefix("ui/").and_then(|name| self.ui.read(name));
                (Content::Bytes(file.ok_or(StatusCode::NOT_FOUND)?.into()), UI_POLICY)
            }
        };
        Ok((content_type(if path.is_empty() { "page.html" } else { path }), policy, content))
    }

    /// Returns the start page. What is put into it has no character that HTML knows.
    fn page(&self) -> String {
        let ui = if self.ui.0.is_none() { ONLINE } else { "" };
        include_str!("page.html").replace("\"UI\"", &format!("\"{ui}\"")).replace("TITLE", &self.title)
    }
}

/// Returns the answer with what was found, or with the status of a refusal.
fn response(found: Result<Found, StatusCode>) -> Response<Content> {
    let (status, (content_type, policy, content)) = match found {
        Ok(found) => (StatusCode::OK, found),
        Err(status) => (status, ("", "", Content::Bytes(Bytes::new()))),
    };
    let mut response = Response::new(content);
    *response.status_mut() = status;
    let own = [("content-type", content_type), ("content-security-policy", policy)];
    for (name, value) in HEADERS.into_iter().chain(own.into_iter().filter(|(_, value)| !value.is_empty())) {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
