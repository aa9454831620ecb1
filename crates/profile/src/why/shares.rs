//! The time of a span, divided into parts: computing, children, waits.

use super::collect::{Collected, CollectedSpan, Slice};
use super::locks::Lock;
use crate::line::syscalls::{self, WaitsFor};
use crate::line::thread::{Doing, ThreadLine};
use crate::line::times::Times;
use eventring::schema::perf::ThreadTime;
use eventring::tracing::TimeSpent;
use eventring_capture::numbers::{counted, time};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The longest pause between two slices of a worker that is busy all the time.
const PAUSE_NANOS: u64 = 100_000;
const NO_PROCESSOR: &str = "it was woken, and no processor was free";

/// What happened in a part of a span's time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Part {
    /// Its thread computed, in the span itself.
    Computing,
    /// A child was there.
    Children,
    /// Its thread could have run, and another one ran.
    Runnable,
    /// Its thread waited in the kernel.
    Blocked,
    /// It was not polled because the worker that polled it next was busy.
    Executor,
    /// No thread was in it: it waited to be woken.
    Waiting,
    /// Nothing says what happened.
    Unknown,
}

impl Part {
    /// All parts, in the order of the JSON.
    pub const ALL: [Self; 7] =
        [Self::Computing, Self::Children, Self::Runnable, Self::Blocked, Self::Executor, Self::Waiting, Self::Unknown];

    /// Returns the name in JSON, for example `computing`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Children => "children",
            Self::Runnable => "runnable",
            Self::Blocked => "blocked",
            Self::Executor => "executor",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
        }
    }
}

/// Who says what the threads of a span did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// The kernel, as `eventring profile` records it.
    Kernel,
    /// The threads themselves. They do not know what they waited for, and who ran instead.
    Program,
}

/// How often threads left their processors, and why.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    voluntary: u64,
    involuntary: u64,
    major_faults: u64,
}

impl Switches {
    pub(super) fn add(&mut self, times: &ThreadTime) {
        self.voluntary += u64::from(times.voluntary_switches);
        self.involuntary += u64::from(times.involuntary_switches);
        self.major_faults += u64::from(times.major_faults);
    }

    /// Returns true if most waits were for pages from a disk: the thread waits once for each.
    fn are_faults(self) -> bool {
        self.major_faults > 0 && self.major_faults.saturating_mul(2) >= self.voluntary
    }

    /// Says why it had no processor.
    fn why_runnable(self) -> String {
        match self.involuntary >= self.voluntary.max(1) {
            true => format!("{} its processor was taken away", counted(self.involuntary, "time", "times")),
            false => NO_PROCESSOR.to_owned(),
        }
    }
}

/// The time line of a span, divided. The parts add up to the whole.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    nanos: [u64; 7],
    source: Option<Source>,
    has_estimates: bool,
    /// How long each was blocked for each reason.
    pub(super) waits: BTreeMap<WaitsFor, u64>,
    /// Who or what it was, in words, with how long.
    pub(super) details: BTreeMap<(Part, String), u64>,
    /// How long it was blocked by each lock that threads have named themselves.
    locks: BTreeMap<Arc<Lock>, u64>,
}

/// How long a thread has waited for locks, in the order of time.
type NamedWaits = Vec<(Arc<Lock>, u64)>;

/// The shares in JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Percent {
    computing: f64,
    children: f64,
    runnable: f64,
    blocked: f64,
    executor: f64,
    waiting: f64,
    unknown: f64,
}

pub(super) fn in_per_cent<S: Serializer>(shares: &Shares, to: S) -> Result<S::Ok, S::Error> {
    let [computing, children, runnable, blocked, executor, waiting, unknown] =
        Part::ALL.map(|part| (shares.percent(part) * 100.0).round() / 100.0);
    Percent { computing, children, runnable, blocked, executor, waiting, unknown }.serialize(to)
}

impl Shares {
    /// Returns how long a part took, in nanoseconds.
    #[must_use]
    pub fn nanos(&self, part: Part) -> u64 {
        self.nanos[part as usize]
    }

    /// Returns the whole time, in nanoseconds.
    #[must_use]
    pub fn total_nanos(&self) -> u64 {
        self.nanos.iter().sum()
    }

    /// Returns a part in per cent of the whole.
    #[must_use]
    pub fn percent(&self, part: Part) -> f64 {
        match self.total_nanos() {
            0 => 0.0,
            total => 100.0 * self.nanos(part) as f64 / total as f64,
        }
    }

    /// Returns who says what threads did. `None` if nobody does.
    #[must_use]
    pub fn source(&self) -> Option<Source> {
        self.source
    }

