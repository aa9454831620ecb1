//! The content of one record of the kernel.

pub(crate) use crate::maps::Mapped;

use crate::schema::{KernelLost, OffState, ThreadName};
use eventring::schema::Utf8;
use std::ops::Range;

/// What the kernel says at a time.
pub(crate) struct Record {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time: u64,
    pub(crate) cpu: u16,
    /// The thread that was on the processor, and its process.
    pub(crate) thread: u32,
    pub(crate) process: u32,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Switch {
        previous: u32,
        state: OffState,
        next: u32,
        next_name: ThreadName,
        previous_name: ThreadName,
    },
    Waking {
        thread: u32,
        cpu: u16,
        by_interrupt: bool,
    },
    Enter {
        number: i32,
    },
    Exit {
        number: i32,
        result: i64,
    },
    Sample {
        stack: Box<RawStack>,
        at_switch: bool,
    },
    /// The thread leaves its processor, or comes back.
    Left {
        is_preempted: bool,
    },
    Back,
    Forked {
        process: u32,
        thread: u32,
        parent_process: u32,
        parent_thread: u32,
    },
    Ended {
        thread: u32,
    },
    Named {
        process: u32,
        thread: u32,
        name: ThreadName,
        by_exec: bool,
    },
    Mapped(Box<Mapped>),
    /// The worker says of which buffer.
    Lost(KernelLost),
}

/// A stack as the kernel gives it.
#[derive(Default)]
pub(crate) struct RawStack {
    pub(crate) kernel: Vec<u64>,
    pub(crate) registers: Vec<u64>,
    pub(crate) memory: Vec<u8>,
}

/// Returns a name, which ends at the first zero.
pub(crate) fn thread_name(bytes: &[u8]) -> ThreadName {
    let end: Range<usize> = 0..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(15);
    let mut name = [Utf8(0); 16];
    name.iter_mut().zip(&bytes[end]).for_each(|(to, from)| *to = Utf8(*from));
    name
}
