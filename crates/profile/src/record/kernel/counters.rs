//! Opening one of the kernel's buffers.

use super::formats::Tracepoint;
use crate::schema::KernelLost;
use perf_event_open::config::{
    CallChain, Clock, Cpu, ExtraRecord, Inherit, Mmap, OnExecve, Opts, Proc, RecordIdFormat, RegsMask, SampleOn, Size,
    Target, UseBuildId,
};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;
use perf_event_open::event::tp;
use perf_event_open::sample::Sampler;
use std::io;
use std::sync::Arc;

/// The registers that unwinding needs, in the order of their bits.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// The bytes of the stack that are copied for a sample.
const STACK_BYTES: u32 = 8 << 10;
/// The largest number of frames that the kernel walks itself.
const FRAMES_MAX: u16 = 64;
/// The smallest buffer has 2^2 pages.
const EXPONENT_MIN: u8 = 2;

/// What a buffer tells.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Threads and files that come and go; with `switches` also when threads leave processors.
    Side { switches: bool },
    /// Samples of running threads.
    OnProcessor { hz: u32 },
    /// Stacks at which threads leave processors: of a thread that does so more often, about this number in a second.
    AtSwitch { hz: u32 },
    /// A tracepoint.
    Point(Point, Arc<Tracepoint>),
}

impl Kind {
    /// Returns what is recorded when records of a buffer of this kind were lost.
    pub(crate) fn lost(&self, buffer: u32, count: u64) -> KernelLost {
        let has_switches =
            matches!(self, Self::Side { switches: true } | Self::Point(Point::Switch | Point::Waking, _));
        KernelLost { count, buffer, has_switches }
    }
}

/// The tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Switch,
    Waking,
    Enter,
    Exit,
}

impl Point {
    /// Finds the tracepoint.
    pub(crate) fn find(self) -> Option<Kind> {
        let (name, fields) = match self {
            Self::Switch => {
                ("sched/sched_switch", &["prev_pid", "prev_state", "next_pid", "next_comm", "prev_comm"][..])
            }
            Self::Waking => ("sched/sched_waking", &["pid", "target_cpu", "common_flags"][..]),
            Self::Enter => ("raw_syscalls/sys_enter", &["id"][..]),
            Self::Exit => ("raw_syscalls/sys_exit", &["id", "ret"][..]),
        };
        Some(Kind::Point(self, Arc::new(Tracepoint::find(name, fields)?)))
    }
}

/// Whose events a buffer takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    /// Those of the program that the calling thread starts next, on this processor.
    NextChild(u32),
    /// Those of a thread, and of threads and processes that it starts, on this processor.
    ThreadAndChildren(u32, u32),
    /// Those of a thread.
    Thread(u32),
    /// Those of all threads, on this processor.
    All(u32),
}

/// What the kernel can do, and lets this user do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Events inside of the kernel.
    pub(crate) kernel: bool,
    /// Counts of lost records.
    pub(crate) counts_lost: bool,
    /// Build ids of files.
    pub(crate) build_ids: bool,
}

