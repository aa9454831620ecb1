//! The HTTP server, which serves the start page, the UI and the trace to our own page only. Each connection has a
//! thread and carries one request.

use super::guard::RequestGuard;
use super::session::Session;
use super::trace::ShownTrace;
use super::ui::{ONLINE, Ui, content_type};
use crate::exit::Failure;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep, spawn};
use std::time::{Duration, Instant};

/// The time between two signs of life for a page. If one cannot be sent, the page is closed.
pub(super) const PULSE: Duration = Duration::from_millis(250);
/// The most connections that have not shown the token yet. If more come, the oldest is closed, so that such connections
/// cannot keep the page's own ones out.
const UNPROVEN_MAX: usize = 64;
/// The time that a connection has to show the token.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after the system could not accept a connection, for example because no descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);
const HEAD_BYTES_MAX: usize = 64 << 10;
const PIECE_BYTES: usize = 256 << 10;

pub(super) const FORBIDDEN: &str = "403 Forbidden";
pub(super) const NOT_FOUND: &str = "404 Not Found";

/// Nothing on the start page comes from elsewhere, and no other page may show it.
const PAGE_POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
                           connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'\r\n";
/// The UI compiles WebAssembly and has scripts and styles in its page. It must not talk to any other server: neither
/// to those that count its users, nor to another program on this machine that claims to be a trace_processor.
const UI_POLICY: &str = "content-security-policy: default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; \
                         object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'\r\n";
/// The headers that all answers have.
const HEADERS: &str = "connection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
                       x-content-type-options: nosniff\r\ncross-origin-resource-policy: same-origin\r\n";

/// A server on a port of 127.0.0.1.
pub(super) struct ViewServer {
    listener: TcpListener,
    pub(super) guard: RequestGuard,
    /// The name of the trace: letters, digits, `.`, `_` and `-`.
    title: String,
    pub(super) ui: Ui,
    session: Mutex<Session>,
}

/// What is found at a path: its content type, its policy, and itself.
type Found = (&'static str, &'static str, Content);

enum Content {
    Bytes(Vec<u8>),
    Trace(Arc<ShownTrace>),
    /// The stream that a page keeps open: server-sent events that say how far the conversion is, and comments when
    /// nothing has changed.
    Alive,
}

impl ViewServer {
    /// Starts a server on this port, or on any free one if `port` is 0.
    pub(super) fn start(port: u16, title: String, ui: Ui) -> Result<Arc<Self>, Failure> {
        let cannot = |error: io::Error| {
            let remedy =
                if port == 0 { "is the network of this machine up?" } else { "without --port, a free one is chosen" };
            Failure::io(format!("cannot listen on 127.0.0.1:{port}"), &error).and(remedy)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(cannot)?;
        let guard = listener.local_addr().and_then(|address| RequestGuard::new(address.port())).map_err(cannot)?;
        let server = Arc::new(Self { listener, guard, title, ui, session: Mutex::new(Session::default()) });
        let accepting = server.clone();
        spawn(move || accepting.accept());
        Ok(server)
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>) {
        loop {
            let accepted = self.listener.accept();
            let mut session = self.session();
            if (accepted.is_err() || session.unproven.len() >= UNPROVEN_MAX)
                && let Some(oldest) = session.unproven.pop_front()
            {
                _ = oldest.shutdown(Shutdown::Both);
            }
            let Ok((stream, _)) = accepted else {
                drop(session);
                sleep(PAUSE);
                continue;
            };
            let (server, stream) = (self.clone(), Arc::new(stream));
            session.unproven.push_back(stream.clone());
            // A connection that has failed is closed. One that got no thread is closed when others have come.
            _ = Builder::new().spawn(move || {
                _ = server.answer(&stream);
                server.forget(&stream);
            });
        }
    }

    /// Forgets a connection that has shown the token, or has ended.
    fn forget(&self, stream: &Arc<TcpStream>) {
        self.session().unproven.retain(|unproven| !Arc::ptr_eq(unproven, stream));
    }

    /// Reads a request and answers it.
    fn answer(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let (mut head, mut piece, begin) = (Vec::new(), [0; 4096], Instant::now());
        loop {
            // A time of 0 is an error, which closes the connection.
            stream.set_read_timeout(Some(TIMEOUT.saturating_sub(begin.elapsed())))?;
            let read = (&**stream).read(&mut piece)?;
            head.extend_from_slice(&piece[..read]);
            if read == 0 || head.len() > HEAD_BYTES_MAX {
                return Ok(());
            }
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            let path = match request.parse(&head) {
                Ok(httparse::Status::Partial) => continue,
                Ok(httparse::Status::Complete(_)) => self.guard.check(&request).inspect(|_| self.forget(stream)),
                Err(_) => Err("400 Bad Request"),
            };
            let found = match path.and_then(|path| self.find(path)) {
                Ok(found) => found,
                Err(status) => return write!(&**stream, "HTTP/1.1 {status}\r\n{HEADERS}content-length: 0\r\n\r\n"),
            };
            let is_page = matches!(found.2, Content::Alive);
            self.session().count(is_page, true);
            let sent = self.send(stream, found, request.method == Some("HEAD"));
            self.session().count(is_page, false);
            return sent;
        }
    }

    fn send(&self, mut out: &TcpStream, (content_type, policy, content): Found, is_head: bool) -> io::Result<()> {
        let length = match &content {
            Content::Bytes(bytes) => format!("content-length: {}\r\n", bytes.len()),
            Content::Trace(trace) => format!("content-length: {}\r\n", trace.bytes),
            Content::Alive => String::new(),
        };
        write!(out, "HTTP/1.1 200 OK\r\n{HEADERS}content-type: {content_type}\r\n{length}{policy}\r\n")?;
        match content {
            _ if is_head => {}
            Content::Bytes(bytes) => out.write_all(&bytes)?,
            Content::Trace(trace) => {
                let (mut at, mut piece) = (0, vec![0; PIECE_BYTES]);
                while let read @ 1.. = trace.read_at(at, &mut piece)? {
                    out.write_all(&piece[..read])?;
                    at += read as u64;
                }
                self.session().has_fetched = true;
            }
            Content::Alive => {
                let mut last = String::new();
                loop {
                    let event = self.session().event();
                    out.write_all(if event == last { b":\n" } else { event.as_bytes() })?;
                    last = event;
                    sleep(PULSE);
                }
            }
        }
        Ok(())
    }

    /// Finds what a path names, or returns the status of the answer.
    fn find(&self, path: &str) -> Result<Found, &'static str> {
        let text = |text: &str| Content::Bytes(text.as_bytes().to_vec());
        let (content, policy) = match path {
            "" => (text(&self.page()), PAGE_POLICY),
            "page.js" => (text(include_str!("page.js")), ""),
            "page.css" => (text(include_str!("page.css")), ""),
            "alive" => return Ok(("text/event-stream", "", Content::Alive)),
            // The page asks when it was told that the trace is there.
            _ if path == format!("trace/{}.perfetto-trace", self.title) => {
                (Content::Trace(self.session().trace.clone().ok_or("503 Service Unavailable")?), "")
            }
            _ => {
                let file = path.strip_prefix("ui/").and_then(|name| self.ui.read(name));
                (Content::Bytes(file.ok_or(NOT_FOUND)?), UI_POLICY)
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
