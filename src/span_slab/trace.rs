//! The traces of open spans. A cell holds the root of the span's tree, or the trace of a remote caller.

use super::{INDEX_MASK, SpanSlab};
use crate::sync::{AtomicU64, Ordering};
use crate::tracing::context::{RemoteTrace, TraceId};

/// The trace of a cell's span.
pub(super) struct CellTrace {
    /// The root of the tree of the span in this process.
    root: AtomicU64,
    /// The halves of the id of the remote trace.
    high: AtomicU64,
    low: AtomicU64,
    /// The flags of the remote trace, with the bit [`REMOTE`]; 0 if there is none.
    remote: AtomicU64,
}

/// The bit that tells the flags of a remote trace from no trace.
const REMOTE: u64 = 1 << 8;

impl CellTrace {
    pub(super) const fn new() -> Self {
        Self { root: AtomicU64::new(0), high: AtomicU64::new(0), low: AtomicU64::new(0), remote: AtomicU64::new(0) }
    }

    fn set_remote(&self, trace: RemoteTrace) {
        let id = trace.trace_id.get();
        self.remote.store(0, Ordering::Release);
        self.high.store((id >> 64) as u64, Ordering::Relaxed);
        self.low.store(id as u64, Ordering::Relaxed);
        // Release, pairs with the acquire in `remote`: who sees the bit sees the whole id.
        self.remote.store(REMOTE | u64::from(trace.flags), Ordering::Release);
    }

    fn remote(&self) -> Option<RemoteTrace> {
        let flags = self.remote.load(Ordering::Acquire);
        if flags & REMOTE == 0 {
            return None;
        }
        let (high, low) = (self.high.load(Ordering::Relaxed), self.low.load(Ordering::Relaxed));
        let trace_id = TraceId::new(u128::from(high) << 64 | u128::from(low))?;
        Some(RemoteTrace { trace_id, flags: flags as u8 })
    }
}

/// Tells the trace of an open span from all others of this process.
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceKey {
    root: u64,
    remote: u64,
}

#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
impl TraceKey {
    /// The key of no trace.
    pub(crate) const NONE: Self = Self { root: 0, remote: u64::MAX };

    #[inline(always)]
    pub(crate) const fn is_remote(self) -> bool {
        self.remote != 0
    }
}

impl SpanSlab {
    /// Gives a new span the trace of its parent; without a parent, which is 0, it begins a trace.
    #[inline(always)]
    pub(crate) fn inherit_trace(&self, id: u64, parent: u64) {
        let Some(cell) = self.cell(id & INDEX_MASK) else { return };
        cell.trace.root.store(if parent == 0 { id } else { parent }, Ordering::Relaxed);
        cell.trace.remote.store(0, Ordering::Relaxed);
        if parent != 0
            && let Some(of_parent) = self.cell(parent & INDEX_MASK).filter(|of| of.id.load(Ordering::Relaxed) == parent)
        {
            cell.trace.root.store(of_parent.trace.root.load(Ordering::Relaxed), Ordering::Relaxed);
            if let Some(remote) = of_parent.trace.remote() {
                cell.trace.set_remote(remote);
            }
        }
    }

    /// Makes an open span the root of this process's part of a remote trace. Returns false if no open span has this
    /// id, or if another thread has done it, or if the span is such a root already.
    pub(crate) fn begin_remote_trace(&self, id: u64, trace: RemoteTrace) -> bool {
        let Some(cell) = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id) else {
            return false;
        };
        let is_root_already = cell.trace.remote().is_some() && cell.trace.root.load(Ordering::Relaxed) == id;
        if !is_root_already {
            cell.trace.root.store(id, Ordering::Relaxed);
            cell.trace.set_remote(trace);
        }
        !is_root_already
    }

    /// Returns the key of the trace of an open span. Returns `None` if no open span has this id.
    #[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
    #[inline(always)]
    pub(crate) fn trace_key(&self, id: u64) -> Option<TraceKey> {
        let cell = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id)?;
        let root = cell.trace.root.load(Ordering::Relaxed);
        Some(TraceKey { root, remote: cell.trace.remote.load(Ordering::Acquire) })
    }

    /// Returns the root of the tree of an open span, and its remote trace if it is in one. Returns `None` if no open
    /// span has this id.
    pub(crate) fn trace_of(&self, id: u64) -> Option<(u64, Option<RemoteTrace>)> {
        let cell = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id)?;
        Some((cell.trace.root.load(Ordering::Relaxed), cell.trace.remote()))
    }
}
