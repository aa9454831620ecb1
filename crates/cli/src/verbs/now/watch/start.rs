//! The event with which a watch begins.

use super::rings::Rings;
use crate::args::selection::Time;
use crate::exit::{Exit, Failure};
use eventring::reader::{Reader, Seek};

/// Where to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Oldest,
    Newest,
    Block,
    Seqno(u64),
    /// This many events before the newest.
    Last(u64),
}

/// The value of `--from`. A number is a seqno of a ring, and a time of a capture.
#[derive(Clone, Debug)]
pub(super) struct StartOption {
    text: String,
    start: Option<Start>,
    time: Option<Time>,
}

/// Reads `--from`.
pub(super) fn parse_from(text: &str) -> Result<StartOption, String> {
    let (start, time) = (parse_start(text), Time::parse(text).ok());
    match (start, time) {
        (Err(error), None) => Err(format!("{error}; or, in a capture, a time, as for --to")),
        (start, time) => Ok(StartOption { text: text.to_owned(), start: start.ok(), time }),
    }
}

impl StartOption {
    /// Returns the place in rings.
    pub(super) fn in_rings(&self) -> Result<Start, Failure> {
        self.start.ok_or_else(|| {
            Exit::Usage.failure(format!("--from {}: only a capture can be shown from a time on", self.text))
        })
    }

    /// Returns the time in a capture, or `None` for the beginning.
    pub(super) fn in_capture(&self) -> Result<Option<Time>, Failure> {
        match (self.start, self.time) {
            (Some(Start::Oldest), _) => Ok(None),
            (_, Some(time)) => Ok(Some(time)),
            _ => Exit::Usage.fail(format!("--from {}: expected a time in a capture", self.text)),
        }
    }
}

fn parse_start(text: &str) -> Result<Start, String> {
    match text {
        "oldest" => Ok(Start::Oldest),
        "newest" => Ok(Start::Newest),
        "block" => Ok(Start::Block),
        number => match number.parse() {
            Ok(seqno) if seqno > 0 => Ok(Start::Seqno(seqno)),
            _ => Err("expected oldest, newest, block or a sequence number from 1".into()),
        },
    }
}

impl Start {
    /// Returns the place in a ring at which the watch begins. Without a `start`, this is the oldest event of a ring
    /// that has ended, and the next event of a live ring. `is_new` is true if the ring was made while the watch waited
    /// for it. The watch of a new ring begins at seqno 1 if there is no `start`, or if `start` is `oldest`. If the
    /// first events have been overwritten by now, they count as lost.
    pub(super) fn in_ring(start: Option<Self>, reader: &Reader, is_new: bool) -> Seek {
        match start {
            None | Some(Self::Oldest) if is_new => Seek::Seqno(1),
            Some(Self::Newest) => Seek::Newest,
            Some(Self::Oldest) => Seek::Oldest,
            // `--from block` may be used with several rings. In a ring without blocks, the watch begins at the newest
            // event.
            // The last block of the block table is also right if the newest event belongs to no block.
            Some(Self::Block) => match reader.last_block().map(|block| block.start_seqno()) {
                Some(Some(seqno)) => Seek::Seqno(seqno),
                Some(None) => Seek::Oldest,
                None => reader.ext_words().index_of("block").map_or(Seek::Last(1), Seek::NamedByWord),
            },
            Some(Self::Seqno(seqno)) => Seek::Seqno(seqno),
            Some(Self::Last(count)) => Seek::Last(count),
            None if reader.state().may_be_written() => Seek::Newest,
            None => Seek::Oldest,
        }
    }

    /// Returns an error if this start has no meaning for these rings.
    pub(super) fn check(self, rings: &Rings) -> Result<(), Failure> {
        match self {
            Self::Block => rings.need_exec("--from block"),
            Self::Seqno(_) if rings.has_several() => {
                Exit::Usage.fail("--from SEQNO needs a single ring: each ring has its own numbers")
            }
            _ => Ok(()),
        }
    }
}
