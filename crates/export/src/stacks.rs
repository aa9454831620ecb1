//! The stacks of names of spans, as a tree. A stack is a name and the stack around it.

use super::names::{Names, SharedNames, full_name};
use super::options::Weight;
use eventring::tracing::{CallSite, IdMap, Span, SpanId, TimeSpent};
use eventring_capture::recording::PerDescription;
use eventring_profile::by_span::SpanPlace;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The largest number of spans in a stack. From a deeper stack, only the innermost spans are written.
const DEPTH_MAX: u32 = 256;

/// The number of a stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StackId(u32);

/// The number of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NameId(u32);

/// All stacks, each with sums of its times and of its instructions.
#[derive(Default)]
pub struct Stacks {
    shown: Names,
    stacks: Vec<Stack>,
    /// The stacks by the stack around them, or by the process for an outermost one, and by their name.
    known: IdMap<(Outer, NameId), StackId>,
    names: Vec<FrameName>,
    known_names: IdMap<FrameName, NameId>,
    /// The names as they are shown; empty until [`Self::name_frames`].
    frames: Vec<String>,
    of_call_sites: PerDescription<CallSite, NameId>,
    name_bytes: u64,
    /// The names of processes that have recorded nothing. Their indices come after those of the others.
    other_processes: Vec<String>,
}

/// The name of a frame.
#[derive(Clone, PartialEq, Eq, Hash)]
enum FrameName {
    /// A span: its name and its target.
    Span(String, String),
    /// A function of the program, or a remark.
    Code(String),
}

/// The stack around a stack, or the index of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Outer {
    Process(usize),
    Stack(StackId),
}

struct Stack {
    outer: Outer,
    name: NameId,
    depth: u32,
    sums: StackSums,
}

/// The sums of one stack, without those of the stacks inside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackSums {
    pub(super) nanos: u64,
    pub(super) instructions: u64,
    /// How threads spent the time, as they have measured it.
    pub(super) measured: TimeSpent,
    pub(super) kernel: KernelNanos,
}

/// What the kernel says about the time of threads, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct KernelNanos {
    /// The number of samples of threads that ran, times the time between two samples.
    #[serde(skip)]
    pub sampled: u64,
    /// Threads ran, as the scheduler says. This and the next three add up to the time of the threads.
    #[serde(rename = "cpu_ns")]
    pub cpu: u64,
    /// Threads could have run, and others did.
    #[serde(rename = "runnable_ns")]
    pub runnable: u64,
    /// Threads waited in the kernel.
    #[serde(rename = "blocked_ns")]
    pub blocked: u64,
    /// The scheduler says nothing.
    #[serde(rename = "unknown_ns")]
    pub unknown: u64,
}

