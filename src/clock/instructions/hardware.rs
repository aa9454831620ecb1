//! A counter of the processor that counts for one thread (perf_event_open(2)).

use super::page::CounterPage;
use crate::arch::performance_counter;
use crate::shm::{OwnDescriptor, keeping_errno, process_number};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};

/// The events that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum CountedEvent {
    /// Instructions that the thread executes outside of the kernel.
    Instructions,
    /// Nanoseconds in which the thread runs. The kernel counts them, also on machines without performance counters.
    #[cfg(test)]
    TaskClock,
}

/// A counter for the thread that has made it.
#[derive(Debug)]
pub(crate) struct HardwareCounter {
    descriptor: OwnDescriptor,
    /// The kernel's page for the counter, if it could be mapped.
    page: Option<NonNull<CounterPage>>,
    /// The process that has made the counter. In a forked child the descriptor still leads to the counter of the
    /// parent's thread, and the page is not there: the kernel does not hand it down.
    process: u64,
}

impl HardwareCounter {
    /// Makes a counter for the calling thread. Returns `None` if the processor has none, if the kernel does not allow
    /// its use, or if it does not count.
    pub(super) fn open(event: CountedEvent) -> Option<Self> {
        let opened = keeping_errno(|| {
            let descriptor = OwnDescriptor::new(open_event(event)?).ok()?;
            let page = map_page(&descriptor);
            Some(Self { descriptor, page, process: process_number() })
        });
        opened.filter(|counter| counter.count() > Some(0))
    }

    /// Returns the count of the thread. Returns `None` if the counter does not answer: in a forked child, after the
    /// program has closed the descriptor, or if the processor had no counter to spare for some time.
    pub(super) fn count(&self) -> Option<u64> {
        if self.process != process_number() {
            return None;
        }
        self.count_of_page().or_else(|| self.ask_kernel())
    }

    fn count_of_page(&self) -> Option<u64> {
        let page = self.page.filter(|_| performance_counter::EXISTS)?;
        // SAFETY: the page is mapped and aligned, and stays until the drop. This is the process that has mapped it.
        // The kernel changes only fields that are atomics here.
        let page = unsafe { page.as_ref() };
        // SAFETY: the page says that the thread may read the counter with this index.
        page.count(|index| unsafe { performance_counter::read(index) })
    }

    fn ask_kernel(&self) -> Option<u64> {
        let mut count = 0_u64;
        let read = keeping_errno(|| {
            // A read from another file would take the program's bytes.
            let descriptor = self.descriptor.checked()?.as_raw_fd();
            // SAFETY: `count` is valid for writes of the 8 bytes that the call may write at most.
            Some(unsafe { libc::read(descriptor, (&raw mut count).cast(), 8) })
        });
        // The kernel writes nothing if the counter has failed.
        (read == Some(8)).then_some(count)
    }
}

impl Drop for HardwareCounter {
    fn drop(&mut self) {
        // A child may have mapped something else at this address.
        if let Some(page) = self.page.filter(|_| self.process == process_number()) {
            // SAFETY: the page was mapped for this value, and no reference to it outlives the value.
            let _ = unsafe { munmap(page.as_ptr().cast(), rustix::param::page_size()) };
        }
    }
}

