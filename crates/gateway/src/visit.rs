//! A connection, from its request to its end.

use crate::client::Client;
use crate::hub::{ClientSlot, Hub, client_slot};
use eventring_door::{Waiting, part};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, ORIGIN, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// The longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The number of clients at a time. Further ones are refused.
const CLIENTS_MAX: usize = 1000;
/// The time that a connection has to read why it is refused.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

type Refusal = (StatusCode, &'static str);

/// Answers the request of a connection, and lets it be served where clients are if it has become one. Web pages may connect if their origin
/// is one of these.
pub(crate) async fn visit(
    mut stream: TcpStream,
    waiting: Arc<Waiting>,
    hub: Arc<Hub>,
    origins: Arc<[String]>,
    clients: Handle,
) {
    let slot = OnceLock::new();
    let service = service_fn(async |request| {
        let answer = accept(&request, &hub, &origins).map(|(response, taken)| {
            waiting.let_in();
            _ = slot.set(taken);
            response
        });
        Ok::<_, Infallible>(answer.unwrap_or_else(|why| refused(why, &hub)))
    });
    let answered = eventring_door::answer(&mut stream, REQUEST_BYTES_MAX, service).without_shutdown().await;
    let rest = answered.map(|parts| parts.read_buf).unwrap_or_default();
    let Some(slot) = slot.into_inner() else { return part(&mut stream, REFUSAL_TIMEOUT).await };
    if let Ok(stream) = stream.into_std() {
        _ = clients.spawn(Client::serve(stream, rest, hub, slot)).await;
    }
}

/// Returns the answer to a WebSocket's handshake, and the right to be a client.
fn accept(
    request: &Request<Incoming>,
    hub: &Arc<Hub>,
    allowed: &[String],
) -> Result<(Response<String>, ClientSlot), Refusal> {
    let response = create_response_with_body(request, String::new).map_err(|_| {
        let why = "Here are WebSockets only: connect to ws:// and this address, and send eth_subscribe.";
        (StatusCode::UPGRADE_REQUIRED, why)
    })?;
    let is_named = |origin: &str| {
        allowed.iter().any(|allowed| allowed == "*" || allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    };
    let mut origins = request.headers().get_all(ORIGIN).iter();
    if !origins.all(|origin| origin.to_str().is_ok_and(is_named)) {
        let why = "Web pages of this origin may not connect: --allow-origin of the gateway names those that may.";
        return Err((StatusCode::FORBIDDEN, why));
    }
    let full = (StatusCode::SERVICE_UNAVAILABLE, "There are 1,000 clients already: try later.");
    Ok((response, client_slot(hub, CLIENTS_MAX).ok_or(full)?))
}

fn refused((status, why): Refusal, hub: &Hub) -> Response<String> {
    hub.refused.fetch_add(u64::from(status != StatusCode::UPGRADE_REQUIRED), Ordering::Relaxed);
    let mut response = Response::new(format!("{why}\n"));
    *response.status_mut() = status;
    for (name, value) in [(UPGRADE, "websocket"), (CONNECTION, "close"), (CONTENT_TYPE, "text/plain")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
