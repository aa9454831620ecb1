//! Ids of traces and spans for other programs.
//!
//! If a trace begins in the process, the trace id is computed from the process and the root span, and a span's id is
//! its number in the rings. If the trace began in another program, that program may use the same span ids. So a span id
//! is then computed from the span's number and a key of the process.
//!
//! All ids are computed from data in the rings, so each export, and the running program, computes the same ids.

use crate::schema::Hex;
use crate::span_slab::{RemoteTrace, TraceId};
use crate::tracing::span_id::SpanId;
use std::fmt;
use tiny_keccak::{Hasher as _, Keccak};

/// The id of a span, which `{}` prints as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanIdText(pub u64);

impl fmt::Display for SpanIdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0.to_be_bytes()).fmt(f)
    }
}

/// The ids of one span.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceIds {
    /// The id of the trace.
    pub trace_id: TraceId,
    /// The id of the span, which is not 0.
    pub span_id: u64,
    /// The id of the parent, which may be in another process; `None` if the span is the root of its trace.
    pub parent_span_id: Option<u64>,
}

/// What makes ids of the numbers of one process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessIds {
    seeds: [u64; 2],
    span_seed: u64,
    instance: u64,
}

/// The bit that the key of span ids has, and no number of a span. So no scrambled number is 0.
const NO_SPAN: u64 = 1 << 63;

impl ProcessIds {
    /// Makes the ids of a process. No other run of a program has the same three: its process id, the name of the
    /// program, and the time at which it made its first perf ring, in nanoseconds since the epoch.
    #[must_use]
    pub fn new(pid: u32, program: &str, created_epoch_nanos: u64) -> Self {
        let mut hasher = Keccak::v256();
        hasher.update(&created_epoch_nanos.to_le_bytes());
        hasher.update(&pid.to_le_bytes());
        hasher.update(program.as_bytes());
        let mut hash = [0; 32];
        hasher.finalize(&mut hash);
        let (words, _) = hash.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        Self { seeds: [word(0), word(1)], span_seed: word(2) | NO_SPAN, instance: word(3) }
    }

    /// Returns a number that tells this run of the program from all others.
    #[must_use]
    pub const fn instance(&self) -> u64 {
        self.instance
    }

    /// Returns the id of the trace that begins with the span `root`.
    #[must_use]
    pub const fn trace_id(&self, root: SpanId) -> TraceId {
        let high = scrambled(root.get() ^ self.seeds[0]);
        let low = scrambled(root.get() ^ self.seeds[1]);
        match TraceId::new((high as u128) << 64 | low as u128) {
            Some(id) => id,
            None => TraceId::MIN,
        }
    }

    /// Returns the id of a span in a trace that began in this process, or, if `is_remote`, in another one.
    #[must_use]
    pub const fn span_id(&self, span: SpanId, is_remote: bool) -> u64 {
        if is_remote { scrambled(span.get() ^ self.span_seed) } else { span.get() }
    }

    /// Returns the span that has this id in a trace that began in this process, or, if `is_remote`, in another one.
    /// Returns `None` if no span can have it.
    #[must_use]
    pub const fn span_of(&self, span_id: u64, is_remote: bool) -> Option<SpanId> {
        SpanId::new(if is_remote { unscrambled(span_id) ^ self.span_seed } else { span_id })
    }

    /// Returns the id of the trace of a span with this root, in this remote trace if it is in one.
    #[must_use]
    pub fn trace_of(&self, root: SpanId, remote: Option<RemoteTrace>) -> TraceId {
        remote.map_or_else(|| self.trace_id(root), |remote| remote.trace_id)
    }
}

/// Scrambles a number, each to another one: the last steps of the generator SplitMix64. 0 stays 0.
const fn scrambled(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Undoes [`scrambled`].
const fn unscrambled(number: u64) -> u64 {
    let number = (number ^ number >> 31 ^ number >> 62).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let number = (number ^ number >> 27 ^ number >> 54).wrapping_mul(0x96de_1b17_3f11_9089);
    number ^ number >> 30 ^ number >> 60
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn id(number: u64) -> SpanId {
        SpanId::new(number).unwrap()
    }

    #[test]
    fn a_scrambled_number_comes_back() {
        let ids = ProcessIds::new(7, "shop", 1 << 60);
        for number in (0..64).map(|bit| 1 << bit).chain([3, 0xdead_beef, u64::MAX >> 1]) {
            assert_eq!(unscrambled(scrambled(number)), number);
            for is_remote in [false, true] {
                assert_eq!(ids.span_of(ids.span_id(id(number), is_remote), is_remote), SpanId::new(number));
            }
        }
        assert_eq!((ids.span_of(0, false), ids.span_id(id(5), false)), (None, 5));
    }

    #[test]
    fn no_two_runs_of_a_program_have_the_same_ids() {
        let runs = [(7, "shop", 9), (8, "shop", 9), (7, "shop2", 9), (7, "shop", 10)];
        let of = |(pid, program, created): (u32, &str, u64)| ProcessIds::new(pid, program, created);
        let traces: HashSet<TraceId> = runs.map(|run| of(run).trace_id(id(1))).into_iter().collect();
        let spans: HashSet<u64> = runs.map(|run| of(run).span_id(id(1), true)).into_iter().collect();
        let instances: HashSet<u64> = runs.map(|run| of(run).instance()).into_iter().collect();
        assert_eq!((traces.len(), spans.len(), instances.len()), (4, 4, 4));
        assert_eq!(of(runs[0]), of(runs[0]));
        assert_ne!(of(runs[0]).trace_id(id(1)), of(runs[0]).trace_id(id(2)));
    }
}
