//! What the kernel has counted for the calling thread.

use super::descriptor::OwnDescriptor;
use super::errno::keeping_errno;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::pread;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns how long the calling thread has run on a processor, in nanoseconds. Returns `None` if it may not ask.
pub(crate) fn thread_cpu_nanos() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    let result = keeping_errno(|| unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) });
    (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Counts of a thread, since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadUsage {
    pub(crate) voluntary_switches: u32,
    pub(crate) involuntary_switches: u32,
    pub(crate) minor_faults: u32,
    pub(crate) major_faults: u32,
}

impl ThreadUsage {
    /// Asks the kernel for the counts of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        // SAFETY: the struct consists of integers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writes. Where a sandbox refuses the call, it leaves zeros.
        keeping_errno(|| unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) });
        // Counts that have wrapped have right differences.
        Self {
            voluntary_switches: usage.ru_nvcsw as u32,
            involuntary_switches: usage.ru_nivcsw as u32,
            minor_faults: usage.ru_minflt as u32,
            major_faults: usage.ru_majflt as u32,
        }
    }
}

/// What the file `schedstat` of a thread says, since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// How long the thread could have run, but had no processor.
    pub(crate) queue_nanos: u64,
    /// How often it got a processor.
    pub(crate) slices: u64,
}

/// The largest number of threads that keep their file open, and the largest part of the descriptors that the program
/// may have. A thread beyond that opens the file for each read.
const OPEN_MAX: u64 = 512;
const PART_MAX: u64 = 16;
/// The number of threads that keep their file open.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// The file `schedstat` of the thread that has opened it.
#[derive(Debug)]
pub(crate) struct SchedstatFile(Option<OwnDescriptor>);

impl SchedstatFile {
    /// Opens the file of the calling thread, and keeps it open unless many threads do.
    pub(crate) fn open() -> Self {
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // Relaxed: a count.
        let is_kept = u64::from(OPEN.fetch_add(1, Ordering::Relaxed)) < OPEN_MAX.min(allowed / PART_MAX);
        let file = if is_kept { open() } else { None };
        if file.is_none() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        Self(file)
    }

    /// Reads the file, on the thread that has opened it. Returns `None` if the kernel counts nothing, or if there is no
    /// such file.
    pub(crate) fn read(&self) -> Option<Scheduled> {
        match &self.0 {
            // The program may have closed the descriptor, and another file may have its number. Some devices would give
            // away what the program waits for.
            Some(file) => file.checked().and_then(read).or_else(|| read(open()?.as_fd())),
            None => read(open()?.as_fd()),
        }
    }
}

impl Drop for SchedstatFile {
    fn drop(&mut self) {
        if self.0.is_some() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn open() -> Option<OwnDescriptor> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    keeping_errno(|| OwnDescriptor::new(openat(CWD, c"/proc/thread-self/schedstat", flags, Mode::empty()).ok()?).ok())
}

fn read(file: BorrowedFd<'_>) -> Option<Scheduled> {
    // Three numbers of at most 20 digits.
    let mut bytes = [0; 64];
    let length = keeping_errno(|| pread(file, &mut bytes, 0)).ok()?;
    parse(bytes.get(..length)?, thread_cpu_nanos()?)
}

/// Reads the three numbers: nanoseconds on a processor, nanoseconds in the queue, slices.
fn parse(text: &[u8], cpu_nanos: u64) -> Option<Scheduled> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
    let (run_nanos, queue_nanos, slices) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // A thread that reads this has run. Zeros come from a kernel that does not count, and another file may have any
    // text.
    let is_its = numbers.next().is_none() && slices > 0 && run_nanos <= cpu_nanos;
    is_its.then_some(Scheduled { queue_nanos, slices })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_running_thread_is_taken() {
        let taken = Scheduled { queue_nanos: 2, slices: 3 };
        assert_eq!(parse(b"1 2 3\n", 1), Some(taken));
        for other in ["", "\n", "1 2 3", "1 2\n", "1 2 3 4\n", "0 0 0\n", "2 2 3\n", "1 -2 3\n", "x"] {
            assert_eq!(parse(other.as_bytes(), 1), None, "{other:?}");
        }
    }

    #[test]
    fn a_thread_sees_its_own_slices_and_switches_and_finds_its_file_again() {
        let of_thread = || {
            let file = SchedstatFile::open();
            let before = (ThreadUsage::of_this_thread(), file.read());
            std::thread::sleep(std::time::Duration::from_millis(1));
            (before, (ThreadUsage::of_this_thread(), file.read()), SchedstatFile(None).read().is_some())
        };
        let (before, after, is_found) = std::thread::spawn(of_thread).join().unwrap();
        assert!(after.0.voluntary_switches > before.0.voluntary_switches);
        let Some((before, after)) = before.1.zip(after.1) else {
            return crate::missing::skipped("the kernel does not count what its threads do (CONFIG_SCHED_INFO)");
        };
        assert!(after.slices > before.slices && is_found);
    }
}