    /// Returns a word to put before times: threads measure some of their times together, or not at all.
    #[must_use]
    pub fn about(&self) -> &'static str {
        let is_unknown = self.source == Some(Source::Program) && self.nanos(Part::Unknown) > 0;
        if self.has_estimates || is_unknown { "about " } else { "" }
    }

    /// Returns the longest of the details of a part.
    pub(super) fn main_detail(&self, part: Part) -> Option<(&str, u64)> {
        let of_part = self.details.iter().filter(|((of, _), _)| *of == part);
        of_part.max_by_key(|(_, nanos)| **nanos).map(|((_, text), nanos)| (text.as_str(), *nanos))
    }

    /// Says what the longest of the details of a part was, and how long.
    pub(super) fn main_detail_in_words(&self, part: Part) -> Option<String> {
        let lock = self.locks.iter().filter(|_| part == Part::Blocked).max_by_key(|(_, nanos)| **nanos);
        let detail = self.main_detail(part);
        match lock {
            Some((lock, nanos)) if detail.is_none_or(|(_, other)| other <= *nanos) => Some(lock.waited(1, *nanos)),
            _ => detail.map(|(text, nanos)| format!("{text}: {}", time(nanos))),
        }
    }

    /// Returns how long it could have run after it was woken, and no processor was free.
    pub(super) fn after_wakes_nanos(&self) -> u64 {
        self.details.get(&(Part::Runnable, NO_PROCESSOR.to_owned())).copied().unwrap_or(0)
    }

    fn add(&mut self, part: Part, nanos: u64) {
        self.nanos[part as usize] += nanos;
    }

    /// Takes a wait for a lock.
    fn add_lock(&mut self, nanos: u64, lock: &Arc<Lock>) {
        if nanos > 0 {
            self.add(Part::Blocked, nanos);
            *self.waits.entry(WaitsFor::Lock).or_default() += nanos;
            *self.locks.entry(lock.clone()).or_default() += nanos;
        }
    }

    /// Takes a time in which a thread did nothing that it can name, as far as it has waited for locks. Returns the rest.
    fn add_named(&mut self, nanos: u64, named: &mut NamedWaits) -> u64 {
        let mut rest = nanos;
        for (lock, left) in named.iter_mut() {
            let taken = rest.min(*left);
            self.add_lock(taken, lock);
            (rest, *left) = (rest - taken, *left - taken);
        }
        rest
    }

    /// Takes a time in which threads spent their time in this proportion.
    fn add_times(&mut self, nanos: u64, times: &TimeSpent, switches: Switches, named: &mut NamedWaits) {
        let whole = u128::from(times.total_nanos().max(1));
        let mut rest = nanos;
        let mut share = |of: u64| {
            let share = ((u128::from(of) * u128::from(nanos) / whole) as u64).min(rest);
            rest -= share;
            share
        };
        let [sleep, queue, unmeasured] = [times.sleep_nanos, times.queue_nanos, times.unmeasured_nanos].map(&mut share);
        self.add(Part::Computing, rest);
        let sleep = self.add_named(sleep, named);
        let unmeasured = self.add_named(unmeasured, named);
        self.add(Part::Unknown, unmeasured);
        if queue > 0 {
            self.add_detail(Part::Runnable, queue, switches.why_runnable());
        }
        if sleep > 0 {
            let are_faults = switches.are_faults();
            let what = if are_faults { WaitsFor::Io } else { WaitsFor::Other };
            *self.waits.entry(what).or_default() += sleep;
            match are_faults {
                true => {
                    let pages = counted(switches.major_faults, "page", "pages");
                    self.add_detail(Part::Blocked, sleep, format!("{pages} came from a disk"));
                }
                false => self.add(Part::Blocked, sleep),
            }
        }
        self.has_estimates |= !times.is_exact && nanos > 0;
    }

    fn add_detail(&mut self, part: Part, nanos: u64, text: String) {
        self.add(part, nanos);
        *self.details.entry((part, text)).or_default() += nanos;
    }
}

/// Divides the time of a span.
pub(super) fn divide(span: &CollectedSpan, collected: &Collected) -> Shares {
    let mut shares = Shares::default();
    let mut at = span.start_nanos;
    let children = children_of(span, collected);
    for (from, to) in children.iter() {
        own(span, at, from, collected, &mut shares);
        shares.add(Part::Children, to - from);
        at = to;
    }
    own(span, at, span.end_nanos, collected, &mut shares);
    for slice in span.slices.iter().filter(|slice| collected.line(slice.thread_id).is_none()) {
        let (from, to) = (slice.from_nanos.max(span.start_nanos), slice.to_nanos.min(span.end_nanos));
        let mut named = collected.locks.outside(slice.thread_id, from, to, &children);
        measured(slice, children.left_out_of(from, to), span.switches, &mut named, &mut shares);
    }
    for child in span.children.iter().map(|child| &collected.inner[*child]) {
        let nanos = child.end_nanos.min(span.end_nanos).saturating_sub(child.start_nanos.max(span.start_nanos));
        *shares.details.entry((Part::Children, child.name.clone())).or_default() += nanos;
    }
    shares
}

