//! Where a watch begins.

use super::rings::Rings;
use crate::cli::exit::{Exit, Failure};
use eventring::reader::{Reader, RingState, Seek};

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

/// Reads `--from`.
pub(super) fn parse_start(text: &str) -> Result<Start, String> {
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
    /// Returns where to begin in a ring. If the user gave no `start`, a ring that has ended begins with its oldest
    /// event, and a live ring with its next event. If `is_new` is set, the ring was made while the watch waited for it:
    /// the watch then accounts for all events since the first, and events that the ring has overwritten already are a
    /// loss.
    pub(super) fn in_ring(start: Option<Self>, reader: &Reader, is_new: bool) -> Seek {
        match start {
            None | Some(Self::Oldest) if is_new => Seek::Seqno(1),
            Some(Self::Newest) => Seek::Newest,
            Some(Self::Oldest) => Seek::Oldest,
            // `--from block` may name several rings. A ring whose events name no block begins at its newest event.
            Some(Self::Block) => reader.ext_words().index_of("block").map_or(Seek::Last(1), Seek::NamedByWord),
            Some(Self::Seqno(seqno)) => Seek::Seqno(seqno),
            Some(Self::Last(count)) => Seek::Last(count),
            None if matches!(reader.state(), RingState::Live | RingState::Unknown) => Seek::Newest,
            None => Seek::Oldest,
        }
    }

    /// Returns an error if this start has no meaning for these rings.
    pub(super) fn check(self, rings: &Rings) -> Result<(), Failure> {
        match self {
            Self::Block => rings.need_exec("--from block"),
            Self::Seqno(_) if rings.has_several() => {
                let message = "--from SEQNO needs a single ring: each ring has its own numbers";
                Err(Failure::new(Exit::Usage, message))
            }
            _ => Ok(()),
        }
    }
}
