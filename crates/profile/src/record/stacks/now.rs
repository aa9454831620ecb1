//! The present stacks of a running program's threads. A thread is stopped only while its registers and a part of its
//! stack are copied. The copy is unwound afterwards.

use super::maps::{self, Maps};
use super::symbols::names_of;
use super::unwind::Unwinders;
use crate::frame::Frame;
use crate::record::kernel::body::RawStack;
use crate::record::kernel::system::threads_of;
use eventring::internal::shm::own_number;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, IoSliceMut};
use std::time::{Duration, Instant};

/// The bytes of the stack that are copied, and the parts of which one may be missing: the stack ends at one.
const STACK_BYTES: usize = 128 << 10;
const PART_BYTES: usize = 4 << 10;
/// The longest time for which a thread is waited for that does not stop. One that waits for a device may not.
const TIMEOUT: Duration = Duration::from_millis(20);
/// The number of threads that are looked at.
const THREADS_MAX: usize = 256;

/// Returns the stacks of threads of a process, the innermost frames first. For a thread that could not be stopped,
/// these are the frames in the kernel alone; threads that are gone are left out. Each thread stands still for some 100
/// µs. Calls like `epoll_wait`, in which a thread is, may return EINTR, as they do after any stop of a process.
///
/// The process has the number that it has here. The threads have those that they have for the process, which may be in
/// another pid namespace. Whatever numbers these are, no thread of another process is stopped.
///
/// # Errors
/// Why the first thread could not be stopped, if none could: the right is missing, or another program debugs the
/// process.
pub fn stacks_now(process: u32, threads: &[u32]) -> io::Result<BTreeMap<u32, Vec<Frame>>> {
    let wanted: HashSet<u32> = threads.iter().copied().take(THREADS_MAX).collect();
    let here = threads_of(process).into_iter();
    let numbered = here.map(|thread| (own_number(&format!("/proc/{process}/task/{thread}")).unwrap_or(thread), thread));
    let threads: Vec<(u32, u32)> = numbered.filter(|(own, _)| wanted.contains(own)).collect();
    // The kernel lets go of what a thread debugs when that thread ends, whatever happens in it.
    let looks = std::thread::spawn(move || {
        let look = |(own, thread): &(u32, u32)| (*own, in_kernel(process, *thread), copied(process, *thread));
        threads.iter().map(look).collect::<Vec<_>>()
    });
    let looks = looks.join().map_err(|_| io::Error::other("the look at the threads has failed"))?;
    let mut files = Maps::default();
    maps::of_process(process).iter().for_each(|mapped| _ = files.add(mapped));
    let (mut unwinders, mut stacks, mut refused) = (Unwinders::default(), BTreeMap::new(), None);
    for (thread, frames, copied) in looks {
        let mut addresses = Vec::new();
        match copied {
            Ok(stack) => unwinders.unwind(process, &stack, &files, &mut addresses),
            Err(Errno::ESRCH) => continue,
            Err(error) => _ = refused.get_or_insert(error),
        }
        stacks.insert(thread, (frames, addresses));
    }
    // The files with the names are read once for all threads.
    let names =
        names_of(stacks.values().flat_map(|(_, addresses)| addresses).copied().collect(), process, &files, &unwinders);
    let with_names = |(thread, (mut frames, addresses)): (u32, (Vec<Frame>, Vec<u64>))| {
        frames.extend(addresses.iter().filter_map(|address| names.get(address)).flatten().cloned());
        (thread, frames)
    };
    let stacks: BTreeMap<u32, Vec<Frame>> = stacks.into_iter().map(with_names).collect();
    match refused {
        Some(error) if stacks.values().flatten().all(|frame| frame.is_kernel) => Err(error.into()),
        _ => Ok(stacks),
    }
}

/// Returns the frames of a thread that lie in the kernel. Only root may see all; others see the function that waits.
fn in_kernel(process: u32, thread: u32) -> Vec<Frame> {
    let read =
        |file: &str| std::fs::read_to_string(format!("/proc/{process}/task/{thread}/{file}")).unwrap_or_default();
    let mut frames: Vec<Frame> = read("stack").lines().filter_map(kernel_frame).collect();
    let waits_in = read("wchan");
    if frames.is_empty() && !["", "0"].contains(&waits_in.trim()) {
        frames.push(kernel_function(waits_in.trim()));
    }
    frames
}

/// Reads a line like `[<0>] futex_wait_queue+0x66/0x90`.
fn kernel_frame(line: &str) -> Option<Frame> {
    let name = line.split_once("] ")?.1.split('+').next()?;
    Some(kernel_function(name))
}

fn kernel_function(name: &str) -> Frame {
    Frame::new(Some(name.into()), &"".into(), 0, true)
}

/// Stops a thread, copies its registers and its stack, and lets it go on.
fn copied(process: u32, thread: u32) -> nix::Result<RawStack> {
    let id = |number: u32| i32::try_from(number).map(Pid::from_raw).map_err(|_| Errno::ESRCH);
    let (process, thread) = (id(process)?, id(thread)?);
    ptrace::seize(thread, ptrace::Options::empty())?;
    ptrace::interrupt(thread)?;
    let begin = Instant::now();
    let signal = loop {
        match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))? {
            // A signal that came just now is for the thread.
            WaitStatus::Stopped(_, signal) => break Some(signal),
            WaitStatus::PtraceEvent(..) => break None::<Signal>,
            WaitStatus::StillAlive if begin.elapsed() < TIMEOUT => std::thread::yield_now(),
            WaitStatus::StillAlive => return Err(Errno::ETIMEDOUT),
            _ => return Err(Errno::ESRCH),
        }
    };
    let stack = ptrace::getregs(thread).and_then(|registers| stack(process, &registers));
    ptrace::detach(thread, signal)?;
    stack
}

fn stack(process: Pid, registers: &nix::libc::user_regs_struct) -> nix::Result<RawStack> {
    #[cfg(target_arch = "x86_64")]
    let (words, sp) = (vec![registers.rbp, registers.rsp, registers.rip], registers.rsp);
    #[cfg(target_arch = "aarch64")]
    let (words, sp) = (vec![registers.regs[29], registers.regs[30], registers.sp, registers.pc], registers.sp);
    let mut memory = vec![0; STACK_BYTES];
    let begin = sp as usize;
    let part = |offset: usize| RemoteIoVec { base: begin + offset, len: PART_BYTES };
    let parts: Vec<RemoteIoVec> = (0..STACK_BYTES).step_by(PART_BYTES).map(part).collect();
    let bytes = process_vm_readv(process, &mut [IoSliceMut::new(&mut memory)], &parts)?;
    memory.truncate(bytes);
    Ok(RawStack { kernel: Vec::new(), registers: words, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_kernel_are_read() {
        let frame = kernel_frame("[<0>] futex_wait_queue+0x66/0x90").unwrap();
        assert_eq!((&*frame.name, frame.is_kernel), ("futex_wait_queue", true));
        assert_eq!(kernel_frame("nothing"), None);
    }
}
