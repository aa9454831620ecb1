//! The server's side of HTTP, as far as a test needs it.

use crate::fixtures::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

/// Reads a request with its body. Returns its head, in lower case.
pub fn read_request(stream: &TcpStream) -> String {
    read_whole_request(stream).0
}

/// Reads a request. Returns its head, in lower case, and its body.
pub fn read_whole_request(stream: impl Read) -> (String, Vec<u8>) {
    let mut request = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        request.read_line(&mut line).unwrap();
        line.make_ascii_lowercase();
        if let Some(of) = line.strip_prefix("content-length:") {
            length = of.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).unwrap();
    (head, body)
}

/// A connection, over which HTTP is spoken.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A request: its head, in lower case, and its body.
type Request = (String, Vec<u8>);

/// A collector that keeps the requests which it gets.
pub struct Collector {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    /// Starts a collector that takes everything.
    pub fn start() -> Self {
        Self::start_with(|_| "200 OK".to_owned())
    }

    /// Starts a collector. `answer` returns the status for a request, of which it gets the head; further lines of the
    /// answer's head may follow the status.
    pub fn start_with(answer: impl FnMut(&str) -> String + Send + 'static) -> Self {
        Self::start_over(|stream| Some(Box::new(stream)), answer)
    }

    /// Starts a collector that speaks HTTP over what `wrap` makes of a connection. There is no request if it returns
    /// `None`.
    pub fn start_over(
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + 'static,
        mut answer: impl FnMut(&str) -> String + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let kept = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(mut stream) = wrap(stream.unwrap()) else { continue };
                let request = read_whole_request(&mut stream);
                let head = request.0.clone();
                kept.lock().unwrap().push(request);
                let status = answer(&head);
                // A forwarder that has ended does not read the answer.
                let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.flush();
            }
        });
        Self { port, requests }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address for `--to`.
    pub fn address(&self) -> String {
        format!("otlp://127.0.0.1:{}", self.port)
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Returns the requests so far.
    pub fn taken(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}
