//! The choice of the kernel's buffers that are opened for each process.

use super::counters::{Access, Kind, Point, Source, Whose};
use super::rights::{ALLOW_KERNEL, ALLOW_PERF, ALLOW_SYSTEM, LOWER_RATE, MORE_MEMORY, Missing};
use super::system::{online_cpus, raise_files_max, threads_of};
use crate::record::options::{ProfileOptions, ProfileTarget};
use std::collections::HashSet;
use std::io;

/// The memory of the largest buffers of one kind, on all processors together.
const MEMORY: u64 = 32 << 20;
/// The same without rights: the system's default is 512 KiB for each processor, for all kinds.
const SMALL_MEMORY: u64 = 256 << 10;
/// The number of threads times processors above which new threads are looked for, instead of inheriting a buffer for
/// each processor.
const INHERITING_MAX: usize = 256;
/// The number of processors up to which samples are taken of all programs, and those of others are left out afterwards.
/// A timer for each processor costs much less than one that is set anew whenever a thread comes to a processor.
const SAMPLED_CPUS_MAX: usize = 16;

/// All buffers, and what they could not be opened for.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) sources: Vec<Source>,
    pub(crate) missing: Vec<Missing>,
    /// True if the threads that run instead are known, and the wakers.
    pub(crate) has_others: bool,
    pub(crate) has_syscalls: bool,
    pub(crate) has_stacks: bool,
    /// The processes whose new threads have to be looked for.
    pub(crate) looked_at: Vec<u32>,
    /// Threads that have buffers.
    attached: HashSet<u32>,
    /// What each thread gets.
    kinds: Vec<Kind>,
    access: Option<Access>,
    cpus: Vec<u32>,
}

impl Opened {
    /// Opens the buffers.
    pub(crate) fn open(target: &ProfileTarget, options: &ProfileOptions) -> Self {
        raise_files_max();
        let mut opened = Self { cpus: online_cpus(), ..Self::default() };
        match Access::find() {
            Ok(access) => opened.access = Some(access),
            Err(error) => {
                opened.missing.push(Missing::refused("everything that the kernel knows", &error, ALLOW_PERF));
                return opened;
            }
        }
        // Buffers of processors cost a thread less than its own, which the kernel changes at each switch.
        let has_all = opened.open_all(&[Kind::Side { switches: false }]).is_ok();
        if options.has_sched {
            opened.open_sched();
        }
        opened.choose_kinds(options, has_all);
        match target {
            _ if opened.kinds.is_empty() => {}
            ProfileTarget::NextChild => {
                for cpu in opened.cpus.clone() {
                    opened.open_kinds(Whose::NextChild(cpu));
                }
            }
            ProfileTarget::Processes(processes) => opened.open_processes(processes),
        }
        opened
    }

    /// Opens the tracepoints of the scheduler.
    fn open_sched(&mut self) {
        const WHAT: &str = "who runs instead, why threads leave processors, and who wakes them";
        let [Some(switch), Some(waking)] = [Point::Switch, Point::Waking].map(Point::find) else {
            self.missing.push(Missing::no_tracefs(WHAT));
            return;
        };
        if let Err(error) = self.open_all(&[switch, waking]) {
            return self.missing.push(Missing::refused(WHAT, &error, ALLOW_SYSTEM));
        }
        self.has_others = true;
    }

    /// Opens buffers of these kinds for all threads of the system, on each processor: all, or none.
    fn open_all(&mut self, kinds: &[Kind]) -> io::Result<()> {
        let before = self.sources.len();
        for cpu in self.cpus.clone() {
            for kind in kinds {
                self.open_one(kind.clone(), Whose::All(cpu)).inspect_err(|_| self.sources.truncate(before))?;
            }
        }
        Ok(())
    }

