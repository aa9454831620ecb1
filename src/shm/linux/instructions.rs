//! Counts of the instructions that a thread has executed.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The descriptor of a `read` by which a program asks for the calling thread's count. The plugin of `qemu-plugin/`
/// answers. No process can have this descriptor, so the kernel refuses the read without a look at the buffer.
const THREAD_COUNT: u32 = 0xcafe_bac0;
/// The content of the buffer before the read. It stays there if nobody answers. No thread executes so many
/// instructions.
const NO_ANSWER: u64 = 0xbad0_c0de_bad0_c0de;

/// A counter of the instructions that one thread has executed. Only this thread may read it.
#[derive(Debug)]
pub(crate) enum InstructionCounter {
    /// The plugin of QEMU under which the program runs. It counts exactly.
    Plugin,
    /// The processor's counter, through the kernel (perf_event_open(2)).
    Hardware(OwnedFd),
}

impl InstructionCounter {
    /// Returns the counter of the plugin if this program runs under QEMU with the plugin.
    pub(crate) fn of_plugin() -> Option<Self> {
        ask(THREAD_COUNT).map(|_| Self::Plugin)
    }

    /// Returns the processor's counter for the calling thread. Returns `None` if the processor has none, or if the
    /// kernel does not allow its use.
    pub(crate) fn of_hardware() -> Option<Self> {
        // `struct perf_event_attr` in its first version, 64 bytes: type PERF_TYPE_HARDWARE (0) and size, config
        // PERF_COUNT_HW_INSTRUCTIONS (1), and in word 5 the flags `exclude_kernel` (bit 5) and `exclude_hv` (bit 6).
        let mut attributes = [0_u64; 8];
        attributes[0] = 64 << 32;
        attributes[1] = 1;
        attributes[5] = 1 << 5 | 1 << 6;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        let (this_thread, any_processor, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
        let opened = keeping_errno(|| {
            // SAFETY: perf_event_open reads `attributes`, whose size is in its second u32, and writes no memory.
            unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    attributes.as_ptr(),
                    this_thread,
                    any_processor,
                    no_group,
                    CLOSE_ON_EXEC,
                )
            }
        });
        let descriptor = i32::try_from(opened).ok().filter(|descriptor| *descriptor >= 0)?;
        // SAFETY: the call has just returned this descriptor, so it is open, and nobody else owns it.
        Some(Self::Hardware(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Returns the number of instructions that the calling thread has executed, counted from some moment of its past.
    /// Returns 0 if the counter does not answer any more.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Plugin => ask(THREAD_COUNT).unwrap_or(0),
            Self::Hardware(counter) => read_u64(counter.as_raw_fd()).unwrap_or(0),
        }
    }
}

fn ask(descriptor: u32) -> Option<u64> {
    let mut answer = NO_ANSWER;
    read_into(descriptor.cast_signed(), &mut answer);
    (answer != NO_ANSWER).then_some(answer)
}

fn read_u64(descriptor: libc::c_int) -> Option<u64> {
    let mut count = 0;
    (read_into(descriptor, &mut count) == 8).then_some(count)
}

fn read_into(descriptor: libc::c_int, number: &mut u64) -> isize {
    // SAFETY: `number` is valid for writes of the 8 bytes that the call may write at most.
    keeping_errno(|| unsafe { libc::read(descriptor, std::ptr::from_mut(number).cast(), 8) })
}

/// Calls `f`, and then restores `errno`. The program may be about to look at it.
fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the function returns the address of the calling thread's `errno`, which is valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; no other thread accesses this `errno`.
    let before = unsafe { *errno };
    let result = f();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_plugin_nobody_answers_and_errno_stays() {
        // SAFETY: `close` of an impossible descriptor has no effect but its error.
        unsafe { libc::close(-1) };
        assert!(InstructionCounter::of_plugin().is_none());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
        assert_eq!(std::fs::File::open("/no such file").unwrap_err().raw_os_error(), Some(libc::ENOENT));
        ask(THREAD_COUNT);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn the_processors_counter_grows_if_there_is_one() {
        let Some(counter) = InstructionCounter::of_hardware() else {
            return eprintln!("skipped: the processor has no counter that this process may use");
        };
        let before = counter.count();
        let sum: u64 = (0..std::hint::black_box(1000_u64)).map(std::hint::black_box).sum();
        assert!(counter.count() >= before + 1000, "{before} {sum}");
    }
}
