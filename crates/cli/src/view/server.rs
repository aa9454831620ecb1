//! The HTTP server: the start page, the UI and the trace, for our own page and nobody else.

use super::bodies::{AliveBody, FileBody, PULSE};
use super::connections::{Door, Proof};
use super::conversion::Conversion;
use super::guard::RequestGuard;
use super::session::Session;
use super::ui::{ONLINE, Ui, content_type};
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// The time between two looks at whether the server should end.
const LOOK: Duration = Duration::from_millis(50);
/// The time that connections have to finish when the server ends, because of the user or the page, or by itself.
const FAREWELL: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Nothing on the start page comes from elsewhere, and no other page may show it.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The UI compiles WebAssembly and has scripts and styles in its page. It must not talk to any other server: neither
/// to those that count its users, nor to another program on this machine that claims to be a trace_processor.
const UI_POLICY: &str = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; \
                         form-action 'none'; frame-ancestors 'self'";

/// The things that the server shows.
pub(super) struct Show {
    pub(super) conversion: Conversion,
    /// The name of the trace: letters, digits, `.`, `_` and `-`.
    pub(super) title: String,
    pub(super) ui: Ui,
}

/// A server whose port is taken, but which serves nothing yet.
pub(super) struct ViewServer {
    listener: TcpListener,
    guard: RequestGuard,
    show: Show,
    session: Session,
}

impl ViewServer {
    /// Takes a port of 127.0.0.1; any free one if `port` is 0.
    pub(super) fn bind(port: u16, show: Show) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            let remedy =
                if port == 0 { "is the network of this machine up?" } else { "without --port, a free one is chosen" };
            Failure::io(format!("cannot listen on 127.0.0.1:{port}"), &error).and(remedy)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let guard = RequestGuard::new(listener.local_addr().map_err(cannot)?.port()).map_err(cannot)?;
        Ok(Self { listener, guard, show, session: Session::default() })
    }

    /// Returns the address of the start page, with the token.
    pub(super) fn url(&self) -> String {
        self.guard.url()
    }

    /// Serves until the page is closed or the user interrupts. With `is_once`, only until the trace was fetched. Calls
    /// `look` all the time, and ends with its error.
    pub(super) fn serve(
        self,
        is_once: bool,
        interrupt: &Interrupt,
        mut look: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let cannot = |error: std::io::Error| Failure::io("cannot serve the trace", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        runtime.block_on(async {
            let door = Door::new(tokio::net::TcpListener::from_std(self.listener).map_err(cannot)?);
            let session = self.session.clone();
            let state = Arc::new((self.guard, self.show, self.session));
            let app = Router::new().fallback(answer).with_state(state).into_make_service_with_connect_info::<Proof>();
            let (ended, told) = tokio::sync::oneshot::channel();
            let serving = axum::serve(door, app).with_graceful_shutdown(async { _ = told.await });
            let serving = tokio::spawn(serving.into_future());
            let mut looked = Ok(());
            while looked.is_ok() && !interrupt.came() && !session.is_over(is_once) {
                tokio::time::sleep(LOOK).await;
                looked = look();
            }
            if looked.is_err() {
                // The page learns of it first.
                tokio::time::sleep(2 * PULSE).await;
            }
            session.end();
            _ = ended.send(());
            // A connection that never finishes does not keep the program.
            match tokio::time::timeout(FAREWELL[usize::from(is_once && looked.is_ok())], serving).await {
                Ok(Ok(served)) => looked.and(served.map_err(|error| cannot(error).into())),
                _ => looked,
            }
        })
    }
}

type Shared = Arc<(RequestGuard, Show, Session)>;

async fn answer(State(shared): State<Shared>, ConnectInfo(proof): ConnectInfo<Proof>, request: Request) -> Response {
    let (guard, show, session) = &*shared;
    let (parts, _) = request.into_parts();
    let path = match guard.check(&parts) {
        Ok(path) => path,
        Err(status) => return finish(empty(status)),
    };
    proof.give();
    session.asked();
    finish(show.answer(path, session).unwrap_or_else(|| empty(StatusCode::NOT_FOUND)))
}

impl Show {
    fn answer(&self, path: &str, session: &Session) -> Option<Response> {
        match path {
            "" => Some(with_policy(bytes("text/html; charset=utf-8", self.page()), PAGE_POLICY)),
            "page.js" => Some(bytes("text/javascript; charset=utf-8", include_str!("page.js"))),
            "page.css" => Some(bytes("text/css; charset=utf-8", include_str!("page.css"))),
            "alive" => Some(stream(
                "text/event-stream",
                Body::new(AliveBody::new(session.open_page(), self.conversion.clone())),
            )),
            _ => match (path.split_once('/')?, &self.ui) {
                (("trace", name), _) if name == self.trace_name() => {
                    // The page asks when it was told that the trace is there.
                    let Some((trace, bytes)) = self.conversion.trace() else {
                        return Some(empty(StatusCode::SERVICE_UNAVAILABLE));
                    };
                    let body = FileBody::new(trace, bytes, true, session.open_answer());
                    Some(file("application/octet-stream", bytes, body))
                }
                (("ui", name), Ui::Folder(folder)) => {
                    let found = folder.file(name)?;
                    let bytes = found.metadata().ok()?.len();
                    let body = FileBody::new(Arc::new(found), bytes, false, session.open_answer());
                    Some(with_policy(file(content_type(name), bytes, body), UI_POLICY))
                }
                _ => None,
            },
        }
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

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn stream(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn bytes(content_type: &'static str, text: impl Into<Body>) -> Response {
    stream(content_type, text.into())
}

fn file(content_type: &'static str, bytes: u64, body: FileBody) -> Response {
    let mut response = stream(content_type, Body::new(body));
    response.headers_mut().insert(CONTENT_LENGTH, bytes.into());
    response
}

fn with_policy(mut response: Response, policy: &'static str) -> Response {
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// Adds the headers that all answers have.
fn finish(mut response: Response) -> Response {
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