    /// Chooses what is recorded of each thread. With `has_all`, threads and files of the whole system are told already.
    fn choose_kinds(&mut self, options: &ProfileOptions, has_all: bool) {
        let has_kernel = self.access.is_some_and(|access| access.kernel);
        let switches = options.has_sched && !self.has_others;
        if switches || !has_all {
            self.kinds.push(Kind::Side { switches });
        }
        if options.has_stacks {
            let sampled = Kind::OnProcessor { hz: options.sample_hz };
            let is_of_all = has_all && self.cpus.len() <= SAMPLED_CPUS_MAX;
            if options.sample_hz > 0 && !(is_of_all && self.open_all(std::slice::from_ref(&sampled)).is_ok()) {
                self.kinds.push(sampled);
            }
            self.has_stacks = true;
            match has_kernel {
                // Without switches, nothing would have these stacks.
                true if !options.has_sched => {}
                true => self.kinds.push(Kind::AtSwitch { hz: options.sample_hz }),
                false => {
                    let error = io::ErrorKind::PermissionDenied.into();
                    let what = "stacks inside of the kernel, and stacks at which threads leave processors";
                    self.missing.push(Missing::refused(what, &error, ALLOW_KERNEL));
                }
            }
        }
        if options.has_syscalls {
            const WHAT: &str = "system calls";
            match [Point::Enter, Point::Exit].map(Point::find) {
                [Some(enter), Some(exit)] if has_kernel => {
                    self.kinds.extend([enter, exit]);
                    self.has_syscalls = true;
                }
                [Some(_), Some(_)] => {
                    let error = io::ErrorKind::PermissionDenied.into();
                    self.missing.push(Missing::refused(WHAT, &error, ALLOW_KERNEL));
                }
                _ => self.missing.push(Missing::no_tracefs(WHAT)),
            }
        }
    }

    fn open_processes(&mut self, processes: &[u32]) {
        let threads: usize = processes.iter().map(|process| threads_of(*process).len()).sum();
        if threads * self.cpus.len() * self.kinds.len() > INHERITING_MAX {
            self.looked_at = processes.to_vec();
        }
        self.look_for_threads(processes);
    }

    /// Opens buffers for the threads of these processes that have none. While one is opened, others may be made.
    pub(crate) fn look_for_threads(&mut self, processes: &[u32]) {
        const LOOKS_MAX: u32 = 10;
        for _ in 0..LOOKS_MAX {
            let threads: Vec<u32> = processes.iter().flat_map(|process| threads_of(*process)).collect();
            let new: Vec<u32> = threads.into_iter().filter(|thread| self.attached.insert(*thread)).collect();
            if new.is_empty() {
                return;
            }
            for thread in new {
                if self.looked_at.is_empty() {
                    for cpu in self.cpus.clone() {
                        self.open_kinds(Whose::ThreadAndChildren(thread, cpu));
                    }
                } else {
                    self.open_kinds(Whose::Thread(thread));
                }
            }
        }
    }

    fn open_kinds(&mut self, whose: Whose) {
        for kind in self.kinds.clone() {
            let what = match kind {
                Kind::Side { .. } => "some threads, and when they leave processors",
                Kind::OnProcessor { .. } => "samples of some threads",
                Kind::AtSwitch { .. } => "stacks at which some threads leave processors",
                Kind::Point(..) => "system calls of some threads",
            };
            let Err(error) = self.open_one(kind.clone(), whose) else { continue };
            let remedy = match error.kind() {
                // The thread has ended meanwhile.
                _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => continue,
                io::ErrorKind::OutOfMemory => MORE_MEMORY,
                io::ErrorKind::InvalidInput if matches!(kind, Kind::OnProcessor { .. } | Kind::AtSwitch { .. }) => {
                    LOWER_RATE
                }
                _ => ALLOW_KERNEL,
            };
            if self.missing.iter().all(|missing| missing.what != what) {
                self.missing.push(Missing::refused(what, &error, remedy));
            }
        }
    }

    fn open_one(&mut self, kind: Kind, whose: Whose) -> io::Result<()> {
        let Some(access) = self.access else { return Err(io::ErrorKind::Unsupported.into()) };
        let memory = match (&kind, access.kernel) {
            (Kind::Side { .. }, false) => SMALL_MEMORY / 4,
            (_, false) => SMALL_MEMORY,
            (Kind::Side { .. }, true) => MEMORY / 8,
            (_, true) => MEMORY,
        };
        // Small buffers are for each processor; the others share the memory.
        let sharers = match whose {
            _ if !access.kernel => 1,
            Whose::All(_) | Whose::NextChild(_) => self.cpus.len(),
            Whose::Thread(_) | Whose::ThreadAndChildren(..) => self.cpus.len().max(16),
        };
        let pages = memory / sharers as u64 / rustix::param::page_size() as u64;
        let exponent = pages.max(4).ilog2().min(12) as u8;
        self.sources.push(Source::open(kind, whose, access, exponent)?);
        Ok(())
    }
}
