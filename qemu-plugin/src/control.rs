//! Requests of the guest: `read` system calls with an impossible descriptor. The README has the table.
//!
//! The system call still happens and fails with `EBADF`, with or without the plugin. A guest recognises an answer by
//! the changed buffer.

use crate::qemu::{InstructionView, PluginId};
use crate::slots;
use std::cell::Cell;
use std::ffi::c_uint;
use std::ptr;
use std::sync::OnceLock;

/// The number of `read` on x86-64.
const READ: i64 = 0;
/// The only length of a buffer that is answered.
const ANSWER_BYTES: u64 = 8;
/// The version of the requests.
const PROTOCOL: u64 = 1;

const START: u32 = 0xcafe_babe;
const STOP: u32 = 0xcafe_babf;
const THREAD: u32 = 0xcafe_bac0;
const PROCESS: u32 = 0xcafe_bac1;
const SLOT: u32 = 0xcafe_bac2;
const VERSION: u32 = 0xcafe_bac3;

/// The distance from an address in the guest to the same place in QEMU's process.
static GUEST_BASE: OnceLock<u64> = OnceLock::new();

thread_local! {
    /// The count at the start request of this thread.
    static STARTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Remembers the guest base. An instruction shows it by its two addresses.
pub fn learn_guest_base(instruction: InstructionView) {
    if GUEST_BASE.get().is_none() {
        let host = instruction.host_address();
        if host != 0 {
            GUEST_BASE.get_or_init(|| host.wrapping_sub(instruction.address()));
        }
    }
}

/// Answers a request, if the system call is one.
#[allow(clippy::too_many_arguments, reason = "QEMU passes eight arguments of the system call")]
pub extern "C" fn system_call(
    _: PluginId,
    _: c_uint,
    number: i64,
    descriptor: u64,
    buffer: u64,
    length: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    // The kernel looks at 32 bits of the descriptor, and guests extend its sign or not.
    let request = descriptor as u32;
    if number != READ || !(START..=VERSION).contains(&request) {
        return;
    }
    if request == START {
        STARTED.set(Some(slots::mine().count()));
        return;
    }
    if length != ANSWER_BYTES {
        return;
    }
    let Some(&base) = GUEST_BASE.get() else { return };
    if let Some(value) = answer(request, base) {
        // A guest that passes a wrong address finds its buffer unchanged.
        write(base.wrapping_add(buffer), value);
    }
}

/// Returns the answer to a request, if it has one.
fn answer(request: u32, base: u64) -> Option<u64> {
    match request {
        STOP => STARTED.take().map(|started| slots::mine().count() - started),
        THREAD => Some(slots::mine().count()),
        PROCESS => Some(slots::threads().total()),
        // With another base, no address of the guest leads to the slot.
        SLOT => (base == 0).then(|| ptr::from_ref(slots::mine()).addr() as u64),
        VERSION => Some(crate::mode().number() << 32 | PROTOCOL),
        _ => None,
    }
}

/// Writes a value into this process, if the eight bytes at the address are writable.
fn write(address: u64, value: u64) {
    let place: *mut u64 = ptr::with_exposed_provenance_mut(address as usize);
    // A store to a wrong address would end QEMU. The kernel checks addresses, so the kernel writes there first. A query
    // of the signal mask is the cheapest system call that writes eight bytes.
    // SAFETY: without a new mask, the call changes nothing but the eight bytes, which the guest gave away.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, ptr::null::<u64>(), place, ANSWER_BYTES as usize)
    };
    if result == 0 {
        // SAFETY: the kernel just wrote the same bytes, and the guest gave them away.
        unsafe { place.write_unaligned(value) }
    }
}