impl Access {
    /// Finds out what the kernel does for this user. The error is that of the simplest counter.
    pub(crate) fn find() -> io::Result<Self> {
        let mut last = None;
        for (counts_lost, build_ids) in [(true, true), (false, true), (false, false)] {
            for kernel in [true, false] {
                let access = Self { kernel, counts_lost, build_ids };
                let opts = options(&Kind::Side { switches: false }, Whose::Thread(0), access);
                match Counter::new(Software::Dummy, (Proc::CURRENT, Cpu::ALL), opts) {
                    Ok(_) => return Ok(access),
                    Err(error) => last = Some(error),
                }
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
    }
}

/// One buffer of the kernel.
pub(crate) struct Source {
    pub(crate) kind: Kind,
    pub(crate) counter: Counter,
    pub(crate) sampler: Sampler,
    /// The processor or thread that names it.
    pub(crate) number: u32,
    /// The records that it has lost, as far as they were told.
    pub(crate) lost: u64,
}

impl Source {
    /// Opens a buffer of 2^`exponent` pages, or of fewer if this user may not have as many.
    pub(crate) fn open(kind: Kind, whose: Whose, access: Access, exponent: u8) -> io::Result<Self> {
        let opts = options(&kind, whose, access);
        let target: Target = match whose {
            Whose::NextChild(cpu) => (Proc::CURRENT, Cpu(cpu)).into(),
            Whose::ThreadAndChildren(thread, cpu) => (Proc(thread), Cpu(cpu)).into(),
            Whose::Thread(thread) => (Proc(thread), Cpu::ALL).into(),
            Whose::All(cpu) => (Proc::ALL, Cpu(cpu)).into(),
        };
        let counter = match &kind {
            Kind::Side { .. } => Counter::new(Software::Dummy, target, opts),
            Kind::OnProcessor { .. } => Counter::new(Software::CpuClock, target, opts),
            Kind::AtSwitch { .. } => Counter::new(Software::CtxSwitch, target, opts),
            Kind::Point(_, point) => Counter::new(tp::Tracepoint { id: point.id }, target, opts),
        }?;
        let mut exponents = (EXPONENT_MIN..=exponent).rev();
        let sampler = loop {
            let Some(exponent) = exponents.next() else { return Err(io::ErrorKind::OutOfMemory.into()) };
            match counter.sampler(exponent) {
                Ok(sampler) => break sampler,
                Err(error) if exponent == EXPONENT_MIN => {
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, error));
                }
                Err(_) => {}
            }
        };
        let (Whose::NextChild(number)
        | Whose::ThreadAndChildren(_, number)
        | Whose::Thread(number)
        | Whose::All(number)) = whose;
        Ok(Self { kind, counter, sampler, number, lost: 0 })
    }
}

fn options(kind: &Kind, whose: Whose, access: Access) -> Opts {
    let mut opts = Opts {
        record_id_all: true,
        record_id_format: RecordIdFormat { cpu: true, task: true, time: true, ..RecordIdFormat::default() },
        timer: Some(Clock::Monotonic),
        enable: !matches!(whose, Whose::NextChild(_)),
        on_execve: matches!(whose, Whose::NextChild(_)).then_some(OnExecve::Enable),
        inherit: matches!(whose, Whose::NextChild(_) | Whose::ThreadAndChildren(..)).then_some(Inherit::NewChild),
        ..Opts::default()
    };
    opts.exclude.hv = true;
    opts.exclude.kernel = !access.kernel;
    opts.stat_format.lost_records = access.counts_lost;
    match kind {
        Kind::Side { switches } => {
            let mmap = Mmap { code: true, ext: Some(UseBuildId(access.build_ids)), ..Mmap::default() };
            opts.extra_record =
                ExtraRecord { task: true, comm: true, mmap, ctx_switch: *switches, ..ExtraRecord::default() };
        }
        Kind::OnProcessor { hz } => {
            opts.sample_on = SampleOn::Freq(u64::from(*hz));
            opts.exclude.idle = true;
            with_stack(&mut opts, access);
        }
        Kind::AtSwitch { hz } => {
            opts.sample_on = if *hz > 0 { SampleOn::Freq(u64::from(*hz)) } else { SampleOn::Count(1) };
            with_stack(&mut opts, access);
        }
        Kind::Point(..) => {
            opts.exclude.kernel = false;
            opts.sample_on = SampleOn::Count(1);
            opts.sample_format.raw = true;
        }
    }
    opts
}

fn with_stack(opts: &mut Opts, access: Access) {
    opts.sample_format.call_chain = Some(CallChain {
        exclude_user: true,
        exclude_kernel: !access.kernel,
        defer_user: false,
        max_stack_frames: FRAMES_MAX,
    });
    opts.sample_format.user_regs = Some(RegsMask(REGISTERS));
    opts.sample_format.user_stack = Some(Size(STACK_BYTES));
}
