//! The kind of wait of a thread in a system call, by the call's number on x86-64.

use crate::schema::OffState;

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WaitsFor {
    /// A lock, a condition, or another thread.
    Lock,
    /// A file or a device, or a page of memory.
    Io,
    /// Something to come in: a socket, a pipe, an event.
    Input,
    /// A time.
    Time,
    /// Something else.
    Other,
}

/// The calls that wait, by number, with their names.
const CALLS: &[(i32, &str, WaitsFor)] = &[
    (0, "read", WaitsFor::Io),
    (1, "write", WaitsFor::Io),
    (7, "poll", WaitsFor::Input),
    (17, "pread64", WaitsFor::Io),
    (18, "pwrite64", WaitsFor::Io),
    (19, "readv", WaitsFor::Io),
    (20, "writev", WaitsFor::Io),
    (23, "select", WaitsFor::Input),
    (26, "msync", WaitsFor::Io),
    (35, "nanosleep", WaitsFor::Time),
    (40, "sendfile", WaitsFor::Io),
    (42, "connect", WaitsFor::Input),
    (43, "accept", WaitsFor::Input),
    (44, "sendto", WaitsFor::Input),
    (45, "recvfrom", WaitsFor::Input),
    (46, "sendmsg", WaitsFor::Input),
    (47, "recvmsg", WaitsFor::Input),
    (61, "wait4", WaitsFor::Other),
    (65, "semop", WaitsFor::Lock),
    (72, "fcntl", WaitsFor::Lock),
    (73, "flock", WaitsFor::Lock),
    (74, "fsync", WaitsFor::Io),
    (75, "fdatasync", WaitsFor::Io),
    (162, "sync", WaitsFor::Io),
    (202, "futex", WaitsFor::Lock),
    (220, "semtimedop", WaitsFor::Lock),
    (230, "clock_nanosleep", WaitsFor::Time),
    (232, "epoll_wait", WaitsFor::Input),
    (257, "openat", WaitsFor::Io),
    (270, "pselect6", WaitsFor::Input),
    (271, "ppoll", WaitsFor::Input),
    (277, "sync_file_range", WaitsFor::Io),
    (281, "epoll_pwait", WaitsFor::Input),
    (288, "accept4", WaitsFor::Input),
    (295, "preadv", WaitsFor::Io),
    (296, "pwritev", WaitsFor::Io),
    (326, "copy_file_range", WaitsFor::Io),
    (426, "io_uring_enter", WaitsFor::Io),
    (449, "futex_waitv", WaitsFor::Lock),
];

/// Returns what a thread waits for. `in_none` is true if it is known to be in no system call.
pub(crate) fn waits_for(syscall: Option<i32>, in_none: bool, state: OffState) -> WaitsFor {
    let known = syscall.and_then(|number| CALLS.iter().find(|(known, ..)| *known == number));
    /// `read`, `write`, `readv`, `writev`: of a file or of a pipe or socket.
    const STREAMS: [i32; 4] = [0, 1, 19, 20];
    match (known, state) {
        // Who waits for a file or device is not woken by signals.
        (Some((number, ..)), OffState::Sleeping) if STREAMS.contains(number) => WaitsFor::Input,
        (Some((_, _, what)), _) => *what,
        // A page that must be read, or memory that is not there.
        (None, OffState::Uninterruptible) => WaitsFor::Io,
        (None, _) if in_none => WaitsFor::Io,
        (None, _) => WaitsFor::Other,
    }
}

/// Returns the name of a system call.
pub(crate) fn name_of(number: i32) -> String {
    let known = CALLS.iter().find(|(known, ..)| *known == number);
    known.map_or_else(|| format!("system call {number}"), |(_, name, _)| (*name).to_owned())
}
