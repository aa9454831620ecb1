//! A ring of a recording.

use super::row;
use eventring_capture::{CapturedRing, RingRole};
use std::borrow::Cow;

row! {
    /// A ring of a recording.
    pub struct RingRow<'a> {
        /// Its name.
        name: Option<Cow<'a, str>> => Text,
        /// The number of its process in the recording.
        process: u32 => U32,
        /// The process id of its writer.
        pid: u32 => U32,
        /// The name of its program.
        program: Option<Cow<'a, str>> => Text,
        /// The number of its content type.
        content_type: u32 => U32,
        /// The name of its content type.
        content_name: Option<Cow<'a, str>> => Text,
        /// Its number among the shards of a recorder.
        shard: Option<u32> => U32,
        /// The first seqno of the recording.
        first_seqno: u64 => U64,
        /// When it was made, in nanoseconds since the epoch.
        created_ns: u64 => Amount,
        /// The host of its program, if that is said.
        host: Option<Cow<'a, str>> => Text [IfAny],
        /// The condition that its events fulfil, if that is said.
        filter: Option<Cow<'a, str>> => Text [IfAny],
        /// How many of a million traces were taken, if that is said.
        sampled_per_million: Option<u32> => U32 [IfAny],
    }
}

impl<'a> RingRow<'a> {
    /// Makes the row of a ring.
    #[must_use]
    pub fn new(ring: &'a CapturedRing) -> Self {
        let says_its_filter = ring.says_its_filter();
        Self {
            name: text(&ring.name),
            process: ring.process,
            pid: ring.pid,
            program: text(&ring.program_name),
            content_type: ring.content_type.into(),
            content_name: text(&ring.content_name),
            shard: match ring.role {
                RingRole::Shard { shard, .. } => Some(shard),
                RingRole::Single => None,
            },
            first_seqno: ring.first_seqno,
            created_ns: ring.created_epoch_nanos,
            host: text(&ring.host).filter(|host| !host.is_empty()),
            filter: text(&ring.filter).filter(|_| says_its_filter),
            sampled_per_million: says_its_filter.then_some(ring.sampled_per_million),
        }
    }
}

fn text(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}
