//! Protection against the truncation of a mapped file by another program.
//!
//! An access beyond the new end of a truncated file raises SIGBUS, which kills the process. So the first mapping
//! installs a signal handler. The handler maps zero pages from the faulting page to the end of its section (header,
//! descriptors, payload, mirror of the payload, or context). It marks the mapping as truncated.
//!
//! The interrupted access then reads zeros. Callers check sequence numbers and magic numbers, so they find no event in
//! the zeros.
//!
//! Limits:
//! - The handler hides only missing pages of mapped ring files. Any other SIGBUS acts as without this handler.
//! - If the program later installs a SIGBUS handler that does not call the previous one, this module's handler is no
//!   longer called.
//! - Hardware memory errors (`BUS_MCEERR_*`) are not hidden: every process that uses the lost page must notice.
//! - A writer whose file was truncated continues to write, into private pages. They take as much memory as the missing
//!   part of the file took.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering, fence};

use libc::{c_int, c_void, siginfo_t};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::super::system::handler_list::{HandlerList, ListEntry};
use super::super::system::pinned;

/// The number of section borders that a mapping has. They are the starts of header, descriptors, payload, mirror and
/// context, and the end.
const EDGES: usize = 6;

/// The address range of a mapping whose file may be truncated. `edges` holds the addresses of its section borders.
pub(in crate::shm::linux) struct Range {
    pub edges: [usize; EDGES],
    pub page_bytes: usize,
    pub writable: bool,
}

/// An entry of the handler's list, which holds a [`Range`].
///
/// `version` makes the entry a sequence lock: it is odd while `set` changes the entry. The signal handler skips an
/// entry with an odd version, and does not wait for it. The handler cannot miss the entry that it needs: a thread that
/// faults in a mapping borrows the mapping, so `set` has finished for the entry of this mapping, and no other `set` has
/// begun.
struct RangeEntry {
    claimed: AtomicBool,
    version: AtomicUsize,
    edges: [AtomicUsize; EDGES],
    page_bytes: AtomicUsize,
    writable: AtomicBool,
    truncated: AtomicBool,
}

impl ListEntry for RangeEntry {
    const EMPTY: Self = Self {
        claimed: AtomicBool::new(false),
        version: AtomicUsize::new(0),
        edges: [const { AtomicUsize::new(0) }; EDGES],
        page_bytes: AtomicUsize::new(0),
        writable: AtomicBool::new(false),
        truncated: AtomicBool::new(false),
    };

    fn try_claim(&self) -> bool {
        // Acquire, pairs with the release in `RangeRegistration::drop`: the stores of the previous claimant happen
        // before the stores of this claimant.
        !self.claimed.load(Ordering::Relaxed) && !self.claimed.swap(true, Ordering::Acquire)
    }
}

impl RangeEntry {
    /// Stores a new range in the entry. Only the claimant calls this, so `version` has only one writer.
    #[inline(never)]
    fn set(&self, range: &Range) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Release fence, pairs with the acquire fence in `find`: if the handler has read a changed field, its second
        // load of `version` reads a changed version.
        fence(Ordering::Release);
        for (slot, edge) in self.edges.iter().zip(range.edges) {
            slot.store(edge, Ordering::Relaxed);
        }
        self.page_bytes.store(range.page_bytes, Ordering::Relaxed);
        self.writable.store(range.writable, Ordering::Relaxed);
        self.truncated.store(false, Ordering::Relaxed);
        // Release, pairs with the acquire load in `find`: a handler that reads this even version also reads these
        // fields.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the range of the entry. Returns `None` if `address` is not in the range, or if the entry is being
    /// changed.
    fn find(&self, address: usize) -> Option<Range> {
        let before = self.version.load(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        let range = Range {
            edges: std::array::from_fn(|i| self.edges[i].load(Ordering::Relaxed)),
            page_bytes: self.page_bytes.load(Ordering::Relaxed),
            writable: self.writable.load(Ordering::Relaxed),
        };
        // Acquire fence, pairs with the release fence in `set`: if a load above has read a field of a newer range, the
        // load below reads a newer version.
        fence(Ordering::Acquire);
        let is_same = self.version.load(Ordering::Relaxed) == before;
        (is_same && range.edges[0] <= address && address < range.edges[EDGES - 1]).then_some(range)
    }
}

static RANGES: HandlerList<RangeEntry> = HandlerList::new();

/// The registration of a range with the handler.
#[derive(Debug)]
pub(in crate::shm::linux) struct RangeRegistration {
    slot: &'static RangeEntry,
}

impl std::fmt::Debug for RangeEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RangeEntry").field("truncated", &self.truncated).finish_non_exhaustive()
    }
}

impl RangeRegistration {
    /// Returns true if the signal handler has replaced pages of the range.
    pub(in crate::shm::linux) fn was_truncated(&self) -> bool {
        // Acquire, pairs with the release in `replace_lost_pages`.
        self.slot.truncated.load(Ordering::Acquire)
    }
}

impl Drop for RangeRegistration {
    fn drop(&mut self) {
        self.slot.set(&Range { edges: [0; EDGES], page_bytes: 0, writable: false });
        self.slot.claimed.store(false, Ordering::Release);
    }
}

