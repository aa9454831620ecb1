//! The bytes that are allocated and not freed, by the name of the span that has allocated them.
//!
//! Each name has a *slot*: the id of its first call site. A thread that records adds up the bytes of one slot, and adds
//! them to the slot's sum when it comes to another slot, after 16 KiB, when it enters or leaves a span, and when it ends.
//! A thread that does not record, or that ends, adds each block at once: nothing would tell when it ends.

use crate::global::current_span_id;
use crate::recorder::Recorder;
use crate::schema::perf::{COUNTER_TARGET, CallSiteKind, LIVE_PREFIX, PEAK_PREFIX, PerfEvent, PerfExt, ValueType};
use crate::span_slab::SPAN_SLAB;
use crate::sync::locked_section::LockedSection;
use crate::tracing::record::counter::view_of;
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE};
use crate::tracing::record::threads::allocated::is_paused;
use crate::tracing::record::threads::thread::ThreadState;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Call sites with larger ids share a slot.
const CALL_SITES_MAX: u32 = 4096;
const OTHERS: u32 = CALL_SITES_MAX + 1;
const ALL: u32 = OTHERS + 1;
const SLOTS: usize = (ALL as usize + 1).next_multiple_of(64);
/// The bytes from which on a thread adds them to the sum.
const PENDING_MAX: u64 = 16 << 10;
/// How often the sums are sampled.
const PERIOD_NANOS: u64 = 10_000_000;

/// What is known of the bytes of one name. All loads and stores are relaxed: the numbers publish no other memory.
struct Slot {
    bytes: AtomicI64,
    peak: AtomicI64,
    /// The peak that was last recorded.
    shown_peak: AtomicI64,
}

static SUMS: [Slot; SLOTS] =
    [const { Slot { bytes: AtomicI64::new(0), peak: AtomicI64::new(0), shown_peak: AtomicI64::new(0) } }; SLOTS];
/// The slot of each call site, or 0 while it is not known.
static SLOT_OF: [AtomicU32; CALL_SITES_MAX as usize + 1] = [const { AtomicU32::new(0) }; CALL_SITES_MAX as usize + 1];
/// A bit for each slot that has changed since it was last recorded.
static CHANGED: [AtomicU64; SLOTS / 64] = [const { AtomicU64::new(0) }; SLOTS / 64];
/// When the sums are next recorded.
static NEXT_EPOCH_NANOS: AtomicU64 = AtomicU64::new(0);
static IS_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    // No destructor: the allocator is used until the thread's last instruction.
    static PENDING: Pending = const {
        Pending {
            is_recording: Cell::new(false),
            slot: Cell::new(0),
            bytes: Cell::new(0),
            span_id: Cell::new(0),
            slot_of_span: Cell::new(0),
        }
    };
}

/// What a thread has not added to the sums.
struct Pending {
    /// True from the thread's first event on, until it ends.
    is_recording: Cell<bool>,
    slot: Cell<u32>,
    bytes: Cell<i64>,
    /// The span that was innermost at the last allocation, and its slot.
    span_id: Cell<u64>,
    slot_of_span: Cell<u32>,
}

/// Counts a new block. Returns its slot.
pub(crate) fn allocated(bytes: usize) -> u32 {
    PENDING.with(|pending| {
        let slot = pending.current_slot();
        pending.add(slot, bytes as i64);
        slot
    })
}

/// Counts the free of a block.
pub(crate) fn freed(slot: u32, bytes: usize) {
    PENDING.with(|pending| pending.add(slot, -(bytes as i64)));
}

/// Counts a block that has another size now.
pub(crate) fn resized(slot: u32, old_bytes: usize, new_bytes: usize) {
    PENDING.with(|pending| pending.add(slot, new_bytes as i64 - old_bytes as i64));
}

/// Notes that the calling thread begins to record, or ends.
pub(in crate::tracing::record) fn set_recording(is_recording: bool) {
    PENDING.with(|pending| {
        pending.is_recording.set(is_recording);
        pending.flush();
    });
}

/// Returns the slot of the spans of a call site: all call sites of a name have the same. (Two threads that meet two of
/// them for the first time at the same moment may give the name two slots.)
fn slot_of(call_site_id: u32) -> u32 {
    let Some(known) = SLOT_OF.get(call_site_id as usize) else { return OTHERS };
    let slot = known.load(Ordering::Relaxed);
    if slot != 0 || call_site_id == NO_CALL_SITE {
        return slot;
    }
    let name = name_of(call_site_id as usize);
    let is_first =
        |(id, slot): &(usize, &AtomicU32)| slot.load(Ordering::Relaxed) as usize == *id && name_of(*id) == name;
    let first = SLOT_OF.iter().enumerate().skip(1).find(is_first).map_or(call_site_id, |(id, _)| id as u32);
    known.store(first, Ordering::Relaxed);
    first
}

