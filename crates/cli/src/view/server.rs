//! The HTTP server: the start page, the UI and the trace, for our own page and nobody else. Each connection has a thread
//! and carries one request.

use super::conversion::Conversion;
use super::guard::RequestGuard;
use super::ui::{ONLINE, Ui, content_type};
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep, spawn};
use std::time::{Duration, Instant};

/// The time between two looks at whether the server should end.
const LOOK: Duration = Duration::from_millis(50);
/// The time between two signs of life for a page. If one cannot be sent, the page is closed.
const PULSE: Duration = Duration::from_millis(250);
/// The time for which the page may be away before the server ends. A page that is loaded again is away for a moment.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// The time without a request after which a page has what it needs, with `--once`.
const QUIET: Duration = Duration::from_secs(2);

/// The most connections that have not shown the token yet. If more come, the oldest is closed, so that such connections
/// cannot keep the page's own ones out.
const UNPROVEN_MAX: usize = 64;
/// The time that a connection has to show the token.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after the system could not accept a connection, for example because no descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
const PIECE_BYTES: u64 = 256 << 10;

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

/// A server whose port is taken.
pub(super) struct ViewServer {
    listener: TcpListener,
    guard: RequestGuard,
    conversion: Conversion,
    /// The name of the trace: letters, digits, `.`, `_` and `-`.
    title: String,
    ui: Ui,
    session: Mutex<Session>,
    /// The connections that have not shown the token yet, and when they came, the oldest first.
    unproven: Mutex<VecDeque<(Arc<TcpStream>, Instant)>>,
}

/// What is known of the pages.
#[derive(Default)]
struct Session {
    /// The number of pages that are open.
    pages: i32,
    /// The time at which the last page was closed.
    closed_at: Option<Instant>,
    /// True if the trace was fetched whole.
    has_fetched: bool,
    /// The time of the last request of our own page, and of the end of the last answer.
    asked_at: Option<Instant>,
    /// The number of answers that are being sent.
    answers: i32,
}

/// What is found at a path: its content type, its policy, and itself.
type Found = (&'static str, &'static str, Content);

enum Content {
    Bytes(Vec<u8>),
    Trace(Arc<Mutex<File>>, u64),
    /// The stream that a page keeps open: server-sent events that say how far the conversion is, and comments when
    /// nothing has changed.
    Alive,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ViewServer {
    /// Takes a port of 127.0.0.1; any free one if `port` is 0.
    pub(super) fn bind(port: u16, conversion: Conversion, title: String, ui: Ui) -> Result<Arc<Self>, Failure> {
        let cannot = |error: io::Error| {
            let remedy =
                if port == 0 { "is the network of this machine up?" } else { "without --port, a free one is chosen" };
            Failure::io(format!("cannot listen on 127.0.0.1:{port}"), &error).and(remedy)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(cannot)?;
        let guard = listener.local_addr().and_then(|address| RequestGuard::new(address.port())).map_err(cannot)?;
        let (session, unproven) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { listener, guard, conversion, title, ui, session, unproven }))
    }

    /// Returns the address of the start page, with the token.
    pub(super) fn url(&self) -> String {
        self.guard.url()
    }

    /// Serves until the page is closed or the user interrupts. With `is_once`, only until the trace was fetched. Calls
    /// `look` all the time, and ends with its error.
    pub(super) fn serve(
        self: Arc<Self>,
        is_once: bool,
        interrupt: &Interrupt,
        mut look: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let accepting = self.clone();
        spawn(move || accepting.accept());
        while !interrupt.came() && !lock(&self.session).is_over(is_once) {
            sleep(LOOK);
            while lock(&self.unproven).front().is_some_and(|(_, since)| since.elapsed() >= PATIENCE) {
                self.close_oldest();
            }
            if let Err(error) = look() {
                // The page learns of it first.
                sleep(2 * PULSE);
                return Err(error);
            }
        }
        Ok(())
    }

    fn accept(self: Arc<Self>) {
        loop {
            let accepted = self.listener.accept();
            if accepted.is_err() || lock(&self.unproven).len() >= UNPROVEN_MAX {
                self.close_oldest();
            }
            let Ok((stream, _)) = accepted else {
                sleep(PAUSE);
                continue;
            };
            let (server, stream) = (self.clone(), Arc::new(stream));
            lock(&self.unproven).push_back((stream.clone(), Instant::now()));
            // A connection that has failed, or got no thread, is closed like any other.
            _ = Builder::new().spawn(move || {
                _ = server.answer(&stream);
                server.forget(&stream);
            });
        }
    }

