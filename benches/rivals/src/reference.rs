//! The recording algorithm of the original C implementation, transcribed from its documentation. The benchmarks
//! compare eventring with it.
//!
//! The algorithm reserves by two fetch-adds: one for the sequence number, one for the payload bytes. The writer sets
//! the sequence number in the descriptor to zero by a plain store. One compare-exchange moves the window: the part of
//! the payload buffer that readers may read. The clock is `clock_gettime(CLOCK_REALTIME)` through the vDSO.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const WINDOW_INCR: u64 = 1 << 24;

#[repr(C, align(64))]
struct Descriptor {
    seqno: AtomicU64,
    event_type: u16,
    payload_size: u32,
    record_epoch_nanos: u64,
    payload_buf_offset: u64,
    content_ext: [u64; 4],
}

#[repr(C, align(64))]
struct Line<T>(T);

#[repr(C)]
struct Control {
    cursors: Line<(AtomicU64, AtomicU64)>,
    window_start: Line<AtomicU64>,
}

/// A ring in prefaulted memory that forked processes share.
pub struct ReferenceRing {
    control: NonNull<Control>,
    descriptors: NonNull<Descriptor>,
    capacity: u64,
    payload: NonNull<u8>,
    payload_bytes: u64,
    /// The number of bytes by which the buffer window moves at a time. `window_bytes` is the length of the window.
    window_incr: u64,
    window_bytes: u64,
}

// SAFETY: in each benchmark, either one thread writes descriptors and payloads, or the fetch-adds give the threads
// places that are disjoint and far apart. The algorithm itself would also allow a race, between writers that are a lap
// apart. The benchmarks measure the algorithm as it is.
unsafe impl Sync for ReferenceRing {}
// SAFETY: the memory is owned and never freed.
unsafe impl Send for ReferenceRing {}

fn prefaulted(bytes: usize) -> NonNull<u8> {
    let map = memfd(bytes);
    NonNull::new(map.cast()).expect("mmap")
}

fn memfd(bytes: usize) -> *mut libc::c_void {
    // SAFETY: these are system calls with valid arguments, and the result of `mmap` is checked. `memset` writes only
    // to the new mapping.
    unsafe {
        let fd = libc::memfd_create(c"reference".as_ptr(), 0);
        assert!(fd >= 0);
        assert_eq!(libc::ftruncate(fd, bytes as i64), 0);
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let map = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
        assert_ne!(map, libc::MAP_FAILED);
        libc::close(fd);
        // Every page is written once.
        libc::memset(map, 0, bytes);
        map
    }
}

impl ReferenceRing {
    /// Makes a ring of 2^`descriptor_shift` descriptors and 2^`payload_shift` payload bytes. The payload buffer is
    /// mapped once (eventring maps its buffer twice in a row). So a payload that crosses the buffer's end goes into
    /// the slack after it.
    pub fn new(descriptor_shift: u32, payload_shift: u32) -> Self {
        let slack = 1 << 16;
        // The window step must be smaller than the buffer. Some benchmarks have smaller buffers than the C
        // implementation has, so the step is reduced for them.
        let window_incr = WINDOW_INCR.min(1 << (payload_shift - 3));
        Self {
            control: prefaulted(4096).cast(),
            descriptors: prefaulted(64 << descriptor_shift).cast(),
            capacity: 1 << descriptor_shift,
            payload: prefaulted((1 << payload_shift) + slack),
            payload_bytes: 1 << payload_shift,
            window_incr,
            window_bytes: (1 << payload_shift) - window_incr,
        }
    }

    fn control(&self) -> &Control {
        // SAFETY: the pointer is to a page of zeros, which is never unmapped. The page is accessed only through
        // atomics.
        unsafe { self.control.as_ref() }
    }

    /// Records one event.
    #[inline]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.record_at(realtime_nanos(), event_type, content_ext, payload)
    }

    /// Records one event with that time.
    #[inline]
    pub fn record_at(&self, epoch_nanos: u64, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        let seqno = self.control().cursors.0.0.fetch_add(1, Ordering::Relaxed) + 1;
        // SAFETY: the index is below the capacity.
        let slot = unsafe { self.descriptors.add(((seqno - 1) & (self.capacity - 1)) as usize).as_ptr() };
        // SAFETY: a valid descriptor; see the remark on races.
        unsafe { (*slot).seqno.store(0, Ordering::Release) };
        let aligned = (payload.len() as u64).next_multiple_of(16);
        let offset = self.control().cursors.0.1.fetch_add(aligned, Ordering::Relaxed);
        let end = offset + aligned;
        let window_start = self.control().window_start.0.load(Ordering::Relaxed);
        if end.wrapping_sub(window_start) > self.window_bytes {
            let to = end.wrapping_sub(self.window_bytes).div_ceil(self.window_incr) * self.window_incr;
            let _ =
                self.control().window_start.0.compare_exchange(window_start, to, Ordering::Relaxed, Ordering::Relaxed);
        }
        // SAFETY: the slot is a valid descriptor. The offset is wrapped into the buffer, and a payload that crosses
        // the buffer's end fits in the slack after it.
        unsafe {
            (*slot).event_type = event_type;
            (*slot).payload_size = payload.len() as u32;
            (*slot).record_epoch_nanos = epoch_nanos;
            (*slot).payload_buf_offset = offset;
            (*slot).content_ext = content_ext;
            let to = self.payload.add((offset & (self.payload_bytes - 1)) as usize).as_ptr();
            std::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len());
            (*slot).seqno.store(seqno, Ordering::Release);
        }
        seqno
    }

    /// Copies the payload of event `seqno` to `out`, and returns the event's time stamp. Returns `None` if the event
    /// is not committed. A reader calls this in a loop until the event is there.
    #[inline]
    pub fn try_read(&self, seqno: u64, out: &mut [u8]) -> Option<u64> {
        // SAFETY: the index is below the capacity.
        let slot = unsafe { self.descriptors.add(((seqno - 1) & (self.capacity - 1)) as usize).as_ref() };
        if slot.seqno.load(Ordering::Acquire) != seqno {
            return None;
        }
        let epoch_nanos = slot.record_epoch_nanos;
        let from = (slot.payload_buf_offset & (self.payload_bytes - 1)) as usize;
        // SAFETY: within the buffer and its slack.
        unsafe {
            std::ptr::copy_nonoverlapping(self.payload.add(from).as_ptr(), out.as_mut_ptr(), slot.payload_size as usize)
        };
        (slot.seqno.load(Ordering::Acquire) == seqno).then_some(epoch_nanos)
    }
}

/// Returns CLOCK_REALTIME, read through the vDSO.
#[inline]
pub fn realtime_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
