//! Tells a thread, without a system call, whether it has left its processor since it last asked.
//!
//! The kernel shares a `struct rseq` with each thread (rseq(2)), which glibc registers. The word `rseq_cs` of this
//! struct points to the descriptor of a critical section, or is NULL. When the kernel switches, moves or interrupts a
//! thread outside of the section's code, it sets the word to NULL.
//!
//! So a thread points the word to the descriptor of a section that has no code. As long as the word stays, the thread
//! has kept its processor.
//!
//! The word may also change for another reason: a move to another processor, a signal, or a library of the program that
//! uses `rseq_cs` itself. So a change means: *perhaps*. Such a library has no section open while this code runs, so it
//! loses nothing when this code stores to the word.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The descriptor of a critical section (`struct rseq_cs` of linux/rseq.h).
#[repr(C, align(32))]
struct Section {
    version: u32,
    flags: u32,
    start: *const u8,
    bytes: u64,
    abort: *const u8,
}

/// Memory that looks like the code to which the kernel would lead a thread out of the section. It is never executed,
/// because no thread is ever inside the section.
#[repr(C, align(32))]
struct Abort {
    /// The kernel ends the program if the four bytes before the abort address are not the signature with which the
    /// thread's `struct rseq` was registered.
    signature: u32,
    address: [u8; 4],
}

static ABORT: Abort = Abort { signature: imp::SIGNATURE, address: [0; 4] };

static SECTION: Section = Section {
    version: 0,
    flags: 0,
    start: (&raw const ABORT.address).cast(),
    bytes: 0,
    abort: (&raw const ABORT.address).cast(),
};

// SAFETY: nobody ever writes to the section or to what its pointers point to.
unsafe impl Sync for Section {}

/// The word of threads for which nobody tells whether they have left their processor.
static NOT_TOLD: AtomicPtr<Section> = AtomicPtr::new((&raw const SECTION).cast_mut());

/// The word that tells a thread whether it has left its processor. Each thread has its own.
pub(crate) struct SwitchWord(Cell<*const AtomicPtr<Section>>);

impl SwitchWord {
    /// Makes a word that tells nothing: the thread seems to keep its processor.
    pub(crate) const fn not_told() -> Self {
        Self(Cell::new(&raw const NOT_TOLD))
    }

    /// Lets the word tell of the calling thread, or of nothing without an offset. Returns whether it tells.
    pub(crate) fn tell(&self, offset: Option<Offset>) -> bool {
        let word = offset.and_then(imp::word);
        self.0.set(word.unwrap_or(&raw const NOT_TOLD));
        word.is_some()
    }

    /// Returns true if the thread has surely kept its processor since [`Self::arm`], or if nobody tells.
    #[inline(always)]
    pub(crate) fn is_armed(&self) -> bool {
        // SAFETY: the pointer is that of a static, or `imp::word` has made it on this thread. It then points into the
        // thread's own memory, which stays until the thread's last instruction.
        let word = unsafe { &*self.0.get() };
        // Relaxed: only this thread stores to the word, and the kernel while the thread does not run.
        ptr::eq(word.load(Ordering::Relaxed), &raw const SECTION)
    }

    /// Asks anew: from now on, [`Self::is_armed`] returns false as soon as the thread has left its processor.
    pub(crate) fn arm(&self) {
        // SAFETY: as in `is_armed`. The static gets the value that it has.
        let word = unsafe { &*self.0.get() };
        word.store((&raw const SECTION).cast_mut(), Ordering::Relaxed);
    }
}

/// Where each thread has its `struct rseq`: the distance from the thread pointer, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Offset(isize);

/// Why nobody tells threads whether they have left their processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotTold {
    /// This processor's code is not part of the library.
    #[allow(dead_code, reason = "only some builds lack it")]
    Architecture,
    /// The C library does not register a `struct rseq`: it is not glibc, or it is older than 2.35.
    Library,
    /// The registration was switched off, or the kernel refused it.
    SwitchedOff,
    /// The kernel does not change the word when a thread waits in a system call (Linux 6.19 and later).
    Kernel,
}

