//! The typed events that record what the kernel did with a program's threads. They have rings of their own, so
//! captures, `watch` and tables work as for any other ring.

use eventring::schema::Utf8;
use eventring::{EventPayload, EventType, PayloadField};

/// The name of a thread, as the kernel keeps it: 16 bytes, filled with zeros.
pub type ThreadName = [Utf8; 16];

/// Why a thread is not on a processor any more.
#[derive(PayloadField, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum OffState {
    /// It could go on, but another thread runs.
    Runnable = 0,
    /// It sleeps, and signals wake it.
    Sleeping = 1,
    /// It waits for something that signals do not interrupt: mostly input or output, or memory.
    Uninterruptible = 2,
    /// It is stopped or traced.
    Stopped = 3,
    /// It has ended.
    Ended = 4,
}

/// A thread has left a processor.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchedOut {
    /// The thread, as the system numbers it.
    pub thread_id: u32,
    /// The thread that runs instead; 0 if none does.
    pub next_thread_id: u32,
    /// The stack at which it left, in the ring of stacks; 0 if it is not known.
    pub stack_id: u64,
    /// The number of the system call that it is in; −1 if it is in none, −2 if it is not known.
    pub syscall: i32,
    /// The processor.
    pub cpu: u16,
    /// Why it does not run.
    pub state: OffState,
    /// The name of the thread that runs instead.
    pub next_name: ThreadName,
}

/// A thread is on a processor again.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchedIn {
    /// The thread, as the system numbers it.
    pub thread_id: u32,
    /// The processor.
    pub cpu: u16,
}

/// A thread that slept may go on.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Woken {
    /// The thread that is woken.
    pub thread_id: u32,
    /// The thread that wakes it; 0 if an interrupt did.
    pub waker_thread_id: u32,
    /// The process of that thread.
    pub waker_process_id: u32,
    /// The processor on which it is to run.
    pub cpu: u16,
    /// The name of the thread that wakes it.
    pub waker_name: ThreadName,
}

/// A system call in which a thread has left its processor, and that has returned.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syscall {
    /// The thread.
    pub thread_id: u32,
    /// The number of the call in the system's table.
    pub number: i32,
    /// How long it took, in nanoseconds. The event's time is its end.
    pub nanos: u64,
    /// What it returned.
    pub result: i64,
}

/// A thread that is followed.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSeen {
    /// Its process.
    pub process_id: u32,
    /// The thread.
    pub thread_id: u32,
    /// Its name.
    pub name: ThreadName,
}

/// A thread has ended.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadEnded {
    /// The thread.
    pub thread_id: u32,
}

/// The kernel had more to say than it had room for.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelLost {
    /// The number of records that it has left out.
    pub count: u64,
    /// The processor or thread of the buffer that was full.
    pub buffer: u32,
    /// True if switches or wake-ups may be among them. Without that, what threads did is known all the same.
    pub has_switches: bool,
}

/// What was recorded, and how well its times agree with those of the program.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// The process that is looked at.
    pub process_id: u32,
    /// Samples a second; 0 if none are taken.
    pub sample_hz: u32,
    /// The largest error of the times, in nanoseconds.
    pub clock_error_nanos: u64,
    /// True if switches and wake-ups of all threads are recorded.
    pub has_sched: bool,
    /// True if the threads that run instead are known, and the wakers: this needs a right.
    pub has_others: bool,
    /// True if blocking system calls are recorded.
    pub has_syscalls: bool,
    /// True if stacks are recorded.
    pub has_stacks: bool,
}

/// What the scheduler did with the threads of a program. Its rings are called like those of the program, with `-sched`.
#[derive(EventType, Clone, Copy, PartialEq, Eq, Debug)]
#[event(content_type = 260, name = "SCHED", no_span)]
#[repr(u16)]
pub enum Sched {
    /// A thread has left a processor.
    #[event(payload = SwitchedOut)]
    SwitchedOut = 2,
    /// A thread is on a processor again.
    #[event(payload = SwitchedIn)]
    SwitchedIn = 3,
    /// A thread may go on.
    #[event(payload = Woken)]
    Woken = 4,
    /// A system call that has blocked.
    #[event(payload = Syscall)]
    Syscall = 5,
    /// A thread that is followed.
    #[event(payload = ThreadSeen)]
    ThreadSeen = 6,
    /// A thread has ended.
    #[event(payload = ThreadEnded)]
    ThreadEnded = 7,
    /// The kernel has left out records.
    #[event(payload = KernelLost)]
    KernelLost = 8,
    /// What is recorded; the first event, and again when it changes.
    #[event(payload = Session)]
    Session = 9,
}

/// Where a thread was when a sample was taken.
#[derive(PayloadField, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SampleKind {
    /// It ran.
    OnProcessor = 0,
    /// It left its processor.
    SwitchedOut = 1,
}

/// A sample: a thread was at a stack.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The thread.
    pub thread_id: u32,
    /// The processor.
    pub cpu: u16,
    /// What the thread did.
    pub kind: SampleKind,
    /// The stack.
    pub stack_id: u64,
}

/// A stack that was not seen before. The addresses follow, the innermost first; those of the kernel come before those
/// of the program.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack {
    /// Its number in this ring, by which samples name it.
    pub stack_id: u64,
    /// The number of addresses of the kernel.
    pub kernel_frames: u32,
    /// The number of all addresses.
    pub frames: u32,
}

/// A file that is mapped into the process, with code.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The process.
    pub process_id: u32,
    /// The bytes of the build id; 0 if it has none.
    pub build_id_bytes: u32,
    /// The first address.
    pub begin: u64,
    /// The address after the last one.
    pub end: u64,
    /// The place in the file of the first address.
    pub offset: u64,
    /// The build id, filled with zeros.
    pub build_id: [u8; 20],
}

/// A name of an address, resolved while the program was there.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The address.
    pub address: u64,
    /// The line in the file; 0 if it is not known.
    pub line: u32,
    /// The bytes of the function's name; the file's name follows it.
    pub function_bytes: u32,
}

/// Stacks of the threads of a program. The ring is called like those of the program, with `-stacks`.
#[derive(EventType, Clone, Copy, PartialEq, Eq, Debug)]
#[event(content_type = 261, name = "STACKS", no_span)]
#[repr(u16)]
pub enum Stacks {
    /// A thread was at a stack.
    #[event(payload = Sample)]
    Sample = 2,
    /// A stack that was not seen before.
    #[event(payload = Stack, trailing(addresses: u64 * frames))]
    Stack = 3,
    /// A file with code.
    #[event(payload = Mapping, trailing(path: Utf8))]
    Mapping = 4,
    /// A name of an address. Inlined frames are several names of one address, the innermost first.
    #[event(payload = Resolved, trailing(function: Utf8 * function_bytes, file: Utf8))]
    Resolved = 5,
}