/// Registers the range, so that accesses to it survive a truncation of the file. The first call installs the handler.
pub(in crate::shm::linux) fn register(range: Range) -> RangeRegistration {
    install();
    let slot = RANGES.claim();
    slot.set(&range);
    RangeRegistration { slot }
}

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The previous handler: a function, `SIG_DFL` or `SIG_IGN`.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

fn install() {
    // If another thread is installing the handler at this moment, this call does not wait, because after a fork that
    // thread may not exist. So this call may return shortly before the handler is installed.
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return;
    }
    pinned::keep_loaded();
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null new action, the call only asks for the present action. `old` has room for one action.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), old.as_mut_ptr()) };
    if asked != 0 {
        return;
    }
    // SAFETY: the call succeeded and filled `old`.
    let old = unsafe { old.assume_init() };
    PREVIOUS.store(old.sa_sigaction, Ordering::Relaxed);
    PREVIOUS_FLAGS.store(old.sa_flags, Ordering::Relaxed);
    let mut new = old;
    new.sa_sigaction = on_sigbus as *const () as usize;
    // `on_sigbus` may call the previous handler, so the mask, SA_NODEFER and SA_RESTART of the previous handler are
    // kept. SA_ONSTACK is set for threads whose stack is small or has overflowed.
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (old.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART));
    // SAFETY: `on_sigbus` has the signature that SA_SIGINFO requires. It is async-signal-safe, because it uses only
    // atomics, mmap, sigaction and raise.
    unsafe { libc::sigaction(libc::SIGBUS, &new, ptr::null_mut()) };
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: under SA_SIGINFO the kernel passes a valid record. The record is on this stack, and lives until we
    // return.
    let cause = unsafe { &*info };
    let code = cause.si_code;
    if code == libc::BUS_ADRERR {
        // SAFETY: the kernel has set the code BUS_ADRERR. With this code, a SIGBUS carries the address of the faulting
        // access.
        let address = unsafe { cause.si_addr() }.addr();
        if replace_lost_pages(address) {
            return;
        }
    }
    call_previous(signal, code, info, context);
}

/// Maps zero pages over the range from the faulting page to the end of its section. Returns false if the address is in
/// no registered range, or the mapping fails. This function is async-signal-safe.
fn replace_lost_pages(address: usize) -> bool {
    let Some((slot, range)) = RANGES.iter().find_map(|slot| Some((slot, slot.find(address)?))) else {
        return false;
    };
    let Some(end) = range.edges.into_iter().find(|&edge| edge > address) else {
        return false;
    };
    let start = address & !(range.page_bytes - 1);
    // The header section may end inside a page. This page also holds the first descriptors, and is replaced as a
    // whole.
    let end = end.next_multiple_of(range.page_bytes);
    let rights = if range.writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let place = ptr::with_exposed_provenance_mut::<c_void>(start);
    // Release, pairs with the acquire in `was_truncated`. The flag is set before the pages change: a reader that has
    // read the zeros and asks afterwards finds the flag set.
    slot.truncated.store(true, Ordering::Release);
    // SAFETY: [start, end) lies within one registered mapping, which is alive because the faulting thread uses it. The
    // documentation of `Mapping` says that its pages may be replaced, and nobody holds Rust references into it.
    let mapped = unsafe { mmap_anonymous(place, end - start, rights, flags) };
    mapped.is_ok()
}

/// Does what would happen without this handler: calls the previous handler, ignores the signal, or takes the default
/// action.
fn call_previous(signal: c_int, code: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.load(Ordering::Relaxed);
    let flags = PREVIOUS_FLAGS.load(Ordering::Relaxed);
    // A code of 0 or below means that a process sent the signal, by `kill` or `sigqueue`. No instruction has faulted,
    // so none will fault again when this handler has returned.
    let was_sent = code <= 0;
    if previous == libc::SIG_IGN && was_sent {
        return;
    }
    if previous == libc::SIG_DFL || previous == libc::SIG_IGN {
        restore_default(signal);
        if was_sent {
            // SAFETY: `raise` is async-signal-safe. The signal is blocked until the handler returns. Then it kills the
            // process.
            unsafe { libc::raise(signal) };
        }
        // If an instruction has faulted, it is executed again when the handler has returned, and faults again. The
        // default action then kills the process.
        return;
    }
    if flags & libc::SA_RESETHAND != 0 {
        PREVIOUS.store(libc::SIG_DFL, Ordering::Relaxed);
    }
    if flags & libc::SA_SIGINFO != 0 {
        // SAFETY: with SA_SIGINFO, the stored word is the address of a function of this type.
        let handler =
            unsafe { std::mem::transmute::<usize, extern "C" fn(c_int, *mut siginfo_t, *mut c_void)>(previous) };
        handler(signal, info, context);
    } else {
        // SAFETY: without SA_SIGINFO, the stored word is the address of a function of this type. It is neither SIG_DFL
        // nor SIG_IGN, as checked above.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(previous) };
        handler(signal);
    }
}

fn restore_default(signal: c_int) {
    // SAFETY: all-zero bytes are a valid action: SIG_DFL without flags, with an empty mask.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `default` is a valid action.
    unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
}
