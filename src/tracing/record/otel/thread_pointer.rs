//! The symbol `otel_thread_ctx_v1`: in each thread, a pointer to the thread's record.

use super::thread_record::ThreadRecord;

// A thread-local with a name that others look up. Rust has no such item on stable, so it is made in assembly.
std::arch::global_asm!(
    ".pushsection .tbss.otel_thread_ctx_v1,\"awT\",@nobits",
    ".globl otel_thread_ctx_v1",
    ".type otel_thread_ctx_v1,@object",
    ".size otel_thread_ctx_v1,8",
    ".p2align 3",
    "otel_thread_ctx_v1:",
    ".zero 8",
    ".popsection",
);

/// Makes the symbol of the calling thread point to the thread's record.
pub(super) fn set(record: &ThreadRecord) {
    let pointer: *mut *const ThreadRecord;
    // SAFETY: this is the sequence of the TLS descriptor's dialect, as the linker expects and may relax it. It computes
    // the address of the calling thread's variable in `rax`. The call that it contains preserves all other registers
    // but the flags, and needs an aligned stack, which the compiler gives.
    unsafe {
        std::arch::asm!(
            "lea rax, [rip + otel_thread_ctx_v1@tlsdesc]",
            "call [rax + otel_thread_ctx_v1@tlscall]",
            "add rax, fs:0",
            out("rax") pointer,
        );
    }
    // SAFETY: `pointer` is the address of a variable of this thread, of the size of a pointer and aligned as one. No
    // other code of the program writes it. The write is volatile, because readers are outside of the program.
    unsafe { pointer.write_volatile(record) };
}