impl Pending {
    fn current_slot(&self) -> u32 {
        let span_id = current_span_id();
        // What recording allocates belongs to no span.
        if span_id == 0 || is_paused() {
            return 0;
        }
        if self.span_id.get() != span_id {
            let call_site_id = SPAN_SLAB.call_site_id(span_id);
            self.slot_of_span.set(slot_of(call_site_id));
            self.span_id.set(span_id);
        }
        self.slot_of_span.get()
    }

    fn add(&self, slot: u32, bytes: i64) {
        if self.slot.get() != slot {
            self.flush();
            self.slot.set(slot);
        }
        self.bytes.set(self.bytes.get() + bytes);
        if !self.is_recording.get() || self.bytes.get().unsigned_abs() >= PENDING_MAX {
            self.flush();
        }
    }

    fn flush(&self) {
        let bytes = self.bytes.take();
        if bytes == 0 {
            return;
        }
        for slot in [self.slot.get(), ALL] {
            let Some(sum) = SUMS.get(slot as usize) else { continue };
            let now = sum.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if now > sum.peak.load(Ordering::Relaxed) {
                sum.peak.fetch_max(now, Ordering::Relaxed);
            }
            mark(slot as usize);
        }
        if !IS_ON.load(Ordering::Relaxed) {
            IS_ON.store(true, Ordering::Relaxed);
        }
    }
}

fn mark(slot: usize) {
    let (word, bit) = (&CHANGED[slot / 64], 1 << (slot % 64));
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Records the sums that have changed as counters, if it is time.
pub(super) fn sample(thread: &ThreadState, ring: &Recorder) {
    // In a locked section, the thread may have a lock of the program's allocator.
    if !IS_ON.load(Ordering::Relaxed) || LockedSection::is_inside() {
        return;
    }
    PENDING.with(Pending::flush);
    let now = ring.clock().now_epoch_nanos();
    let next = NEXT_EPOCH_NANOS.load(Ordering::Relaxed);
    let is_time = now >= next
        && NEXT_EPOCH_NANOS.compare_exchange(next, now + PERIOD_NANOS, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !is_time {
        return;
    }
    // The first sample of a name describes its call site.
    let _paused = thread.pause_count();
    for (word, changed) in CHANGED.iter().enumerate() {
        let mut bits = changed.swap(0, Ordering::Relaxed);
        while bits != 0 {
            record(thread, ring, word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

fn record(thread: &ThreadState, ring: &Recorder, slot: usize) {
    let Some(sum) = SUMS.get(slot) else { return };
    let peak = sum.peak.load(Ordering::Relaxed);
    let mut of = vec![(LIVE_PREFIX, &sum.bytes, sum.bytes.load(Ordering::Relaxed))];
    if sum.shown_peak.swap(peak, Ordering::Relaxed) < peak {
        of.push((PEAK_PREFIX, &sum.peak, peak));
    }
    for (prefix, key, bytes) in of {
        let describe = || {
            let name = format!("{prefix}{}", name_of(slot));
            view_of(CallSiteKind::Counter, &name, COUNTER_TARGET, None).encode()
        };
        let call_site_id = CALL_SITES.id_of_key(ptr::from_ref(key).addr(), describe);
        if call_site_id == NO_CALL_SITE {
            // The thread is in a locked section: the allocator was called inside it.
            return mark(slot);
        }
        // A block that was allocated before its thread has added it may be freed by another one.
        let related = bytes.max(0).cast_unsigned();
        let ext =
            PerfExt { related, value_type: ValueType::U64 as u8, ..PerfExt::of_span(current_span_id(), call_site_id) };
        let [span_id, related, ids, flags] = ext.to_words();
        ring.core.record(PerfEvent::Counter as u16, [span_id, related, ids | thread.id_word(), flags], &[]);
    }
}

fn name_of(slot: usize) -> &'static str {
    match slot as u32 {
        0 => "(no span)",
        OTHERS => "(other spans)",
        ALL => "(all)",
        id => CALL_SITES.metadata(id).map_or("(other spans)", tracing_core::Metadata::name),
    }
}
