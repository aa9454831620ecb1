//! The seqnos at which a capture begins in rings that were captured before.

use crate::format::identity::RingIdentity;
use crate::format::ring::CapturedRing;
use crate::read::file::CaptureFile;
use eventring::internal::shm;
use eventring::reader::{OpenedShards, Reader};
use std::collections::HashMap;

/// The seqnos at which a capture begins in rings that were captured before, and the host that batches name.
#[derive(Clone, Debug, Default)]
pub struct BatchStart {
    /// `None` if the capture is no capture into batches.
    pub(crate) host: Option<String>,
    pub(crate) next_seqnos: HashMap<RingIdentity, u64>,
    /// The number of the first file; 0 for the usual one.
    pub(crate) part: u32,
    /// True if the last batch has said that nothing follows it.
    pub has_ended: bool,
    /// The only ring, or the shard 0 of the only recorder, that is captured; `None` if there may be several. It is the
    /// first; what comes after it is only read, for the spans in which its events were recorded.
    recorder: Option<RingIdentity>,
    /// The shards of this recorder that earlier captures have opened.
    pub(crate) opened: Option<OpenedShards>,
}

impl BatchStart {
    /// Makes the start of a capture that follows no other.
    pub fn of_host(host: &str) -> Self {
        Self { host: Some(host.to_owned()), ..Self::default() }
    }

    /// Makes the start of the first of several captures of one recorder. `shard0` is its ring, or its shard 0. Shards
    /// that one of these captures has opened stay open for the others.
    pub fn of_recorder(host: &str, shard0: &Reader) -> Self {
        let recorder = Some(RingIdentity::of_reader(host, shard0));
        Self { recorder, opened: Some(OpenedShards::default()), ..Self::of_host(host) }
    }

    /// Returns true if it is one of [`Self::of_recorder`].
    pub(crate) fn is_of_one_recorder(&self) -> bool {
        self.recorder.is_some()
    }

    /// Does some work before the capture begins, and opens the shards that the recorder has meanwhile. `shard0` is that
    /// of [`Self::of_recorder`].
    pub fn open_shards_during<T>(&self, shard0: &Reader, work: impl FnOnce() -> T) -> T {
        match &self.opened {
            Some(opened) => opened.open_during(shard0, work),
            None => work(),
        }
    }

    /// Returns true if the batch is of the recorder of [`Self::of_recorder`]. Each batch describes its shard 0.
    pub fn is_recorder_of(&self, batch: &CaptureFile) -> bool {
        batch.rings().iter().any(|ring| self.recorder.as_ref() == Some(&RingIdentity::new(ring)))
    }

    /// Returns the start of a capture of the same recorder that follows no other.
    pub fn of_no_ring(&self) -> Self {
        let Self { host, recorder, opened, .. } = self.clone();
        Self { host, recorder, opened, ..Self::default() }
    }

    /// Begins where a batch ends.
    pub fn after(&mut self, batch: &CaptureFile) {
        self.part = batch.part().saturating_add(1);
        self.has_ended = batch.end().is_some_and(|end| end.reason.is_final());
        self.next_seqnos.extend(next_seqnos_after(batch));
    }

    /// Makes it the start of the next files of a rotation set, from this number, with other rings.
    pub(crate) fn go_on_at(&mut self, part: u32) {
        self.next_seqnos.clear();
        self.part = part;
    }

    /// Adds what an older batch says: its rings begin where it ends, unless they are known to have come further.
    pub fn after_older(&mut self, batch: &CaptureFile) {
        for (ring, next_seqno) in next_seqnos_after(batch) {
            // A ring of the published system does not say when it was made. One with fewer events may be a newer one.
            let is_known_again = ring.created_epoch_nanos != 0;
            let next = self.next_seqnos.entry(ring).or_insert(next_seqno);
            if is_known_again {
                *next = next_seqno.max(*next);
            }
        }
    }

    /// Returns true if both begin at the same seqnos in all rings.
    pub fn agrees(&self, other: &Self) -> bool {
        let next = |start: &Self, ring| start.next_of(ring).unwrap_or(1);
        let mut rings = self.next_seqnos.keys().chain(other.next_seqnos.keys());
        rings.all(|ring| next(self, ring) == next(other, ring))
    }

    /// Returns the next seqno of a ring, if it was captured before.
    fn next_of(&self, ring: &RingIdentity) -> Option<u64> {
        self.next_seqnos.get(ring).copied()
    }

    /// Returns the next seqno of the ring, or shard 0, of [`Self::of_recorder`], if it was captured before.
    pub fn next_of_recorder(&self) -> Option<u64> {
        self.recorder.as_ref().and_then(|recorder| self.next_of(recorder))
    }

    /// Returns the time at which a shard was made that cannot be opened now, and its next seqno, if the shard was
    /// captured before. `described` has another time, because only the shard itself has its own.
    pub(crate) fn of_missed_shard(&self, described: &CapturedRing) -> Option<(u64, u64)> {
        let is_it = |known: &RingIdentity| {
            let RingIdentity { host, name, process_key, created_epoch_nanos: _ } = known;
            (host, name, process_key) == (&described.host, &described.name, &described.process_key)
        };
        let known = self.next_seqnos.iter().filter(|(known, _)| is_it(known));
        known.map(|(known, next)| (known.created_epoch_nanos, *next)).max()
    }

    /// Returns where the capture begins in a ring, if it was captured before.
    pub(crate) fn next_seqno(&self, reader: &Reader, last_seqno: u64) -> Option<u64> {
        let next = self.next_of(&RingIdentity::of_reader(self.host.as_ref()?, reader))?;
        // A ring of the published system does not say when it was made. If it has handed out fewer seqnos, it is
        // another ring under the same name.
        (next <= last_seqno.saturating_add(1)).then_some(next)
    }
}

/// Returns the seqno that follows a batch, for each of its rings.
pub(crate) fn next_seqnos_after(batch: &CaptureFile) -> impl Iterator<Item = (RingIdentity, u64)> {
    batch.rings().iter().enumerate().map(|(index, ring)| {
        let of_end = batch.end().and_then(|end| end.stats.rings.get(index)).map(|stats| stats.last_seqno);
        // A file that nobody has ended says with its blocks how far it has come.
        let of_blocks = || batch.last_seqno_of(index as u32).unwrap_or(ring.first_seqno.saturating_sub(1));
        (RingIdentity::new(ring), of_end.unwrap_or_else(of_blocks).saturating_add(1))
    })
}

/// Returns the system's name of this host.
pub fn host_name() -> String {
    match shm::host_name() {
        name if name.is_empty() => "host".to_owned(),
        name => name,
    }
}
