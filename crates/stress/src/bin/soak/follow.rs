//! The reader that follows one ring from its first event to its end.

use crate::Result;
use crate::workload::is_whole;
use eventring::reader::{Cursor, Descriptor, Followed, Follower, PayloadRead, Reader, Seek, WaitStrategy};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest time that a reader may need to end after its writer has ended. A reader that needs longer counts as
/// hung.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Counts of a follower.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FollowCounts {
    pub(crate) last_seqno: u64,
    pub(crate) laps: u64,
    pub(crate) read: u64,
    pub(crate) lost: u64,
    pub(crate) expired: u64,
    pub(crate) torn: u64,
    /// Seqnos that were neither read nor counted as lost.
    pub(crate) unaccounted: u64,
}

/// A thread that follows a ring, or the shards of a recorder.
pub(crate) struct FollowerThread(Receiver<FollowCounts>);

/// Starts a follower on the ring that is at `ring` now.
pub(crate) fn start(ring: &Path) -> Result<FollowerThread> {
    let reader = Reader::open(ring)?;
    Ok(FollowerThread::spawn(move || follow(&reader)))
}

impl FollowerThread {
    /// Runs `follow` on a new thread.
    pub(crate) fn spawn(follow: impl FnOnce() -> FollowCounts + Send + 'static) -> Self {
        let (sender, counts) = channel();
        std::thread::spawn(move || {
            let _ = sender.send(follow());
        });
        Self(counts)
    }

    /// Waits for the end of the follower and returns its counts, or `None` if the follower hangs.
    pub(crate) fn end(self) -> Option<FollowCounts> {
        self.0.recv_timeout(TIMEOUT).ok()
    }
}

/// Follows a ring to its end.
pub(crate) fn follow(reader: &Reader) -> FollowCounts {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let mut follower = Follower::new(cursor, WaitStrategy::Adaptive);
    let mut counts = FollowCounts::default();
    let mut buffer = Vec::new();
    loop {
        match follower.next_timeout(Duration::from_secs(1)) {
            Followed::Event(event) => counts.add(follower.cursor(), &event, &mut buffer),
            Followed::Gap(gap) => counts.lost += gap.count,
            Followed::TimedOut => {}
            Followed::Ended => break,
        }
    }
    let info = reader.info();
    counts.last_seqno = info.last_seqno;
    counts.laps = info.last_seqno / info.geometry.descriptor_capacity();
    counts.unaccounted = info.last_seqno.abs_diff(counts.read + counts.lost);
    counts
}

impl FollowCounts {
    /// Checks an event and counts it.
    pub(crate) fn add(&mut self, cursor: &Cursor, event: &Descriptor, buffer: &mut Vec<u8>) {
        self.read += 1;
        match cursor.payload(event, buffer) {
            PayloadRead::Valid(payload) => self.torn += u64::from(!is_whole(event, payload)),
            PayloadRead::Expired => self.expired += 1,
            PayloadRead::Malformed => self.torn += 1,
        }
    }
}
