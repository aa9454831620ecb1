//! The trace in a cell: the root of the span's tree, or the trace of a remote caller.

use super::id::LAYER_BIT;
use super::remote_trace::{RemoteTrace, TraceId};
use crate::sync::{AtomicU64, Ordering, fence};

/// The trace of a cell's span.
pub(super) struct CellTrace {
    /// The root of the tree of the span in this process. In a remote trace also the flags of the trace, and the bit
    /// [`REMOTE`].
    pub(super) key: AtomicU64,
    /// The halves of the id of the remote trace.
    high: AtomicU64,
    low: AtomicU64,
}

/// Bit of a key: the trace is a remote one.
pub(super) const REMOTE: u64 = 1 << 62;
/// The lowest bit of the flags in a key.
const FLAGS_SHIFT: u32 = 54;
/// Bits of a key that hold the root.
const ROOT_MASK: u64 = (LAYER_BIT << 1) - 1;

impl CellTrace {
    pub(super) const fn new() -> Self {
        Self { key: AtomicU64::new(0), high: AtomicU64::new(0), low: AtomicU64::new(0) }
    }

    pub(super) fn set(&self, root: u64, remote: Option<RemoteTrace>) {
        self.key.store(root, Ordering::Relaxed);
        let Some(RemoteTrace { trace_id, flags }) = remote else { return };
        // Release, pairs with the acquire in `get`: who sees a half of this id sees that the key has changed.
        fence(Ordering::Release);
        self.high.store((trace_id.get() >> 64) as u64, Ordering::Relaxed);
        self.low.store(trace_id.get() as u64, Ordering::Relaxed);
        // Release, pairs with the acquire in `get`: who sees this key sees the whole id.
        self.key.store(REMOTE | u64::from(flags) << FLAGS_SHIFT | root, Ordering::Release);
    }

    /// Returns the root, and the remote trace if there is one. If another thread changes them meanwhile, looks again.
    pub(super) fn get(&self) -> (u64, Option<RemoteTrace>) {
        loop {
            if let Some(found) = self.try_get(self.key.load(Ordering::Acquire)) {
                return found;
            }
        }
    }

    /// Returns what belongs to this key, which was loaded from this cell. Returns `None` if the cell has another key
    /// now.
    #[inline(always)]
    pub(super) fn try_get(&self, key: u64) -> Option<(u64, Option<RemoteTrace>)> {
        let (high, low) = (self.high.load(Ordering::Relaxed), self.low.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let trace_id = TraceId::new(u128::from(high) << 64 | u128::from(low)).filter(|_| key & REMOTE != 0);
        let remote = trace_id.map(|trace_id| RemoteTrace { trace_id, flags: (key >> FLAGS_SHIFT) as u8 });
        (self.key.load(Ordering::Relaxed) == key).then_some((key & ROOT_MASK, remote))
    }
}

/// Tells the trace of an open span from all others of this process.
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceKey(pub(super) u64);

#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
impl TraceKey {
    /// The key of no trace.
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)]
    pub(crate) const fn is_remote(self) -> bool {
        self.0 & REMOTE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_gives_back_the_root_and_the_remote_trace() {
        let cell = CellTrace::new();
        assert_eq!(cell.get(), (0, None));
        for (root, flags) in [(1, 0), (LAYER_BIT | 5, 1), (ROOT_MASK, u8::MAX)] {
            let remote = RemoteTrace { trace_id: TraceId::new(7 << 64 | 9).unwrap(), flags };
            cell.set(root, Some(remote));
            assert_eq!(cell.get(), (root, Some(remote)));
            cell.set(root, None);
            assert_eq!(cell.get(), (root, None));
        }
    }

    #[test]
    fn a_trace_that_changes_is_never_mixed_with_the_one_before() {
        let cell = CellTrace::new();
        let remote = |n: u64| RemoteTrace {
            trace_id: TraceId::new(u128::from(n) << 64 | u128::from(n)).unwrap(),
            flags: n as u8,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..100_000).for_each(|n| cell.set(n, Some(remote(n)))));
            while cell.get().0 < 99_999 {
                if let (root, Some(found)) = cell.get() {
                    assert_eq!(found, remote(root));
                }
            }
        });
    }
}
