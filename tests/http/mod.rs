//! The server's side of HTTP, as far as a test needs it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

/// Reads a request with its body. Returns its head, in lower case.
pub fn read_request(stream: &TcpStream) -> String {
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
    request.read_exact(&mut vec![0; length]).unwrap();
    head
}
