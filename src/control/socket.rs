//! Sockets of the kind SOCK_SEQPACKET: each packet is one message, and a message may carry a file descriptor.

use super::wire::MESSAGE_BYTES_MAX;
use crate::shm::UninheritedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The number of connections that may wait to be accepted.
const BACKLOG: i32 = 64;
/// The largest number of descriptors that the other side can send with a message. More of them are closed by the
/// kernel.
const DESCRIPTORS_MAX: usize = 4;

/// Result of trying to send or receive.
#[derive(Debug)]
pub(super) enum Tried<T> {
    Done(T),
    /// The call would have to wait.
    NotNow,
    /// The other side has closed the connection, or has ended.
    Gone,
}

/// A received packet.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    /// True if the packet was too long for a message. Then `bytes` is empty.
    pub(super) is_too_long: bool,
    /// The first descriptor that came with the packet.
    pub(super) descriptor: Option<OwnedFd>,
}

/// Makes a socket that waits for connections at this address.
pub(super) fn listen(address: &SocketAddrUnix) -> Result<UninheritedFd, Errno> {
    let socket = UninheritedFd::make(|| socket(flags()))?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Accepts a connection.
pub(super) fn accept(socket: &UninheritedFd) -> Tried<UninheritedFd> {
    match UninheritedFd::make(|| rustix::net::accept_with(socket, flags())) {
        Ok(connection) => Tried::Done(connection),
        Err(Errno::AGAIN) => Tried::NotNow,
        // The client has given up already, or this process has no descriptors left.
        Err(_) => Tried::Gone,
    }
}

/// Connects to the server at this address. If many connections wait to be accepted, waits for its turn, at most for
/// this time, and then returns `AGAIN`.
pub(super) fn connect(address: &SocketAddrUnix, timeout: Duration) -> Result<OwnedFd, Errno> {
    let socket = socket(SocketFlags::CLOEXEC)?;
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Send, Some(left))?;
        match rustix::net::connect(&socket, address) {
            Err(Errno::INTR) => {}
            connected => return connected.map(|()| socket),
        }
    }
}

fn socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}

/// Sends a message. If `descriptor` is there, the message carries it.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Tried<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        return match rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Ok(_) => Tried::Done(()),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => Tried::NotNow,
            Err(_) => Tried::Gone,
        };
    }
}

/// Receives a message. `buffer` must have [`MESSAGE_BYTES_MAX`] bytes. A longer packet is returned as an empty one,
/// which is no message.
pub(super) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Tried<Packet> {
    debug_assert_eq!(buffer.len(), MESSAGE_BYTES_MAX);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            // The other side has closed the connection before it took all messages. The kernel says so once; what the
            // other side has sent before is still there.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            received => break received,
        }
    };
    let received = match received {
        Ok(received) => received,
        Err(Errno::AGAIN) => return Tried::NotNow,
        Err(_) => return Tried::Gone,
    };
    // All descriptors are taken out of the buffer, so that those that are not wanted are closed.
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.by_ref().flatten().next();
    descriptors.flatten().for_each(drop);
    if received.bytes == 0 && descriptor.is_none() {
        // An empty packet looks like the end of the connection. No message is empty, so it may end the connection.
        return Tried::Gone;
    }
    let is_whole = !received.flags.contains(ReturnFlags::TRUNC);
    let bytes = if is_whole { buffer.get(..received.bytes).unwrap_or_default().to_vec() } else { Vec::new() };
    Tried::Done(Packet { bytes, is_too_long: !is_whole, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read as _, Seek as _, Write as _};

    fn pair() -> (OwnedFd, OwnedFd) {
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags(), None).unwrap()
    }

    fn received(socket: &OwnedFd) -> Packet {
        let Tried::Done(packet) = receive(socket, &mut vec![0; MESSAGE_BYTES_MAX]) else { panic!("nothing came") };
        packet
    }

    #[test]
    fn a_descriptor_comes_with_its_message() {
        let (ours, theirs) = pair();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        assert!(matches!(send(&ours, b"first", Some(file.as_fd())), Tried::Done(())));
        assert!(matches!(send(&ours, b"second", None), Tried::Done(())));
        let packet = received(&theirs);
        assert_eq!(packet.bytes, b"first");
        let mut file = File::from(packet.descriptor.unwrap());
        let mut content = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
        let packet = received(&theirs);
        assert_eq!((&packet.bytes[..], packet.descriptor.is_none()), (&b"second"[..], true));
        assert!(matches!(receive(&theirs, &mut vec![0; MESSAGE_BYTES_MAX]), Tried::NotNow));
        drop(ours);
        assert!(matches!(receive(&theirs, &mut vec![0; MESSAGE_BYTES_MAX]), Tried::Gone));
    }

    #[test]
    fn a_packet_that_is_too_long_is_no_message_and_the_next_one_is_whole() {
        let (ours, theirs) = pair();
        assert!(matches!(send(&ours, &vec![7; MESSAGE_BYTES_MAX + 1], None), Tried::Done(())));
        assert!(matches!(send(&ours, b"next", None), Tried::Done(())));
        assert_eq!(received(&theirs).bytes, b"");
        assert_eq!(received(&theirs).bytes, b"next");
    }

    #[test]
    fn descriptors_that_are_not_wanted_are_closed() {
        let (ours, theirs) = pair();
        let (kept, dropped) = (tempfile::tempfile().unwrap(), std::io::pipe().unwrap());
        let fds = [kept.as_fd(), dropped.1.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        rustix::net::sendmsg(&ours, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        let packet = received(&theirs);
        assert!(packet.descriptor.is_some());
        // When no descriptor of the pipe's writing end is left, its reading end is at the end.
        drop(dropped.1);
        assert_eq!(std::io::Read::read(&mut { dropped.0 }, &mut [0_u8; 1]).unwrap(), 0);
    }
}