/// Returns the times in which the span had children, in order and apart.
fn children_of(span: &CollectedSpan, collected: &Collected) -> Times {
    let of_child = |child: &usize| {
        let child = &collected.inner[*child];
        (child.start_nanos.max(span.start_nanos), child.end_nanos.min(span.end_nanos))
    };
    Times::joined(span.children.iter().map(of_child).filter(|(from, to)| from < to).collect())
}

/// Divides a time in which the span had no child.
fn own(span: &CollectedSpan, from: u64, to: u64, collected: &Collected, shares: &mut Shares) {
    let mut at = from;
    let first = span.slices.partition_point(|slice| slice.to_nanos <= from);
    let mut slices = span.slices[first..].iter().take_while(|slice| slice.from_nanos < to);
    while at < to {
        let Some(slice) = slices.next() else { return outside(span, at, to, None, collected, shares) };
        if slice.from_nanos > at {
            outside(span, at, slice.from_nanos, Some(slice), collected, shares);
        }
        let (begin, end) = (slice.from_nanos.max(at), slice.to_nanos.min(to));
        if let Some(line) = collected.line(slice.thread_id) {
            inside(line, (slice.thread_id, begin, end), collected, shares);
        }
        at = end;
    }
}

/// Divides what a slice has of times without a child, as its thread has measured it. Without the kernel, it is not known
/// when in the slice the thread did what.
fn measured(slice: &Slice, nanos: u64, switches: Switches, named: &mut NamedWaits, shares: &mut Shares) {
    if !slice.times.is_measured() {
        let unknown = shares.add_named(nanos, named);
        if unknown < nanos {
            shares.source = shares.source.or(Some(Source::Program));
        }
        return shares.add(Part::Unknown, unknown);
    }
    shares.source = shares.source.or(Some(Source::Program));
    let own_nanos = nanos.min(slice.own_times.total_nanos());
    shares.add_times(own_nanos, &slice.own_times, switches, named);
    // In the rest, the thread was in other spans, which are no children.
    shares.add_times(nanos - own_nanos, &slice.times, switches, named);
}

/// Divides a time in which a thread was in the span, as the kernel tells it.
fn inside(line: &ThreadLine, (thread, from, to): (u32, u64, u64), collected: &Collected, shares: &mut Shares) {
    line.between(from, to, |from, to, doing| {
        let nanos = to - from;
        if *doing != Doing::Unknown {
            shares.source = Some(Source::Kernel);
        }
        match doing {
            Doing::Unknown => shares.add(Part::Unknown, nanos),
            Doing::Runs => shares.add(Part::Computing, nanos),
            Doing::Ready { other: Some(other), .. } => {
                shares.add_detail(Part::Runnable, nanos, format!("{other} ran instead"));
            }
            Doing::Ready { other: None, .. } => {
                shares.add_detail(Part::Runnable, nanos, NO_PROCESSOR.to_owned());
            }
            Doing::Waits { what, syscall, waker, .. } => {
                // Without the system call, who has woken it says what it waited for: threads of the program release
                // locks, other programs send something, and interrupts are mostly those of timers.
                let what = match (what, waker) {
                    (WaitsFor::Other, Some((_, process))) if collected.process_ids.contains(process) => WaitsFor::Lock,
                    (WaitsFor::Other, Some(_)) => WaitsFor::Input,
                    (WaitsFor::Other, None) if syscall.is_none() && collected.lines.has_wakers() => WaitsFor::Time,
                    _ => *what,
                };
                let place = match (syscall, what) {
                    (Some(number), _) => format!("in {}", syscalls::name_of(*number)),
                    (None, WaitsFor::Io) => "on a page or a device".to_owned(),
                    (None, _) => "in the kernel".to_owned(),
                };
                let woken = waker.as_ref().map_or_else(String::new, |(name, _)| format!(", until {name} woke it"));
                // The thread itself knows better than the kernel for what lock it has waited.
                collected.locks.divide(thread, from, to, |nanos, lock| match lock {
                    Some(lock) => shares.add_lock(nanos, lock),
                    None if nanos == 0 => {}
                    None => {
                        *shares.waits.entry(what).or_default() += nanos;
                        shares.add_detail(Part::Blocked, nanos, format!("{place}{woken}"));
                    }
                });
            }
        }
    });
}

