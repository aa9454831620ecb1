//! Ids of traces and spans.
//!
//! The id of a span is its number in the ring: no other span of its process has it. The id of a trace is a hash of the
//! process and of the root of the tree. So all spans of a tree have it, and each export makes the same ids again, be it
//! of a capture or of the live rings.

use eventring::tracing::SpanId;
use std::collections::{HashMap, VecDeque};
use twox_hash::XxHash3_64;

/// The number of closed spans whose roots are remembered, for links to them.
const ROOTS_MAX: usize = 1 << 16;

/// A program's run, which no other run shares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ProcessKey {
    pub(super) pid: u32,
    pub(super) program: String,
    /// The time at which the process created its first perf ring, in nanoseconds since the epoch; 0 if there is none.
    pub(super) created_nanos: u64,
}

impl ProcessKey {
    /// Returns the id of the trace with this root.
    pub(super) fn trace_id(&self, root: SpanId) -> Vec<u8> {
        let bytes = self.hash(root.get());
        // OTLP forbids an id of zeros only.
        if bytes == [0; 16] { [1; 16].to_vec() } else { bytes.to_vec() }
    }

    /// Returns a text that tells this run of the program from all others.
    pub(super) fn instance(&self) -> String {
        self.hash(0).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn hash(&self, number: u64) -> [u8; 16] {
        let mut input = Vec::with_capacity(20 + self.program.len());
        input.extend(self.created_nanos.to_le_bytes());
        input.extend(self.pid.to_le_bytes());
        input.extend(number.to_le_bytes());
        input.extend(self.program.as_bytes());
        let half = |seed| XxHash3_64::oneshot_with_seed(seed, &input).to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        bytes
    }
}

/// Returns the id of a span, which is never zero.
pub(super) fn span_id(id: SpanId) -> Vec<u8> {
    id.get().to_be_bytes().to_vec()
}

/// The roots of spans that were closed lately. A span that is its own root is not among them.
#[derive(Default)]
pub(super) struct ClosedRoots {
    roots: HashMap<(usize, SpanId), SpanId>,
    oldest: VecDeque<(usize, SpanId)>,
}

impl ClosedRoots {
    pub(super) fn add(&mut self, process: usize, id: SpanId, root: SpanId) {
        if id == root || self.roots.insert((process, id), root).is_some() {
            return;
        }
        self.oldest.push_back((process, id));
        if self.oldest.len() > ROOTS_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.roots.remove(&oldest);
        }
    }

    pub(super) fn get(&self, process: usize, id: SpanId) -> Option<SpanId> {
        self.roots.get(&(process, id)).copied()
    }
}
