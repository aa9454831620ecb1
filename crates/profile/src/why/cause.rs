//! The cause of a slow span: the part of its time that is larger than in other spans.

use super::collect::{Collected, CollectedSpan};
use super::shares::{Part, Shares, divide};
use crate::line::syscalls::WaitsFor;
use eventring_capture::numbers::{median, time};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A part must explain this share of the excess, in per cent, to be called the cause.
const EXPLAINED_MIN: u64 = 40;
/// How deep children are looked into.
const DEPTH_MAX: usize = 8;

/// Why a span was slow.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Cause {
    /// The kind.
    pub kind: CauseKind,
    /// What says so, as one sentence with numbers.
    pub evidence: String,
}

/// A cause in JSON: its members are there without one, too.
#[derive(Serialize, JsonSchema)]
pub(super) struct CauseOrNulls<'c> {
    /// Null if the span is not slow.
    cause: Option<CauseKind>,
    evidence: Option<&'c str>,
}

pub(super) fn or_nulls<S: Serializer>(cause: &Option<Cause>, to: S) -> Result<S::Ok, S::Error> {
    let cause = cause.as_ref();
    CauseOrNulls { cause: cause.map(|it| it.kind), evidence: cause.map(|it| it.evidence.as_str()) }.serialize(to)
}

/// The kind of a cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CauseKind {
    /// It waited for a lock, or for another thread.
    Lock,
    /// It could have run, and other threads had the processors.
    Processor,
    /// A child was slow.
    Child,
    /// It was ready to be polled, and the workers of the executor were busy.
    Executor,
    /// It waited for files, devices or memory.
    Io,
    /// It waited for something to come in.
    Input,
    /// It slept for a time.
    Sleeping,
    /// It waited in the kernel, and nothing says for what.
    Blocked,
    /// It computed.
    Computing,
    /// It waited to be woken.
    Waiting,
    /// Nothing says what happened.
    Unknown,
}

impl CauseKind {
    /// Returns the name in JSON, for example `lock`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Processor => "processor",
            Self::Child => "child",
            Self::Executor => "executor",
            Self::Io => "io",
            Self::Input => "input",
            Self::Sleeping => "sleeping",
            Self::Blocked => "blocked",
            Self::Computing => "computing",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
        }
    }
}

/// What is usual: the medians of spans that are not slow.
#[derive(Clone, Debug, Default)]
pub(super) struct Usual {
    nanos: u64,
    parts: BTreeMap<Part, u64>,
    children: BTreeMap<String, u64>,
}

impl Usual {
    pub(super) fn from_spans<'s>(spans: impl Iterator<Item = (&'s CollectedSpan, &'s Shares)>) -> Self {
        let mut all = Vec::new();
        let mut parts: BTreeMap<Part, Vec<u64>> = BTreeMap::new();
        let mut children: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (span, shares) in spans {
            all.push(span.nanos());
            Part::ALL.iter().for_each(|part| parts.entry(*part).or_default().push(shares.nanos(*part)));
            for ((part, name), nanos) in &shares.details {
                if *part == Part::Children {
                    children.entry(name.clone()).or_default().push(*nanos);
                }
            }
        }
        let count = all.len();
        let child = |(name, mut nanos): (String, Vec<u64>)| {
            // Spans without the child took no time for it.
            nanos.resize(count.max(nanos.len()), 0);
            (name, median(&mut nanos))
        };
        Self {
            nanos: median(&mut all),
            parts: parts.into_iter().map(|(part, mut nanos)| (part, median(&mut nanos))).collect(),
            children: children.into_iter().map(child).collect(),
        }
    }

    fn part(&self, part: Part) -> u64 {
        self.parts.get(&part).copied().unwrap_or(0)
    }
}

