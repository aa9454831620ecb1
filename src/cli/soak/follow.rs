//! The reader that follows a ring from its first event to its end.

use super::workload::is_whole;
use eventring::reader::{Cursor, Descriptor, Followed as Found, Follower, PayloadRead, Reader, Seek, WaitStrategy};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Nothing takes this long: who has not come to an end by then hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What a follower found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followed {
    pub(super) last_seqno: u64,
    pub(super) laps: u64,
    pub(super) read: u64,
    pub(super) lost: u64,
    pub(super) expired: u64,
    pub(super) torn: u64,
    /// Seqnos neither returned nor counted as lost.
    pub(super) unaccounted: u64,
}

/// A follower at work.
pub(super) struct Following(Receiver<Followed>);

/// Starts one on the ring that is at `ring` now.
pub(super) fn start(ring: &Path) -> anyhow::Result<Following> {
    let reader = Reader::open(ring)?;
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let _ = tell.send(follow(&reader));
    });
    Ok(Following(told))
}

impl Following {
    /// What it found, once the ring has ended; `None` if it does not come to an end.
    pub(super) fn end(self) -> Option<Followed> {
        self.0.recv_timeout(PATIENCE).ok()
    }
}

fn follow(reader: &Reader) -> Followed {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let mut follower = Follower::new(cursor, WaitStrategy::Adaptive);
    let mut found = Followed::default();
    let mut buffer = Vec::new();
    loop {
        match follower.next_timeout(Duration::from_secs(1)) {
            Found::Event(event) => found.event(follower.cursor(), &event, &mut buffer),
            Found::Gap(gap) => found.lost += gap.count,
            Found::TimedOut => {}
            Found::Ended => break,
        }
    }
    let info = reader.info();
    found.last_seqno = info.last_seqno;
    found.laps = info.last_seqno / info.geometry.descriptor_capacity();
    found.unaccounted = info.last_seqno.abs_diff(found.read + found.lost);
    found
}

impl Followed {
    /// Judges an event.
    pub(super) fn event(&mut self, cursor: &Cursor, event: &Descriptor, buffer: &mut Vec<u8>) {
        self.read += 1;
        match cursor.payload(event, buffer) {
            PayloadRead::Valid(payload) => self.torn += u64::from(!is_whole(event, payload)),
            PayloadRead::Expired => self.expired += 1,
            PayloadRead::Malformed => self.torn += 1,
        }
    }
}