impl KernelNanos {
    pub(super) fn add(&mut self, more: Self) {
        for (sum, more) in [
            (&mut self.sampled, more.sampled),
            (&mut self.cpu, more.cpu),
            (&mut self.runnable, more.runnable),
            (&mut self.blocked, more.blocked),
            (&mut self.unknown, more.unknown),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl StackSums {
    pub fn get(self, weight: Weight) -> u64 {
        match weight {
            Weight::Time => self.nanos,
            Weight::Instructions => self.instructions,
            Weight::Cpu => self.kernel.sampled,
            Weight::Queue => self.measured.queue_nanos,
            Weight::Sleep => self.measured.sleep_nanos,
            Weight::Runnable => self.kernel.runnable,
            Weight::Blocked => self.kernel.blocked,
        }
    }
}

/// A stack for someone who walks over all of them.
pub struct StackRef<'s> {
    /// The number of the stack around it, which is smaller than its own; the index of the process if there is none.
    pub outer: Result<usize, usize>,
    pub name: &'s str,
    pub sums: StackSums,
}

impl Stacks {
    /// Makes a tree without stacks. `shown` says which names the stacks have.
    pub(super) fn new(shown: Names) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Returns the stack of a span in another stack, or of an outermost span of the process.
    pub(super) fn stack_of(&mut self, process_index: usize, outer: Option<StackId>, span: &Span) -> StackId {
        let name = self.name_of(span.id, span.call_site.as_ref());
        let outer = outer.map(|outer| self.shortened(outer));
        self.inside(outer.map_or(Outer::Process(process_index), Outer::Stack), name)
    }

    /// Returns the stack of a span that may be over, and of those around it.
    pub(super) fn stack_of_place(&mut self, place: &SpanPlace) -> Option<StackId> {
        place.spans.iter().rev().fold(None, |outer, (id, site)| {
            let name = self.name_of(*id, site.as_ref());
            let outer = outer.map(|outer| self.shortened(outer));
            Some(self.inside(outer.map_or(Outer::Process(place.process_index), Outer::Stack), name))
        })
    }

    pub(super) fn add(&mut self, stack: StackId, more: StackSums) {
        let sums = &mut self.stacks[stack.0 as usize].sums;
        sums.nanos = sums.nanos.saturating_add(more.nanos);
        sums.instructions = sums.instructions.saturating_add(more.instructions);
        sums.measured = sums.measured.plus(more.measured);
        sums.kernel.add(more.kernel);
    }

    /// Returns the stack of a function, or of a remark, in another stack, or outermost in the process.
    pub(super) fn stack_of_code(&mut self, outer: Result<StackId, usize>, function: &str) -> StackId {
        let name = self.name(FrameName::Code(function.to_owned()));
        let outer = outer.map(|outer| self.shortened(outer));
        self.inside(outer.map_or_else(Outer::Process, Outer::Stack), name)
    }

    /// Returns the index of a process that has recorded nothing and has this name. `count` is the number of processes that
    /// have recorded something.
    pub(super) fn other_process(&mut self, count: usize, name: &str) -> usize {
        let known = self.other_processes.iter().position(|known| known == name);
        count
            + known.unwrap_or_else(|| {
                self.other_processes.push(name.to_owned());
                self.other_processes.len() - 1
            })
    }

    /// Returns the name of a process. `programs` are those of the processes that have recorded something.
    #[must_use]
    pub fn program<'s>(&'s self, process: usize, programs: &[&'s str]) -> Option<&'s str> {
        let other = || self.other_processes.get(process.checked_sub(programs.len())?).map(String::as_str);
        programs.get(process).copied().or_else(other)
    }

    /// Returns what the kernel says of the spans of each name and target: of their own time, and of all of it. A span
    /// inside of a span of the same name counts once.
    pub(super) fn kernel_by_name(&self) -> HashMap<(&str, &str), [KernelNanos; 2]> {
        let mut by_name: HashMap<(&str, &str), [KernelNanos; 2]> = HashMap::new();
        for (stack, id) in self.stacks.iter().zip(0..).filter(|(stack, _)| stack.sums.kernel != KernelNanos::default())
        {
            let (_, names) = self.names(StackId(id));
            let spans = names.iter().rev().filter_map(|name| match &self.names[name.0 as usize] {
                FrameName::Span(name, target) => Some((name.as_str(), target.as_str())),
                FrameName::Code(_) => None,
            });
            let mut seen: Vec<(&str, &str)> = Vec::new();
            for span in spans {
                if seen.contains(&span) {
                    continue;
                }
                let sums = by_name.entry(span).or_default();
                if seen.is_empty() {
                    sums[0].add(stack.sums.kernel);
                }
                sums[1].add(stack.sums.kernel);
                seen.push(span);
            }
        }
        by_name
    }

    /// Returns the stacks inside of spans of this name, or target and name, as stacks of their own: the outermost such
    /// span is the outermost frame.
    #[must_use]
    pub fn of_span(&self, wanted: &str) -> Self {
        let is_wanted = |name: &FrameName| match name {
            FrameName::Span(name, target) => name == wanted || full_name(name, target) == wanted,
            FrameName::Code(_) => false,
        };
        let are_wanted: Vec<bool> = self.names.iter().map(is_wanted).collect();
        let mut found =
            Self { shown: self.shown, names: self.names.clone(), frames: self.frames.clone(), ..Self::default() };
        let mut places: Vec<Option<StackId>> = Vec::with_capacity(self.stacks.len());
        for stack in &self.stacks {
            let outer = match stack.outer {
                Outer::Stack(outer) => places[outer.0 as usize].map(Outer::Stack),
                Outer::Process(_) => None,
            };
            let outer = outer.or_else(|| are_wanted[stack.name.0 as usize].then_some(Outer::Process(0)));
            let place = outer.map(|outer| found.inside(outer, stack.name));
            if let Some(place) = place {
                found.add(place, stack.sums);
            }
            places.push(place);
        }
        found
    }

    /// Returns all stacks in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = StackRef<'_>> {
        self.stacks.iter().map(|stack| {
            let outer = match stack.outer {
                Outer::Process(process) => Err(process),
                Outer::Stack(outer) => Ok(outer.0 as usize),
            };
            StackRef { outer, name: &self.frames[stack.name.0 as usize], sums: stack.sums }
        })
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        const STACK_BYTES: u64 = (size_of::<Stack>() + 2 * size_of::<((Outer, NameId), StackId)>()) as u64;
        (self.stacks.len() as u64).saturating_mul(STACK_BYTES).saturating_add(self.name_bytes)
    }

    /// Returns the lines of all stacks that have a number of this kind, with their numbers. `programs` are the names of
    /// the processes.
    pub(super) fn lines(&self, programs: &[&str], weight: Weight) -> BTreeMap<String, u64> {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        let has_samples = self.stacks.iter().any(|stack| stack.sums.kernel.sampled > 0);
        let number = |stack: &Stack| match weight {
            Weight::Cpu if !has_samples => stack.sums.measured.cpu_nanos,
            weight => stack.sums.get(weight),
        };
        for (stack, id) in self.stacks.iter().zip(0..).filter(|(stack, _)| number(stack) > 0) {
            let (process, names) = self.names(StackId(id));
            let names: Vec<&str> = names.iter().map(|name| self.frames[name.0 as usize].as_str()).collect();
            let program = frame(self.program(process, programs).unwrap_or_default());
            let sum = lines.entry(format!("{program};{}", names.join(";"))).or_default();
            *sum = sum.saturating_add(number(stack));
        }
        lines
    }

    /// Returns the index of the process and the innermost names of a stack, the innermost one last.
    fn names(&self, stack: StackId) -> (usize, Vec<NameId>) {
        let (mut names, mut at) = (Vec::new(), stack);
        let process = loop {
            let Stack { outer, name, .. } = self.stacks[at.0 as usize];
            if names.len() < DEPTH_MAX as usize {
                names.push(name);
            }
            match outer {
                Outer::Process(process) => break process,
                Outer::Stack(outer) => at = outer,
            }
        };
        names.reverse();
        (process, names)
    }

    fn inside(&mut self, outer: Outer, name: NameId) -> StackId {
        let stacks = &mut self.stacks;
        *self.known.entry((outer, name)).or_insert_with(|| {
            let depth = match outer {
                Outer::Process(_) => 1,
                Outer::Stack(outer) => stacks[outer.0 as usize].depth + 1,
            };
            stacks.push(Stack { outer, name, depth, sums: StackSums::default() });
            StackId(stacks.len() as u32 - 1)
        })
    }

    /// Returns the stack, or a stack that has only its innermost names. A stack that becomes twice as deep as it is
    /// written is shortened. So spans that lie in one another without end need only so many stacks.
    fn shortened(&mut self, stack: StackId) -> StackId {
        if self.stacks[stack.0 as usize].depth < 2 * DEPTH_MAX {
            return stack;
        }
        let (process, names) = self.names(stack);
        let mut outer = Outer::Process(process);
        let mut inner = stack;
        for name in names {
            inner = self.inside(outer, name);
            outer = Outer::Stack(inner);
        }
        inner
    }

    /// Returns the names and targets of all spans.
    pub fn names_and_targets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().filter_map(|name| match name {
            FrameName::Span(name, target) => Some((name.as_str(), target.as_str())),
            FrameName::Code(_) => None,
        })
    }

    /// Gives each frame the name under which it is shown. Names in `shared` get their targets.
    pub fn name_frames(&mut self, shared: &SharedNames) {
        let frame_of = |name: &FrameName| match (name, self.shown) {
            (FrameName::Span(name, target), Names::Target) => frame(&full_name(name, target)),
            (FrameName::Span(name, target), Names::Name) => frame(&shared.shown(name, target)),
            (FrameName::Code(name), _) => frame(name),
        };
        self.frames = self.names.iter().map(frame_of).collect();
    }

    fn name(&mut self, name: FrameName) -> NameId {
        if let Some(id) = self.known_names.get(&name) {
            return *id;
        }
        let id = NameId(self.names.len() as u32);
        let bytes = match &name {
            FrameName::Span(name, target) => name.len() + target.len(),
            FrameName::Code(name) => name.len(),
        };
        self.name_bytes += 192 + 4 * bytes as u64;
        self.names.push(name.clone());
        self.known_names.insert(name, id);
        id
    }

    fn name_of(&mut self, id: SpanId, site: Option<&Arc<CallSite>>) -> NameId {
        let known = site.filter(|site| site.is_known);
        if let Some(name) = known.and_then(|site| self.of_call_sites.get(site)) {
            return *name;
        }
        let name = site.map_or_else(|| format!("span {id}"), |site| site.name.clone());
        let target = site.map(|site| site.target.clone()).unwrap_or_default();
        let id = self.name(FrameName::Span(name, target));
        if let Some(site) = known {
            self.of_call_sites.insert(site, id);
        }
        id
    }
}

/// Returns the name with spaces in place of the characters that separate names and stacks.
fn frame(name: &str) -> String {
    if name.is_empty() {
        return "?".into();
    }
    name.chars().map(|c| if c == ';' || c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_without_end_takes_few_stacks_and_is_written_with_its_innermost_names() {
        let mut stacks = Stacks::default();
        let mut outer = Outer::Process(0);
        for depth in 0..100_000_u64 {
            let name = stacks.name(FrameName::Span(format!("span {}", depth % 3), String::new()));
            let stack = stacks.inside(outer, name);
            outer = Outer::Stack(stacks.shortened(stack));
            if depth == 99_999 {
                stacks.add(stack, StackSums { nanos: 7, ..StackSums::default() });
            }
        }
        stacks.name_frames(&SharedNames::default());
        assert!(stacks.stacks.len() < 10_000, "{}", stacks.stacks.len());
        assert!(stacks.lines(&["a;program"], Weight::Instructions).is_empty());
        let lines = stacks.lines(&["a;program"], Weight::Time);
        let [(line, 7)] = lines.iter().collect::<Vec<_>>()[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("a program;span ") && line.ends_with(";span 1;span 2;span 0"), "{line}");
        assert_eq!(line.split(';').count(), 1 + DEPTH_MAX as usize);
    }
}