fn open_event(event: CountedEvent) -> Option<OwnedFd> {
    let (kind, config) = match event {
        // PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
        CountedEvent::Instructions => (0, 1),
        // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK
        #[cfg(test)]
        CountedEvent::TaskClock => (1, 1),
    };
    // `struct perf_event_attr` in its first version, 64 bytes: type and size, config, and in word 5 the flags `pinned`
    // (bit 2), `exclude_kernel` (bit 5) and `exclude_hv` (bit 6). A pinned event never shares a counter with others: it
    // counts all the time, or it fails.
    let mut attributes = [0_u64; 8];
    attributes[0] = 64 << 32 | kind;
    attributes[1] = config;
    attributes[5] = 1 << 2 | 1 << 5 | 1 << 6;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let (this_thread, any_processor, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: perf_event_open reads `attributes`, whose size is in its second u32, and writes no memory.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            this_thread,
            any_processor,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = i32::try_from(opened).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the call has just returned this descriptor, so it is open, and nobody else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Maps the kernel's page. Returns `None` if the process may map no more.
fn map_page(descriptor: &OwnDescriptor) -> Option<NonNull<CounterPage>> {
    let bytes = rustix::param::page_size();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, descriptor, 0) };
    NonNull::new(page.ok()?.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::same_pid;
    use std::hint::black_box;
    use std::sync::{Mutex, PoisonError, mpsc};

    /// The lock of tests that have counters in this process.
    static COUNTERS: Mutex<()> = Mutex::new(());

    /// Opens a counter that every machine has, or says that the test is skipped.
    fn task_clock() -> Option<HardwareCounter> {
        let counter = HardwareCounter::open(CountedEvent::TaskClock);
        if counter.is_none() {
            crate::missing::skipped("perf_event_open is not allowed here (see /proc/sys/kernel/perf_event_paranoid)");
        }
        counter
    }

    /// Runs until the count has grown by a millisecond of the thread's own time.
    fn run(counter: &HardwareCounter) -> u64 {
        let before = counter.count().unwrap();
        loop {
            black_box((0..black_box(10_000_u64)).sum::<u64>());
            let now = counter.count().unwrap();
            if now > before + 1_000_000 {
                return now - before;
            }
        }
    }

    /// Returns the number of pages of counters that this process has mapped.
    fn pages() -> usize {
        std::fs::read_to_string("/proc/self/maps").unwrap().matches("[perf_event]").count()
    }

    #[test]
    fn a_counter_of_the_kernel_is_opened_mapped_read_and_closed_by_each_thread() {
        let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counter) = task_clock() else { return };
        run(&counter);
        assert!(counter.page.is_some() && counter.count_of_page().is_none(), "no counter of the processor counts time");
        // Another thread counts for itself.
        let (say, hear) = mpsc::channel();
        let other = std::thread::spawn(move || {
            let own = task_clock().unwrap();
            let before = own.count().unwrap();
            say.send(()).unwrap();
            (own.count().unwrap() - before, run(&own), pages())
        });
        hear.recv().unwrap();
        let before = counter.count().unwrap();
        let (.., mapped) = other.join().unwrap();
        let waited = counter.count().unwrap() - before;
        assert!(waited < 1_000_000, "the thread has waited, and its counter has grown by {waited}");
        // The other thread's counter is gone with its thread.
        assert_eq!((mapped, pages()), (2, 1));
        drop(counter);
        assert_eq!(pages(), 0);
    }

    #[test]
    fn a_forked_child_does_not_read_the_counter_of_its_parent() {
        let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        if task_clock().is_none() {
            return;
        }
        // The parent of the child is a process with one thread. Neither prints, because other threads may hold a lock.
        let forked = same_pid::fork(|| match HardwareCounter::open(CountedEvent::TaskClock) {
            None => 0,
            Some(counter) => {
                let child = same_pid::fork(|| {
                    let is_silent = counter.count().is_none();
                    let own = HardwareCounter::open(CountedEvent::TaskClock);
                    u8::from(is_silent && own.is_some_and(|own| run(&own) > 0))
                });
                u8::from(child.is_one() && counter.count().is_some())
            }
        });
        assert!(forked.is_one());
    }

    #[test]
    fn a_descriptor_that_the_program_has_closed_is_not_read() {
        let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        if task_clock().is_none() {
            return;
        }
        let forked = same_pid::fork(|| {
            let Some(counter) = HardwareCounter::open(CountedEvent::TaskClock) else { return 0 };
            let (theirs, writer) = std::io::pipe().unwrap();
            std::io::Write::write_all(&mut &writer, b"12345678").unwrap();
            // SAFETY: both descriptors are open. The program's file takes the place of the counter.
            unsafe { libc::dup2(theirs.as_raw_fd(), counter.descriptor.checked().unwrap().as_raw_fd()) };
            let is_silent = counter.count().is_none();
            drop(writer);
            let mut left = Vec::new();
            std::io::Read::read_to_end(&mut &theirs, &mut left).unwrap();
            u8::from(is_silent && left == b"12345678")
        });
        assert!(forked.is_one());
    }

    #[test]
    fn the_processors_counter_grows_if_there_is_one() {
        let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counter) = HardwareCounter::open(CountedEvent::Instructions) else {
            return crate::missing::skipped("the processor has no counter that this process may use");
        };
        let before = counter.count().unwrap();
        let sum: u64 = (0..black_box(1000_u64)).map(black_box).sum();
        let after = counter.count().unwrap();
        assert!(after >= before + 1000, "{before} {after} {sum}");
        // The kernel counts on while it is asked. The program has executed little meanwhile.
        if let Some(of_page) = counter.count_of_page() {
            assert!((after..after + 100_000).contains(&of_page), "{after} {of_page}");
        }
    }
}
