//! The page in which the kernel publishes the hardware counter of a thread (`struct perf_event_mmap_page` of
//! perf_event_open(2)). With this page the thread reads its counter without a system call.
//!
//! The kernel changes the page only while the thread does not run or is interrupted. Each change also changes the word
//! `lock`. If `lock` has changed while a thread read the page, the thread reads the page again.

use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// The bit of `capabilities` that says that the thread may read the processor's counter (`cap_user_rdpmc`).
const MAY_READ: u64 = 1 << 2;
/// The number of attempts. Each failed attempt means that the thread was interrupted in these few instructions.
const ATTEMPTS: usize = 16;

/// The first fields of the page.
#[derive(Default, Debug)]
#[repr(C)]
pub(super) struct CounterPage {
    versions: [u32; 2],
    lock: AtomicU32,
    /// The number of the processor's counter, counted from 1. It is 0 while no counter counts for the thread.
    index: AtomicU32,
    /// The count beside that of the processor's counter.
    offset: AtomicI64,
    times: [u64; 2],
    capabilities: AtomicU64,
    /// The number of bits of the processor's counter.
    width: AtomicU16,
}

impl CounterPage {
    /// Returns the count of the thread. `read` reads the processor's counter with this index, counted from 0. Returns
    /// `None` if the kernel must be asked.
    pub(super) fn count(&self, read: impl Fn(u32) -> u64) -> Option<u64> {
        for _ in 0..ATTEMPTS {
            let before = self.lock.load(Ordering::Acquire);
            // Relaxed: if one of these loads sees a later change, the word `lock` is another one afterwards.
            let capabilities = self.capabilities.load(Ordering::Relaxed);
            let index = self.index.load(Ordering::Relaxed).checked_sub(1).filter(|_| capabilities & MAY_READ != 0)?;
            let unused = 64_u32.checked_sub(self.width.load(Ordering::Relaxed).into()).filter(|unused| *unused < 64)?;
            // The counter's highest bit is its sign: the kernel lets counters begin below 0.
            let counter = (read(index) << unused).cast_signed() >> unused;
            let count = self.offset.load(Ordering::Relaxed).wrapping_add(counter);
            fence(Ordering::Acquire);
            if self.lock.load(Ordering::Relaxed) == before {
                return u64::try_from(count).ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::mem::offset_of;

    fn page(index: u32, offset: i64, width: u16) -> CounterPage {
        let page = CounterPage { capabilities: (MAY_READ | 1 << 1).into(), ..CounterPage::default() };
        page.index.store(index, Ordering::Relaxed);
        page.offset.store(offset, Ordering::Relaxed);
        page.width.store(width, Ordering::Relaxed);
        page
    }

    fn never(_: u32) -> u64 {
        panic!("the counter is read, which would end the process")
    }

    #[test]
    fn the_fields_stand_where_the_kernel_writes_them() {
        let places = [
            offset_of!(CounterPage, lock),
            offset_of!(CounterPage, index),
            offset_of!(CounterPage, offset),
            offset_of!(CounterPage, capabilities),
            offset_of!(CounterPage, width),
        ];
        assert_eq!(places, [8, 12, 16, 40, 48]);
    }

    #[test]
    fn the_count_is_that_of_the_page_and_of_the_counter_with_the_index() {
        assert_eq!(page(3, 1_000, 48).count(|index| 50 + u64::from(index)), Some(1_052));
        // A fixed counter.
        assert_eq!(page(0x4000_0001, 7, 48).count(|index| u64::from(index >> 30)), Some(8));
    }

    #[test]
    fn a_counter_has_a_sign_and_no_bits_above_its_width() {
        // 48 bits of ones are -1. The bits above are noise.
        assert_eq!(page(1, 1_000, 48).count(|_| 0xabcd_ffff_ffff_ffff), Some(999));
        assert_eq!(page(1, 1_000, 48).count(|_| 0xabcd_7fff_ffff_ffff), Some(1_000 + 0x7fff_ffff_ffff));
        assert_eq!(page(1, 1_000, 64).count(|_| u64::MAX), Some(999));
        assert_eq!(page(1, 1_000, 1).count(|_| 1), Some(999));
    }

    #[test]
    fn the_kernel_is_asked_if_the_page_names_no_counter_that_may_be_read() {
        assert_eq!(page(0, 1_000, 48).count(never), None);
        assert_eq!(CounterPage { capabilities: 2.into(), ..page(1, 1_000, 48) }.count(never), None);
        for width in [0, 65, u16::MAX] {
            assert_eq!(page(1, 1_000, width).count(never), None, "{width}");
        }
        // Such a count is wrong.
        assert_eq!(page(1, -1_000, 48).count(|_| 10), None);
    }

    #[test]
    fn a_page_that_changes_meanwhile_is_read_again() {
        let page = page(1, 1_000, 48);
        let reads = Cell::new(0);
        let count = page.count(|index| {
            reads.set(reads.get() + 1);
            if index == 0 {
                // The kernel moves the thread: another counter, which begins again, and what the old one has counted.
                page.index.store(2, Ordering::Relaxed);
                page.offset.store(5_000, Ordering::Relaxed);
                page.lock.fetch_add(2, Ordering::Relaxed);
                return 4_000;
            }
            3
        });
        assert_eq!((count, reads.get()), (Some(5_003), 2));
    }

    #[test]
    fn a_page_that_never_stays_the_same_is_given_up() {
        let page = page(1, 1_000, 48);
        let count = page.count(|_| {
            page.lock.fetch_add(1, Ordering::Relaxed);
            1
        });
        assert_eq!(count, None);
        // The index is gone at the second attempt.
        let page = self::page(1, 1_000, 48);
        let count = page.count(|_| {
            page.index.store(0, Ordering::Relaxed);
            page.lock.fetch_add(2, Ordering::Relaxed);
            1
        });
        assert_eq!(count, None);
    }
}
