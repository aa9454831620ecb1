//! What the other side of a socket has not read yet.

use std::os::fd::{AsFd, AsRawFd as _};

/// Returns true if the other side of a Unix socket has read everything that was sent to it, or if the kernel does not
/// say.
pub(crate) fn is_all_read(socket: impl AsFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: `bytes` is an int that outlives the call, which is all that this request writes to.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    asked != 0 || bytes == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_sent_is_unread_until_it_is_read() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        assert!(is_all_read(&ours));
        ours.write_all(b"sent").unwrap();
        assert!(!is_all_read(&ours));
        theirs.read_exact(&mut [0; 4]).unwrap();
        assert!(is_all_read(&ours));
    }
}
