//! Counts of the instructions that a thread has executed.

mod hardware;
mod page;

use crate::shm::keeping_errno;
use hardware::{CountedEvent, HardwareCounter};

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
    /// The processor's counter (perf_event_open(2)).
    Hardware(HardwareCounter),
}

impl InstructionCounter {
    /// Returns the counter of the plugin if this program runs under QEMU with the plugin.
    pub(crate) fn of_plugin() -> Option<Self> {
        ask(THREAD_COUNT).map(|_| Self::Plugin)
    }

    /// Returns the processor's counter for the calling thread. Returns `None` if the processor has none, or if the
    /// kernel does not allow its use.
    pub(crate) fn of_hardware() -> Option<Self> {
        HardwareCounter::open(CountedEvent::Instructions).map(Self::Hardware)
    }

    /// Returns the number of instructions that the calling thread has executed, counted from some moment of its past.
    /// Returns 0 if the counter does not answer any more.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Plugin => ask(THREAD_COUNT).unwrap_or(0),
            Self::Hardware(counter) => counter.count().unwrap_or(0),
        }
    }
}

fn ask(descriptor: u32) -> Option<u64> {
    let mut answer = NO_ANSWER;
    // SAFETY: `answer` is valid for writes of the 8 bytes that the call may write at most.
    keeping_errno(|| unsafe { libc::read(descriptor.cast_signed(), (&raw mut answer).cast(), 8) });
    (answer != NO_ANSWER).then_some(answer)
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
}
