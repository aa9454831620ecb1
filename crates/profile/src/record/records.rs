//! Parsing one record of the kernel. A truncated record gives no record.

pub(super) use crate::maps::Mapped;

use super::counters::Kind;
use super::samples;
use crate::schema::{KernelLost, OffState, ThreadName};
use eventring::schema::Utf8;
use std::ops::Range;

/// What the kernel says at a time.
pub(super) struct Record {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(super) time: u64,
    pub(super) cpu: u16,
    /// The thread that was on the processor, and its process.
    pub(super) thread: u32,
    pub(super) process: u32,
    pub(super) body: Body,
}

pub(super) enum Body {
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
pub(super) struct RawStack {
    pub(super) kernel: Vec<u64>,
    pub(super) registers: Vec<u64>,
    pub(super) memory: Vec<u8>,
}

/// The types of records, and marks of theirs.
mod types {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const SWITCH: u32 = 14;
    /// The record is about memory without code, a program's start, or a thread that leaves: each type uses it
    /// otherwise.
    pub(super) const FIRST_MARK: u16 = 1 << 13;
    /// The record has a build id, or the thread could go on.
    pub(super) const SECOND_MARK: u16 = 1 << 14;
}

/// The size of a record's head, and that of its end: process, thread, time, processor.
const HEAD: usize = 8;
const END: usize = 24;

/// The part of a record that was not read yet.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn words(&mut self, count: u64) -> Option<Vec<u64>> {
        let bytes = self.take(usize::try_from(count).ok()?.checked_mul(8)?)?;
        Some(bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?))).collect())
    }
}

impl Record {
    /// Reads a record of a buffer of this kind. Returns `None` for records that nobody needs.
    pub(super) fn parse(kind: &Kind, bytes: &[u8]) -> Option<Self> {
        let mut head = Bytes(bytes);
        let record_type = head.u32()?;
        let misc = u16::from_ne_bytes(head.take(2)?.try_into().ok()?);
        if record_type == types::SAMPLE {
            let mut rest = Bytes(bytes.get(HEAD..)?);
            let (process, thread, time, cpu, _) =
                (rest.u32()?, rest.u32()?, rest.u64()?, rest.u32()? as u16, rest.u32()?);
            return Some(Self { time, cpu, thread, process, body: samples::parse(kind, &mut rest)? });
        }
        let end = bytes.len().checked_sub(END)?;
        let mut id = Bytes(&bytes[end..]);
        let (process, thread, time, cpu) = (id.u32()?, id.u32()?, id.u64()?, id.u32()? as u16);
        let body = beside(record_type, misc, &mut Bytes(bytes.get(HEAD..end)?))?;
        Some(Self { time, cpu, thread, process, body })
    }
}

/// Reads what is not a sample.
fn beside(record_type: u32, misc: u16, rest: &mut Bytes<'_>) -> Option<Body> {
    let lost = |count| Body::Lost(KernelLost { count, buffer: 0, has_switches: false });
    let (first, second) = (misc & types::FIRST_MARK != 0, misc & types::SECOND_MARK != 0);
    Some(match record_type {
        types::LOST => lost((rest.u64()?, rest.u64()?).1),
        types::LOST_SAMPLES => lost(rest.u64()?),
        types::COMM => {
            let (process, thread) = (rest.u32()?, rest.u32()?);
            Body::Named { process, thread, name: thread_name(rest.0), by_exec: first }
        }
        types::FORK | types::EXIT => {
            let [process, parent_process, thread, parent_thread] = [rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?];
            match record_type == types::FORK {
                true => Body::Forked { process, thread, parent_process, parent_thread },
                false => Body::Ended { thread },
            }
        }
        types::SWITCH if first => Body::Left { is_preempted: second },
        types::SWITCH => Body::Back,
        types::MMAP2 if !first => {
            let (process, _) = (rest.u32()?, rest.u32()?);
            let (begin, bytes, offset) = (rest.u64()?, rest.u64()?, rest.u64()?);
            let id = rest.take(24)?;
            let build_id = if second { id.get(4..4 + usize::from(id[0]).min(20))?.to_vec() } else { Vec::new() };
            rest.take(8)?;
            let path = rest.0.split(|byte| *byte == 0).next()?.to_vec();
            Body::Mapped(Box::new(Mapped { process, begin, end: begin.checked_add(bytes)?, offset, build_id, path }))
        }
        _ => return None,
    })
}

/// Returns a name, which ends at the first zero.
pub(super) fn thread_name(bytes: &[u8]) -> ThreadName {
    let end: Range<usize> = 0..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(15);
    let mut name = [Utf8(0); 16];
    name.iter_mut().zip(&bytes[end]).for_each(|(to, from)| *to = Utf8(*from));
    name
}