/// Finds out whether threads are told, by waiting for a few times in the calling thread.
pub(crate) fn find() -> Result<Offset, NotTold> {
    imp::find()
}

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(eventring_portable, eventring_unsupported, miri))
))]
mod imp {
    use super::{NotTold, Offset, Section, SwitchWord};
    use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
    use std::time::Duration;

    #[cfg(target_arch = "x86_64")]
    pub(super) const SIGNATURE: u32 = 0x5305_3053;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SIGNATURE: u32 = 0xd428_bc00;

    /// The offset of `cpu_id` in `struct rseq`. It is negative if the thread has no registration.
    const CPU_ID: isize = 4;
    /// The offset of `rseq_cs`.
    const RSEQ_CS: isize = 8;
    /// The smallest size of a `struct rseq` that has both.
    const BYTES_MIN: u32 = 16;
    /// How often [`find`] waits.
    const TRIES: u32 = 3;

    pub(super) fn find() -> Result<Offset, NotTold> {
        let [offset, bytes] = [c"__rseq_offset", c"__rseq_size"].map(|name| {
            // SAFETY: the name is a C string. The call looks up a symbol and has no other effect.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        });
        if offset.is_null() || bytes.is_null() {
            return Err(NotTold::Library);
        }
        // SAFETY: glibc defines both symbols, as constants of these types (sys/rseq.h), and sets them before the
        // program's first instruction.
        let bytes = unsafe { bytes.cast::<u32>().read() };
        // SAFETY: as above.
        let offset = Offset(unsafe { offset.cast::<isize>().read() });
        if bytes < BYTES_MIN || word(offset).is_none() {
            return Err(NotTold::SwitchedOff);
        }
        let word = SwitchWord::not_told();
        word.tell(Some(offset));
        for _ in 0..TRIES {
            word.arm();
            std::thread::sleep(Duration::from_micros(100));
            if word.is_armed() {
                return Err(NotTold::Kernel);
            }
        }
        Ok(offset)
    }

    /// Returns the word of the calling thread. Returns `None` if the kernel knows no `struct rseq` of the thread.
    pub(super) fn word(Offset(offset): Offset) -> Option<*const AtomicPtr<Section>> {
        let rseq = thread_pointer().wrapping_offset(offset);
        // SAFETY: code here uses thread-locals, so the thread pointer is that of a control block of glibc. `find` has got
        // `offset` from glibc, which has at least 32 bytes there in each block. The kernel writes `cpu_id` only while
        // the thread does not run.
        let cpu_id = unsafe { &*rseq.wrapping_offset(CPU_ID).cast::<AtomicI32>() };
        let word = rseq.wrapping_offset(RSEQ_CS).cast::<AtomicPtr<Section>>();
        (cpu_id.load(Ordering::Relaxed) >= 0).then_some(word)
    }

    fn thread_pointer() -> *const u8 {
        let pointer: *const u8;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: on Linux, the first word of a thread's control block is the block's own address.
        unsafe {
            std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: user code may read this register.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
        }
        pointer
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(eventring_portable, eventring_unsupported, miri))
)))]
mod imp {
    use super::{NotTold, Offset, Section};
    use std::sync::atomic::AtomicPtr;

    pub(super) const SIGNATURE: u32 = 0;

    pub(super) fn find() -> Result<Offset, NotTold> {
        Err(NotTold::Architecture)
    }

    pub(super) fn word(_: Offset) -> Option<*const AtomicPtr<Section>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_has_left_its_processor() {
        let Ok(offset) = find() else {
            return crate::missing::skipped(
                "this system does not tell threads whether they have left their processors",
            );
        };
        std::thread::spawn(move || {
            let word = SwitchWord::not_told();
            assert!(word.is_armed());
            assert!(word.tell(Some(offset)));
            word.arm();
            std::thread::sleep(std::time::Duration::from_micros(1));
            assert!(!word.is_armed());
            // A thread keeps its processor through a few instructions, sooner or later.
            let has_stayed = || {
                word.arm();
                word.is_armed()
            };
            assert!((0..1000).any(|_| has_stayed()));
            assert!(!word.tell(None) && word.is_armed());
        })
        .join()
        .unwrap();
    }
}
