//! The process and user on the other side of a connection.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Returns the process id and the user of the other side of a Unix socket, as they were when the connection was made.
/// The process id is 0 if the process is in a pid namespace that this process does not see. (rustix has no value for
/// such a process.)
///
/// # Errors
/// Returns an error if the descriptor is no socket.
pub(crate) fn process_and_user(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `found` has `bytes` bytes, and the kernel writes at most that many. Any bytes are a `ucred`. Both outlive
    // the call.
    let asked =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut bytes) };
    if asked == 0 { Ok((found.pid.cast_unsigned(), found.uid)) } else { Err(io::Error::last_os_error()) }
}

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
    fn the_other_side_of_a_pair_is_this_process() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(process_and_user(&ours).unwrap(), (std::process::id(), user));
        assert!(process_and_user(std::fs::File::open("/dev/null").unwrap()).is_err());
    }

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