/// Divides a time in which no thread was in the span. `next` is the slice that ends it.
fn outside(span: &CollectedSpan, from: u64, to: u64, next: Option<&Slice>, collected: &Collected, shares: &mut Shares) {
    // Of a task it is known when it was woken. Then it waited for a worker.
    if let Some(waits) = span.task.and_then(|task| collected.scheduled.between(task, from, to)) {
        let (mut at, worker) = (from, next.map(|next| next.thread_id));
        for wait in waits {
            // A worker that puts off its wakes has kept the span waiting before.
            let put_off_by = wait.put_off_by.filter(|thread| worker == Some(*thread));
            unpolled(span, at, wait.from, put_off_by, collected, shares);
            let by = worker.and_then(|worker| longest_of(worker, span, wait.from, wait.to, collected));
            shares.add_detail(Part::Executor, wait.to - wait.from, worker_in(by, "no worker polled it"));
            at = wait.to;
        }
        return shares.add(Part::Waiting, to - at);
    }
    unpolled(span, from, to, next.map(|next| next.thread_id), collected, shares);
}

/// Divides a time in which nobody has polled the span. `worker` is the thread that did so, or could have done so, then.
fn unpolled(span: &CollectedSpan, from: u64, to: u64, worker: Option<u32>, collected: &Collected, shares: &mut Shares) {
    let Some(worker) = worker else { return shares.add(Part::Waiting, to - from) };
    let line = collected.line(worker);
    // If the worker was busy until then, the span was kept waiting by that, and for so long.
    let (busy_since, by) = busy_before(span, from, to, worker, collected);
    shares.add(Part::Waiting, busy_since - from);
    let text = worker_in(by, "its worker ran outside of spans");
    let Some(line) = line else { return shares.add_detail(Part::Executor, to - busy_since, text) };
    line.between(busy_since, to, |from, to, doing| match doing {
        // It was woken for the span.
        Doing::Ready { other: None, .. } => shares.add_detail(Part::Runnable, to - from, NO_PROCESSOR.to_owned()),
        _ => shares.add_detail(Part::Executor, to - from, text.clone()),
    });
}

/// Says in which span the worker was, or something else if it was in none.
fn worker_in(slice: Option<&Slice>, otherwise: &str) -> String {
    slice.map_or_else(|| otherwise.to_owned(), |slice| format!("its worker was in {}", slice.name))
}

/// Returns since when the worker was busy without a pause, and the longest slice in which it was.
fn busy_before<'c>(
    span: &CollectedSpan,
    from: u64,
    to: u64,
    worker: u32,
    collected: &'c Collected,
) -> (u64, Option<&'c Slice>) {
    let line = collected.line(worker);
    let busy_since = |from, to| line.map(|line| line.busy_since(from, to));
    let (mut since, mut by, mut polled, mut last) = (to, None::<&Slice>, HashSet::new(), 0);
    let outer = collected.outer.get(&worker).map_or(&[][..], Vec::as_slice);
    let end = outer.partition_point(|slice| slice.to_nanos <= to);
    for slice in outer[..end].iter().rev() {
        let has_pause = slice.to_nanos.saturating_add(PAUSE_NANOS) < since
            && busy_since(slice.to_nanos, since).is_none_or(|busy| busy > slice.to_nanos);
        if has_pause || since <= from || slice.to_nanos <= from {
            break;
        }
        // An executor polls in the order of wake-ups. Whoever is polled twice in a row of others was woken the second
        // time before this span was, or the span would have come first.
        let is_again = polled.contains(&slice.span) && last != slice.span;
        if slice.span == span.id || is_again {
            return (since.max(from), by);
        }
        polled.insert(slice.span);
        last = slice.span;
        since = slice.from_nanos;
        let is_longer = by.is_none_or(|by| by.to_nanos - by.from_nanos < slice.to_nanos - slice.from_nanos);
        by = if is_longer { Some(slice) } else { by };
    }
    let since = since.max(from);
    (busy_since(from, since).unwrap_or(since), by)
}

/// Returns the slice in which a thread was longest in a time, other than those of the span.
fn longest_of<'c>(
    thread: u32,
    span: &CollectedSpan,
    from: u64,
    to: u64,
    collected: &'c Collected,
) -> Option<&'c Slice> {
    let outer = collected.outer.get(&thread)?;
    let first = outer.partition_point(|slice| slice.to_nanos <= from);
    let within = |slice: &&Slice| slice.to_nanos.min(to).saturating_sub(slice.from_nanos.max(from));
    let slices = outer[first..].iter().take_while(|slice| slice.from_nanos < to);
    slices.filter(|slice| slice.span != span.id && within(slice) > 0).max_by_key(within)
}