/// Returns why a span was slow.
pub(super) fn find(span: &CollectedSpan, shares: &Shares, usual: &Usual, collected: &Collected) -> Option<Cause> {
    let excess = span.nanos().saturating_sub(usual.nanos);
    let of_part = |part: &Part| shares.nanos(*part).saturating_sub(usual.part(*part));
    let explains = |nanos: u64| excess > 0 && nanos.saturating_mul(100) >= excess.saturating_mul(EXPLAINED_MIN);
    // Who waits again and again also waits for a processor, each time that it was woken. Neither may be much.
    let after_wakes = shares.after_wakes_nanos().saturating_sub(usual.part(Part::Runnable));
    let waits = of_part(&Part::Blocked).saturating_add(after_wakes);
    let part = match Part::ALL.into_iter().max_by_key(of_part)? {
        part if explains(of_part(&part)) => part,
        _ if of_part(&Part::Blocked) > after_wakes && explains(waits) => Part::Blocked,
        _ => return None,
    };
    let usually = time(usual.part(part));
    let took = time(shares.nanos(part));
    let mut evidence = String::new();
    let (kind, what, why) = match part {
        Part::Children => {
            let child = slow_child(shares, usual)?;
            let usually = time(usual.children.get(child.0).copied().unwrap_or(0));
            let _ = write!(evidence, "{} took {} of it, usually {usually}", child.0, time(child.1));
            describe_child(span, child.0, collected, 0, &mut evidence);
            return Some(Cause { kind: CauseKind::Child, evidence });
        }
        Part::Blocked => {
            let most = shares.waits.iter().max_by_key(|(_, nanos)| **nanos);
            (most.map_or(CauseKind::Blocked, |(what, _)| kind_of(*what)), "it was blocked", "")
        }
        Part::Runnable => (CauseKind::Processor, "it could have run and did not", ""),
        Part::Executor => (CauseKind::Executor, "it was not polled", ", because its worker was busy"),
        Part::Computing => (CauseKind::Computing, "it computed", ""),
        Part::Waiting => (CauseKind::Waiting, "no thread was in it", ": it waited to be woken"),
        Part::Unknown => (CauseKind::Unknown, "its thread was in it", ", and nothing says what it did"),
    };
    let _ = write!(evidence, "{what} for {}{took}, usually {usually}{why}", shares.about());
    add_detail(shares, part, &mut evidence);
    Some(Cause { kind, evidence })
}

fn kind_of(what: WaitsFor) -> CauseKind {
    match what {
        WaitsFor::Lock => CauseKind::Lock,
        WaitsFor::Io => CauseKind::Io,
        WaitsFor::Input => CauseKind::Input,
        WaitsFor::Time => CauseKind::Sleeping,
        WaitsFor::Other => CauseKind::Blocked,
    }
}

/// Returns the child that took most beyond what is usual, and how long all of its name took.
fn slow_child<'s>(shares: &'s Shares, usual: &Usual) -> Option<(&'s str, u64)> {
    let children = shares.details.iter().filter(|((part, _), _)| *part == Part::Children);
    let excess = |name: &str, nanos: u64| nanos.saturating_sub(usual.children.get(name).copied().unwrap_or(0));
    let most = children.max_by_key(|((_, name), nanos)| excess(name, **nanos));
    most.map(|((_, name), nanos)| (name.as_str(), *nanos))
}

/// Says what the longest child of a name did, down to the one that has no slow child itself.
fn describe_child(span: &CollectedSpan, name: &str, collected: &Collected, depth: usize, out: &mut String) {
    let children = span.children.iter().map(|child| &collected.inner[*child]);
    let Some(longest) = children.filter(|child| child.name == name).max_by_key(|child| child.nanos()) else { return };
    let shares = divide(longest, collected);
    let Some(part) = Part::ALL.into_iter().max_by_key(|part| shares.nanos(*part)) else { return };
    let what = match part {
        Part::Children if depth < DEPTH_MAX => {
            let Some((inner, nanos)) = shares.main_detail(Part::Children) else { return };
            let _ = write!(out, "; in it {inner} took {}", time(nanos));
            return describe_child(longest, inner, collected, depth + 1, out);
        }
        Part::Children | Part::Unknown => return,
        Part::Computing => "it computed",
        Part::Runnable => "it could have run and did not",
        Part::Blocked => "it was blocked",
        Part::Executor => "it was not polled",
        Part::Waiting => "it waited to be woken",
    };
    let _ = write!(out, "; {what} for {}{}", shares.about(), time(shares.nanos(part)));
    add_detail(&shares, part, out);
}

fn add_detail(shares: &Shares, part: Part, out: &mut String) {
    if let Some(text) = shares.main_detail_in_words(part) {
        let _ = write!(out, " ({text})");
    }
}
