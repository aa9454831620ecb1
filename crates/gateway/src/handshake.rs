//! The answer to the first request of a connection.

use tungstenite::handshake::machine::TryParse as _;
use tungstenite::handshake::server::{Request, create_response, write_response};

/// The longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 << 10;

/// What is answered to a request.
pub(crate) enum Answer {
    Accepted(Vec<u8>),
    /// A status, and a sentence.
    Refused(&'static str, &'static str),
}

/// Returns the answer to a request. Web pages may connect if their origin is one of these.
pub(crate) fn answer(received: &[u8], allowed: &[String]) -> Answer {
    const NOT_A_WEBSOCKET: Answer = Answer::Refused(
        "426 Upgrade Required",
        "Here are WebSockets only: connect to ws:// and this address, and send eth_subscribe.",
    );
    let Some(head) = head_len(received) else {
        return Answer::Refused("400 Bad Request", "The request has more than 8,192 bytes before its end.");
    };
    let request = match Request::try_parse(&received[..head]) {
        Ok(Some((_, request))) => request,
        Err(tungstenite::Error::Protocol(_)) => return NOT_A_WEBSOCKET,
        _ => return Answer::Refused("400 Bad Request", "The request is not HTTP/1.1."),
    };
    let Ok(response) = create_response(&request) else { return NOT_A_WEBSOCKET };
    let is_named = |origin: &str| {
        allowed.iter().any(|allowed| allowed == "*" || allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    };
    let mut origins = request.headers().get_all("Origin").iter();
    if !origins.all(|origin| origin.to_str().is_ok_and(is_named)) {
        let why = "Web pages of this origin may not connect: --allow-origin of the gateway names those that may.";
        return Answer::Refused("403 Forbidden", why);
    }
    let mut bytes = Vec::new();
    match write_response(&mut bytes, &response) {
        Ok(()) => Answer::Accepted(bytes),
        Err(_) => NOT_A_WEBSOCKET,
    }
}

/// Returns the length of a request up to the empty line, if that has come.
pub(crate) fn head_len(received: &[u8]) -> Option<usize> {
    received.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}
