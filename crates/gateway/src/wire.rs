//! A socket that counts the bytes that it accepts.

use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

/// A socket that counts what it takes.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    pub(crate) written: u64,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads and forgets what has come. Returns true at the end of the connection.
pub(crate) fn discard_input(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4096];
    for _ in 0..64 {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
    false
}
