//! Exit codes.

use eventring::files::{ShmError, ShmErrorKind};
use eventring::global::InitError;
use eventring::internal::shm::NotAFile;
use eventring::reader::{LostPages, ReaderError, ReaderErrorKind};
use eventring::recorder::{RecorderError, RecorderErrorKind};
use eventring_capture::{CaptureError, CaptureErrorKind};
use std::{fmt, io};

/// An exit code of the program. Scripts rely on the numbers, so a number never changes its meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    #[default]
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    NotARing = 4,
    WrongVersion = 5,
    Truncated = 6,
    Damaged = 7,
    WrongContentType = 8,
    WrongSchema = 9,
    AlreadyOwned = 10,
    PermissionDenied = 11,
    NoSpace = 12,
    BadConfig = 13,
    Exists = 14,
    Unsupported = 15,
    Lost = 16,
    Unreadable = 17,
    Exceeded = 18,
    NothingFound = 19,
}

/// The meaning of each exit code, as `--help` shows it.
const MEANINGS: [(Exit, &str); 20] = [
    (Exit::Done, "done; also if ended by Ctrl-C, or because the reader of its output has ended"),
    (Exit::Failed, "anything else went wrong"),
    (Exit::Usage, "the command line is wrong"),
    (Exit::NotFound, "there is no such file or ring"),
    (Exit::NotARing, "the file is not an event ring, or not a capture"),
    (Exit::WrongVersion, "the ring has another version"),
    (Exit::Truncated, "the file is shorter than its header says, or its end is missing"),
    (Exit::Damaged, "the file is damaged"),
    (Exit::WrongContentType, "the ring holds events of another content type"),
    (Exit::WrongSchema, "the ring's events have another schema"),
    (Exit::AlreadyOwned, "another process writes this ring"),
    (Exit::PermissionDenied, "permission denied"),
    (Exit::NoSpace, "the disk, the memory or the pool of huge pages is full"),
    (Exit::BadConfig, "the ring's name or configuration string is malformed"),
    (Exit::Exists, "the file exists and is not overwritten"),
    (Exit::Unsupported, "this system cannot do it"),
    (
        Exit::Lost,
        "events were lost (not: overwritten before), or their payloads: with --strict; in `icount`, and if a budget or a limit of `diff` \
         cannot be judged, also without",
    ),
    (Exit::Unreadable, "a page of a ring's file could not be read (an I/O error)"),
    (Exit::Exceeded, "a span has changed more than --fail-if allows, or is not within its budget"),
    (Exit::NothingFound, "`find` has found nothing in the blocks that it read; the others say that they have no hit"),
];

/// Returns the table for `--help`.
pub(super) fn help() -> String {
    let rows = MEANINGS.map(|(exit, meaning)| format!("  {:>2}  {meaning}\n", exit as u8));
    format!("Exit codes:\n{}", rows.concat())
}

/// An error of the program itself, with its code.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
}

impl Failure {
    /// Appends a remedy to the message.
    pub(super) fn and(mut self, remedy: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(remedy);
        self
    }

    /// Returns the failure of writing to a file, with a remedy.
    pub(super) fn writing(output: &std::path::Path, error: &io::Error) -> Self {
        let exit = of_io(error);
        let remedy = match exit {
            Exit::NotFound => "; make its directory first, or choose another path",
            Exit::PermissionDenied => "; let this user write to its directory, or choose another path",
            Exit::NoSpace => "; free some, or choose a place with more",
            _ => "",
        };
        exit.failure(format!("cannot write {}: {error}{remedy}", output.display()))
    }

    /// Returns an error with what it is about before its message.
    pub(super) fn about(what: impl fmt::Display, error: impl Into<anyhow::Error>) -> Self {
        let error = error.into();
        Exit::from_error(&error).failure(format!("{what}: {error}"))
    }

