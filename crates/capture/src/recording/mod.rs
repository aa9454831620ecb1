//! The events of a recording, decoded, whatever the recording is: a capture, or rings.
//!
//! | file | idea |
//! |---|---|
//! | `descriptions` | facts about call sites and threads |
//! | `rings` | the rings of a recording: their processes, recorders, schemas |
//! | `self_times` | the time in which a span existed and none of its children did |

mod descriptions;
mod kept;
mod of_capture;
pub mod payloads;
mod rings;
mod self_times;

pub use descriptions::PerDescription;
pub use of_capture::CaptureRecording;
pub use payloads::PayloadLosses;
pub use rings::{NewRing, RecordedRings, RingOrigin, ShardOrigin};
pub use self_times::SelfTimes;

use eventring::reader::{Descriptor, GapCause, PayloadRead};
use eventring::tracing::{Catalog, RawRecord};

/// One event or loss of a recording.
pub struct RecordingEntry<'e> {
    /// The index of the ring in the recording.
    pub ring: u32,
    /// The process that wrote the ring.
    pub process: u32,
    /// The index of the process in [`RecordedRings::processes`].
    pub process_index: usize,
    /// The event or loss itself.
    pub content: EntryContent<'e>,
}

/// The content of a [`RecordingEntry`].
pub enum EntryContent<'e> {
    /// A record of a perf ring. A perf recorder writes several rings, its shards.
    Perf {
        /// The index of the ring that is shard 0.
        recorder: u32,
        /// The record.
        record: RawRecord<'e>,
        /// The call sites and threads of the recorder.
        catalog: &'e Catalog,
    },
    /// An event of another ring.
    Typed {
        /// The event without its payload.
        descriptor: &'e Descriptor,
        /// Its payload.
        payload: PayloadRead<'e>,
    },
    /// A loss.
    Gap {
        /// The seqno of the first lost event.
        first_seqno: u64,
        /// The number of lost events.
        count: u64,
        /// Why they are lost.
        cause: GapCause,
    },
}