    /// Closes the connection that has taken the longest to show the token.
    fn close_oldest(&self) {
        if let Some((stream, _)) = lock(&self.unproven).pop_front() {
            _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Forgets a connection that has shown the token, or has ended.
    fn forget(&self, stream: &Arc<TcpStream>) {
        lock(&self.unproven).retain(|(unproven, _)| !Arc::ptr_eq(unproven, stream));
    }

    /// Reads a request and answers it.
    fn answer(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let (mut head, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let read = (&**stream).read(&mut piece)?;
            head.extend_from_slice(&piece[..read]);
            if read == 0 || head.len() > HEAD_BYTES_MAX {
                return Ok(());
            }
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut request = httparse::Request::new(&mut headers);
            let path = match request.parse(&head) {
                Ok(httparse::Status::Partial) => continue,
                Ok(httparse::Status::Complete(_)) => self.guard.check(&request),
                Err(_) => Err("400 Bad Request"),
            };
            let found = path.and_then(|path| {
                self.forget(stream);
                self.find(path)
            });
            return match found {
                Err(status) => write!(&**stream, "HTTP/1.1 {status}\r\n{HEADERS}content-length: 0\r\n\r\n"),
                Ok(found) => self.send(stream, found, request.method == Some("HEAD")),
            };
        }
    }

    /// Sends what was found, and counts the answer, or the page, for as long as that takes.
    fn send(&self, stream: &TcpStream, found: Found, is_head: bool) -> io::Result<()> {
        let is_page = matches!(found.2, Content::Alive);
        let count = |session: &mut Session, change: i32| {
            let count = if is_page { &mut session.pages } else { &mut session.answers };
            *count += change;
            let at = if is_page && change < 0 { &mut session.closed_at } else { &mut session.asked_at };
            *at = Some(Instant::now());
        };
        count(&mut lock(&self.session), 1);
        let sent = self.send_counted(stream, found, is_head);
        count(&mut lock(&self.session), -1);
        sent
    }

    fn send_counted(&self, mut out: &TcpStream, found: Found, is_head: bool) -> io::Result<()> {
        let (content_type, policy, content) = found;
        let length = match &content {
            Content::Bytes(bytes) => format!("content-length: {}\r\n", bytes.len()),
            Content::Trace(_, bytes) => format!("content-length: {bytes}\r\n"),
            Content::Alive => String::new(),
        };
        write!(out, "HTTP/1.1 200 OK\r\n{HEADERS}content-type: {content_type}\r\n{length}{policy}\r\n")?;
        match content {
            _ if is_head => {}
            Content::Bytes(bytes) => out.write_all(&bytes)?,
            Content::Trace(file, bytes) => {
                copy(&file, bytes, out)?;
                lock(&self.session).has_fetched = true;
            }
            Content::Alive => {
                let mut last = String::new();
                loop {
                    let event = self.conversion.event();
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
        Ok(match path {
            "" => ("text/html; charset=utf-8", PAGE_POLICY, text(&self.page())),
            "page.js" => ("text/javascript; charset=utf-8", "", text(include_str!("page.js"))),
            "page.css" => ("text/css; charset=utf-8", "", text(include_str!("page.css"))),
            "alive" => ("text/event-stream", "", Content::Alive),
            _ => match (path.split_once('/'), &self.ui) {
                (Some(("trace", name)), _) if name == self.trace_name() => {
                    // The page asks when it was told that the trace is there.
                    let (file, bytes) = self.conversion.trace().ok_or("503 Service Unavailable")?;
                    ("application/octet-stream", "", Content::Trace(file, bytes))
                }
                (Some(("ui", name)), Ui::Folder(folder)) => {
                    (content_type(name), UI_POLICY, Content::Bytes(folder.read(name).ok_or(NOT_FOUND)?))
                }
                _ => return Err(NOT_FOUND),
            },
        })
    }

    fn trace_name(&self) -> String {
        format!("{}.perfetto-trace", self.title)
    }

    /// Returns the start page. What is put into it has no character that HTML knows.
    fn page(&self) -> String {
        let ui = if matches!(self.ui, Ui::Online) { ONLINE } else { "" };
        let page = include_str!("page.html").replace("\"UI\"", &format!("\"{ui}\""));
        page.replace("\"TRACE\"", &format!("\"trace/{}\"", self.trace_name())).replace("TITLE", &self.title)
    }
}

impl Session {
    /// Returns true if the last page was closed a while ago. With `is_once`, also if the trace was fetched and the page
    /// asks for nothing more: the UI loads a few files after the trace.
    fn is_over(&self, is_once: bool) -> bool {
        let is_past = |at: Option<Instant>, time| self.answers == 0 && at.is_some_and(|at| at.elapsed() >= time);
        (self.pages == 0 && is_past(self.closed_at, AWAY_MAX))
            || (is_once && self.has_fetched && is_past(self.asked_at, QUIET))
    }
}

/// Sends the first `bytes` bytes of a file. Several connections may send it at the same time.
fn copy(file: &Mutex<File>, bytes: u64, mut out: &TcpStream) -> io::Result<()> {
    let (mut at, mut piece) = (0, Vec::new());
    while at < bytes {
        piece.resize(usize::try_from(PIECE_BYTES.min(bytes - at)).unwrap_or(0), 0);
        {
            let mut file = lock(file);
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut piece)?;
        }
        out.write_all(&piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}
