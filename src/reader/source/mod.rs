//! The mapped file that all handles of one opened ring share.

#[cfg(feature = "snapshot")]
mod decompress;
mod expected;
pub(super) mod header;
mod map;
pub(super) mod options;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(super) mod origin;
mod sparse;

use super::end::{RingEnd, SignOfLife};
use super::info::{self, RingState};
use crate::clock::Clock;
use crate::ring::memory::{MappedMemory, RingMemory as _};
use crate::ring::mutation::{self, Mutation};
use crate::schema::Resolution;
use crate::shm::{self, Liveness, LostPages};
use options::ReaderOptions;
use std::path::PathBuf;
use std::sync::OnceLock;

/// An opened ring: its mapping, its file, and whether it has ended.
pub(super) struct Source {
    pub(super) memory: MappedMemory,
    /// How payloads become those of the reader's schema, if the ring has another version of the schema.
    pub(super) resolution: Option<Resolution>,
    pub(super) file: shm::RingFile,
    /// The identity of the file that was opened. For a snapshot, it is the identity of the compressed file, not of
    /// `file`.
    pub(super) file_id: shm::FileId,
    /// The path of the compressed file, if the ring is a snapshot. The field `file` is then anonymous memory.
    pub(super) saved_as: Option<PathBuf>,
    /// The name and the options with which the ring was opened. `reopen` uses them to open the next ring of this name.
    /// `None` if the ring was opened by a file descriptor.
    pub(super) opened_as: Option<(PathBuf, ReaderOptions)>,
    /// The server from which the ring came.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) served_by: Option<origin::ServedBy>,
    /// The program that holds the ring open, if the ring's file was removed.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) held_by: Option<origin::OpenedBy>,
    /// True if the ring was made while this reader waited for it. A ring set then reads the ring from its first event
    /// on.
    pub(super) was_awaited: bool,
    /// The final state. It is set as soon as it is certain that nothing more will be recorded.
    pub(super) finished: OnceLock<FinishedRing>,
    pub(super) sign_of_life: SignOfLife,
}

/// The final state of a ring.
#[derive(Clone, Copy)]
pub(super) struct FinishedRing {
    state: RingState,
    /// The end of the recording; `None` if this is only the end of what can be read.
    pub(super) end: Option<RingEnd>,
}

impl Source {
    #[inline(always)]
    pub(super) fn memory(&self) -> &MappedMemory {
        &self.memory
    }

    /// Returns true if the ring is known to have ended. Makes no system call, so it may return false although the ring
    /// has ended.
    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        self.finished.get().is_some()
    }

    /// Returns the ring's state. Asks the operating system, unless the ring is known to have ended.
    pub(super) fn state(&self) -> RingState {
        if let Some(lost) = self.lost_pages() {
            let state = match lost {
                LostPages::NoMemory => RingState::NoMemory,
                LostPages::Unreadable => RingState::Unreadable,
                _ => RingState::Truncated,
            };
            // The ring counts as finished from now on. Otherwise a cursor would wait for events that this reader
            // cannot read.
            let _ = self.finished.set(FinishedRing { state, end: None });
            return state;
        }
        self.reach_all();
        if let Some(finished) = self.finished.get() {
            return finished.state;
        }
        let asked_nanos = Clock::global().now_epoch_nanos();
        let state = if self.saved_as.is_some() {
            RingState::Saved
        } else if info::is_ended(&self.memory) {
            RingState::Ended
        } else {
            match self.file.writer_liveness(info::identity(&self.memory).as_ref()) {
                Liveness::Alive => {
                    self.sign_of_life.see(asked_nanos);
                    return RingState::Live;
                }
                Liveness::Dead if mutation::active(Mutation::DeathUnnoticed) => return RingState::Live,
                Liveness::Unknown if self.is_server_gone() => RingState::WriterDied,
                Liveness::Unknown => return RingState::Unknown,
                // The writer is dead, but it may have closed the ring after the header was checked above, and died
                // after that. So the header is checked again.
                Liveness::Dead if info::is_ended(&self.memory) || info::is_exiting(&self.memory) => RingState::Ended,
                // Writers of other implementations leave no note in the file. Their end is not called a death, because
                // nothing tells it from a good end.
                Liveness::Dead if !self.memory.has_holes() => RingState::Ended,
                Liveness::Dead => RingState::WriterDied,
            }
        };
        let has_died = state == RingState::WriterDied;
        let end = || (state != RingState::Saved).then(|| self.sign_of_life.end_now(has_died));
        self.finished.get_or_init(|| FinishedRing { state, end: end() }).state
    }

    /// Returns true if the ring came from a server that has ended. Its process has then ended, too, unless it has ended
    /// only the server.
    fn is_server_gone(&self) -> bool {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(server) = &self.served_by {
            return server.is_gone();
        }
        false
    }

    pub(super) fn lost_pages(&self) -> Option<LostPages> {
        self.memory.mapping().lost_pages(self.file.descriptor())
    }
}
