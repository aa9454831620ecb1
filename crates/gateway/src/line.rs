//! The connection to a client: messages are written as the socket accepts them, and no thread waits for the socket.

use crate::hub::LongMessageBudget;
use crate::wire::{Wire, discard_input};
use mio::net::TcpStream;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

/// The longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The longest piece of a message. A longer message is written in pieces, so that no buffer grows with it.
pub(crate) const PIECE_BYTES: usize = 32 << 10;
const READ_BYTES: usize = 4 << 10;
/// A client that takes nothing for so long, although something waits for it, is gone.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// The longest time from a close frame to the end of the connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct Line {
    socket: WebSocket<Wire>,
    /// False after the socket had nothing, until it says that it has.
    pub(crate) can_read: bool,
    /// False after the socket took no more, until it says that it does.
    pub(crate) can_write: bool,
    long: Option<Long>,
    /// What the socket had taken when it last took something.
    taken: (u64, Instant),
    closing: Option<Closing>,
}

/// A long message of which a part is written.
#[derive(Debug)]
struct Long {
    rest: Bytes,
    is_begun: bool,
    _room: Option<LongMessageBudget>,
}

#[derive(Debug)]
struct Closing {
    until: Instant,
    is_by_client: bool,
    is_written: bool,
}

impl Line {
    /// Takes a connection, and what came after its handshake.
    pub(crate) fn new(stream: TcpStream, rest: Vec<u8>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(PIECE_BYTES)
            .max_message_size(Some(REQUEST_BYTES_MAX))
            .max_frame_size(Some(REQUEST_BYTES_MAX));
        let wire = Wire { stream, written: 0 };
        let socket = WebSocket::from_partially_read(wire, rest, Role::Server, Some(config));
        Self { socket, can_read: true, can_write: true, long: None, taken: (0, Instant::now()), closing: None }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.socket.get_mut().stream
    }

    /// Returns true if a message can be written. It may have to wait in the buffer, but no further one does.
    pub(crate) fn has_room(&self) -> bool {
        self.can_write && self.long.is_none() && self.closing.is_none()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Returns true if the client has taken nothing for too long.
    pub(crate) fn is_stalled(&mut self, now: Instant) -> bool {
        let written = self.socket.get_ref().written;
        if self.can_write || written != self.taken.0 {
            self.taken = (written, now);
        }
        now.saturating_duration_since(self.taken.1) > STALL_LIMIT
    }

    /// Writes a message, or as much of it as the socket takes.
    pub(crate) fn send(&mut self, text: String, room: Option<LongMessageBudget>) -> Result<(), Error> {
        if text.len() > PIECE_BYTES {
            self.long = Some(Long { rest: text.into(), is_begun: false, _room: room });
            return self.flush();
        }
        let written = self.socket.write(Message::text(text));
        self.wrote(written)
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        while self.can_write
            && let Some(long) = &mut self.long
        {
            let piece = long.rest.split_to(long.rest.len().min(PIECE_BYTES));
            let data = if long.is_begun { Data::Continue } else { Data::Text };
            let is_last = long.rest.is_empty();
            long.is_begun = true;
            if is_last {
                self.long = None;
            }
            let written = self.socket.write(Message::Frame(Frame::message(piece, OpCode::Data(data), is_last)));
            self.wrote(written)?;
        }
        if self.can_write {
            let written = self.socket.flush();
            self.wrote(written)?;
        }
        Ok(())
    }

    /// What the socket does not take stays in the buffer.
    fn wrote(&mut self, written: Result<(), Error>) -> Result<(), Error> {
        match written {
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                self.can_write = false;
                Ok(())
            }
            written => written,
        }
    }

    /// Returns the next message of the client, if it has come.
    pub(crate) fn read(&mut self) -> Result<Option<Message>, Error> {
        if !self.can_read {
            return Ok(None);
        }
        match self.socket.read() {
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                self.can_read = false;
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// The client has said that it closes the connection: says so, too.
    pub(crate) fn is_closed_by_client(&mut self, now: Instant) {
        self.closing = Some(Closing { until: now + CLOSE_LIMIT, is_by_client: true, is_written: false });
    }

    /// Begins to close the connection.
    pub(crate) fn close(&mut self, code: CloseCode, reason: impl Into<Cow<'static, str>>, now: Instant) {
        if self.closing.is_some() {
            return;
        }
        self.long = None;
        let reason: Cow<'static, str> = reason.into();
        let _ = self.socket.close(Some(CloseFrame { code, reason: reason.into_owned().into() }));
        self.closing = Some(Closing { until: now + CLOSE_LIMIT, is_by_client: false, is_written: false });
    }

    /// Goes on with closing. Returns true if the connection is at its end.
    pub(crate) fn is_closed(&mut self, now: Instant) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        if now >= closing.until {
            return true;
        }
        if !closing.is_written {
            match self.socket.flush() {
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(()) if !closing.is_by_client => {
                    closing.is_written = true;
                    let _ = self.socket.get_ref().stream.shutdown(Shutdown::Write);
                }
                _ => return true,
            }
        }
        // What the client still says is thrown away: the system would reset the connection, and the client would not
        // read why.
        !closing.is_by_client && discard_input(&mut self.socket.get_mut().stream)
    }
}
