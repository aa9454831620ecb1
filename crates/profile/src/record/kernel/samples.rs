//! The samples among the kernel's records: stacks, and records of tracepoints.

use super::body::{Body, RawStack, thread_name};
use super::bytes::Bytes;
use super::counters::{Kind, Point, REGISTERS};
use super::formats::Tracepoint;
use crate::schema::OffState;

/// The flags of a tracepoint inside of an interrupt: hard, soft, not maskable.
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// Reads a sample behind its time and processor.
pub(crate) fn parse(kind: &Kind, rest: &mut Bytes<'_>) -> Option<Body> {
    match kind {
        Kind::Side { .. } => None,
        Kind::OnProcessor { .. } => Some(Body::Sample { stack: Box::new(stack(rest)?), at_switch: false }),
        Kind::AtSwitch { .. } => Some(Body::Sample { stack: Box::new(stack(rest)?), at_switch: true }),
        Kind::Point(point, format) => {
            let bytes = rest.u32()? as usize;
            traced(*point, format, rest.take(bytes)?)
        }
    }
}

fn stack(rest: &mut Bytes<'_>) -> Option<RawStack> {
    /// Marks between the addresses: which ones follow. They are the last 4,095 numbers.
    const MARKS: u64 = u64::MAX - 4094;
    const KERNEL: u64 = u64::MAX - 127;
    let mut stack = RawStack::default();
    let count = rest.u64()?;
    let mut mark = 0;
    for address in rest.words(count)? {
        match (address, mark) {
            (MARKS.., _) => mark = address,
            (_, KERNEL) => stack.kernel.push(address),
            _ => {}
        }
    }
    if rest.u64()? != 0 {
        stack.registers = rest.words(u64::from(REGISTERS.count_ones()))?;
    }
    let bytes = rest.u64()? as usize;
    if bytes > 0 {
        let memory = rest.take(bytes)?;
        let used = usize::try_from(rest.u64()?).ok()?;
        stack.memory = memory.get(..used)?.to_vec();
    }
    Some(stack)
}

/// Reads a record of a tracepoint. The fields are those of `Point::fields`.
fn traced(point: Point, format: &Tracepoint, raw: &[u8]) -> Option<Body> {
    let field = |at: usize| raw.get(format.field(at)?);
    let number = |at: usize| signed(field(at)?);
    Some(match point {
        Point::Switch => Body::Switch {
            previous: number(0)? as u32,
            state: off_state(number(1)?),
            next: number(2)? as u32,
            next_name: thread_name(field(3)?),
            previous_name: thread_name(field(4)?),
        },
        Point::Waking => Body::Waking {
            thread: number(0)? as u32,
            cpu: number(1)? as u16,
            by_interrupt: field(2)?.first()? & IN_INTERRUPT != 0,
        },
        Point::Enter => Body::Enter { number: number(0)? as i32 },
        Point::Exit => Body::Exit { number: number(0)? as i32, result: number(1)? },
    })
}

/// Reads a number of 4 or 8 bytes.
fn signed(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => Some(i64::from(i32::from_ne_bytes(bytes.try_into().ok()?))),
        8 => Some(i64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Returns the state that the letters R, S, D, T, t, X, Z, P and I stand for.
fn off_state(state: i64) -> OffState {
    match state & 0xff {
        0 => OffState::Runnable,
        bits if bits & 0x30 != 0 => OffState::Ended,
        bits if bits & 0x0c != 0 => OffState::Stopped,
        bits if bits & 0x02 != 0 => OffState::Uninterruptible,
        _ => OffState::Sleeping,
    }
}