    /// Returns the failure of a system call, with the exit code for its error. `what` is the beginning of the message,
    /// as in "cannot write to stdout".
    pub(super) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        of_io(error).failure(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Exit {
    /// Returns the failure with this exit code and message.
    pub(super) fn failure(self, message: impl Into<String>) -> Failure {
        Failure { exit: self, message: message.into() }
    }

    /// Returns the failure as the result of a function that ends with it.
    pub(super) fn fail<T, E: From<Failure>>(self, message: impl Into<String>) -> Result<T, E> {
        Err(self.failure(message).into())
    }

    /// Returns this exit code, or the other one if all was done.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }

    /// Returns this exit code, or the other one if all was done and `is_other`.
    pub(super) fn or_if(self, is_other: bool, other: Self) -> Self {
        if is_other { self.or(other) } else { self }
    }

    /// Returns the exit code with that number.
    pub(super) fn from_code(code: i32) -> Option<Self> {
        MEANINGS.iter().map(|(exit, _)| *exit).find(|exit| i32::from(*exit as u8) == code)
    }

    /// Returns the exit code for a ring with pages that could not be read.
    pub(super) fn from_lost_pages(lost: LostPages) -> Self {
        match lost {
            LostPages::NoMemory => Self::NoSpace,
            LostPages::Unreadable => Self::Unreadable,
            _ => Self::Truncated,
        }
    }

    /// Returns the exit code for an error. An error is a chain of causes: the first of them that has an exit code
    /// decides.
    pub(super) fn from_error(error: &anyhow::Error) -> Self {
        let mut exits = error.chain().filter_map(|cause| {
            let exit = cause.downcast_ref::<Failure>().map(|failure| failure.exit);
            let exit = exit.or_else(|| of_reader(cause.downcast_ref::<ReaderError>()?.kind()));
            let exit = exit.or_else(|| of_capture(cause.downcast_ref::<CaptureError>()?.kind()));
            let exit = exit.or_else(|| Some(of_recorder(cause.downcast_ref::<RecorderError>()?.kind())));
            let exit = exit.or_else(|| Some(of_recorder(cause.downcast_ref::<InitError>()?.recorder_error()?.kind())));
            let exit = exit.or_else(|| Some(of_shm(cause.downcast_ref::<ShmError>()?.kind())));
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            let exit = exit.or_else(|| of_control(cause.downcast_ref::<eventring::control::ControlError>()?.kind()));
            exit.or_else(|| cause.downcast_ref::<io::Error>().map(of_io))
        });
        exits.next().unwrap_or(Self::Failed)
    }
}

/// Returns the exit code for an error of a server, or `None` if the cause of the error decides about the exit code.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
fn of_control(kind: eventring::control::ControlErrorKind) -> Option<Exit> {
    use eventring::control::ControlErrorKind as Kind;
    Some(match kind {
        Kind::NoServer | Kind::NotFound | Kind::Gone => Exit::NotFound,
        Kind::PermissionDenied => Exit::PermissionDenied,
        Kind::BadDirective => Exit::Usage,
        Kind::Exists => Exit::Exists,
        Kind::Io => return None,
        _ => Exit::Failed,
    })
}

/// The number of the error that a link leads to itself (`ELOOP`).
const LOOP: i32 = 40;

fn of_io(error: &io::Error) -> Exit {
    if NotAFile::is_cause(error) || (cfg!(target_os = "linux") && error.raw_os_error() == Some(LOOP)) {
        return Exit::NotARing;
    }
    match error.kind() {
        // The program that reads our output has ended, as `head` does when it has read enough. This is no failure.
        io::ErrorKind::BrokenPipe => Exit::Done,
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::PermissionDenied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Exit::NoSpace,
        io::ErrorKind::AlreadyExists => Exit::Exists,
        _ => Exit::Failed,
    }
}

/// Returns the exit code for an error of a reader, or `None` if the cause of the error decides about the exit code.
fn of_reader(kind: ReaderErrorKind) -> Option<Exit> {
    Some(match kind {
        ReaderErrorKind::NotFound => Exit::NotFound,
        ReaderErrorKind::BadName => Exit::BadConfig,
        ReaderErrorKind::PermissionDenied => Exit::PermissionDenied,
        ReaderErrorKind::NotARing => Exit::NotARing,
        ReaderErrorKind::WrongVersion => Exit::WrongVersion,
        ReaderErrorKind::BadHeader | ReaderErrorKind::BadSnapshot => Exit::Damaged,
        ReaderErrorKind::Truncated => Exit::Truncated,
        ReaderErrorKind::WrongContentType { .. } => Exit::WrongContentType,
        ReaderErrorKind::WrongSchema { .. } => Exit::WrongSchema,
        ReaderErrorKind::NoSpace => Exit::NoSpace,
        ReaderErrorKind::Unsupported => Exit::Unsupported,
        ReaderErrorKind::Unreadable => Exit::Unreadable,
        ReaderErrorKind::Io => return None,
        _ => Exit::Failed,
    })
}

/// Returns the exit code for an error of a capture, or `None` if the cause of the error decides about the exit code.
fn of_capture(kind: CaptureErrorKind) -> Option<Exit> {
    Some(match kind {
        CaptureErrorKind::NotFound => Exit::NotFound,
        CaptureErrorKind::PermissionDenied => Exit::PermissionDenied,
        CaptureErrorKind::NotACapture => Exit::NotARing,
        CaptureErrorKind::WrongVersion => Exit::WrongVersion,
        CaptureErrorKind::Damaged => Exit::Damaged,
        CaptureErrorKind::NoSpace => Exit::NoSpace,
        CaptureErrorKind::Exists | CaptureErrorKind::NotReplaceable => Exit::Exists,
        CaptureErrorKind::BadOptions => Exit::Usage,
        CaptureErrorKind::NoSpans => Exit::WrongContentType,
        CaptureErrorKind::WrongSchema => Exit::WrongSchema,
        CaptureErrorKind::Ring | CaptureErrorKind::Io => return None,
        _ => Exit::Failed,
    })
}

fn of_recorder(kind: RecorderErrorKind) -> Exit {
    match kind {
        RecorderErrorKind::BadConfig => Exit::BadConfig,
        RecorderErrorKind::AlreadyOwned { .. } => Exit::AlreadyOwned,
        RecorderErrorKind::Occupied => Exit::Exists,
        RecorderErrorKind::NoSpace => Exit::NoSpace,
        RecorderErrorKind::PermissionDenied => Exit::PermissionDenied,
        RecorderErrorKind::NotFound => Exit::NotFound,
        _ => Exit::Failed,
    }
}

fn of_shm(kind: ShmErrorKind) -> Exit {
    match kind {
        ShmErrorKind::NotFound => Exit::NotFound,
        ShmErrorKind::PermissionDenied => Exit::PermissionDenied,
        ShmErrorKind::NotARegularFile => Exit::NotARing,
        ShmErrorKind::Occupied => Exit::Exists,
        ShmErrorKind::AlreadyOwned { .. } => Exit::AlreadyOwned,
        ShmErrorKind::NoSpace | ShmErrorKind::NoHugePages => Exit::NoSpace,
        ShmErrorKind::BadConfig => Exit::BadConfig,
        ShmErrorKind::BadSections => Exit::Damaged,
        ShmErrorKind::Truncated => Exit::Truncated,
        ShmErrorKind::Unsupported => Exit::Unsupported,
        _ => Exit::Failed,
    }
}
