//! Parsing one record of the kernel. A truncated record gives no record.

use super::body::{Body, Mapped, Record, thread_name};
use super::bytes::Bytes;
use super::counters::Kind;
use super::samples;
use crate::schema::KernelLost;

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

impl Record {
    /// Reads a record of a buffer of this kind. Returns `None` for records that nobody needs.
    pub(crate) fn parse(kind: &Kind, bytes: &[u8]) -> Option<Self> {
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
