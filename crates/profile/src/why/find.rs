//! The first pass: finds the slowest spans of a name, and some that are not slow.

use eventring::tracing::{CallSite, Span};
use eventring_capture::recording::{OverSpan, PerDescription, ReplayConsumer, ReplayNeeds, ReplayState};
use eventring_capture::{CaptureError, CaptureErrorKind, SpanTimes, WallTimes};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

/// Which spans are asked about.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The name of the spans, or target and name: `shop::query`. Without a name: the one whose slow spans have taken
    /// most time beyond what is normal.
    pub span: Option<String>,
    /// How many of the slowest spans; at least 1.
    pub slowest: usize,
    /// Only the span with this id.
    pub id: Option<u64>,
}

/// The spans of a name among which normal ones are chosen: a random choice of all.
const SAMPLE_MAX: usize = 2048;
/// What a span must take beyond the median, at least, so that it is called slow. Below that lies what any machine does.
const EXCESS_MIN_NANOS: u64 = 500_000;

/// A span that was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SubjectSpan {
    pub(super) nanos: u64,
    pub(super) process_index: usize,
    pub(super) id: u64,
    pub(super) start_nanos: u64,
}

/// The spans that the answer is about.
#[derive(Debug, Default)]
pub(super) struct SubjectSpans {
    /// Those that are asked for, and further slow ones.
    pub(super) slow: Vec<SubjectSpan>,
    pub(super) normal: Vec<SubjectSpan>,
    /// The number of those that are asked for.
    pub(super) asked: usize,
    pub(super) count: u64,
    pub(super) median_nanos: u64,
    /// What is longer than this is slow.
    limit_nanos: u64,
}

impl SubjectSpans {
    pub(super) fn is_slow(&self, nanos: u64) -> bool {
        nanos > self.limit_nanos
    }
}

/// The spans of one name.
#[derive(Default)]
struct Named {
    slowest: BinaryHeap<Reverse<SubjectSpan>>,
    sample: Vec<SubjectSpan>,
    random: u64,
    lengths: WallTimes,
    /// At the end.
    times: SpanTimes,
}

impl Named {
    fn add(&mut self, span: SubjectSpan, slow_max: usize) {
        self.lengths.add(span.nanos);
        self.slowest.push(Reverse(span));
        if self.slowest.len() > slow_max {
            self.slowest.pop();
        }
        if self.sample.len() < SAMPLE_MAX {
            self.sample.push(span);
            return;
        }
        // Xorshift: each answer about one capture is the same.
        self.random = if self.random == 0 { 0x9e37_79b9_7f4a_7c15 } else { self.random };
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = (self.random % self.lengths.count() as u64) as usize;
        if let Some(place) = self.sample.get_mut(at) {
            *place = span;
        }
    }

    fn limit_nanos(&self) -> u64 {
        // Slow spans are few, or nobody would call them slow: nine in ten are what is usual.
        let (median, usual) = (self.times.p50_nanos, self.times.p90_nanos);
        let excess = (3 * usual.saturating_sub(median)).max(median).max(EXCESS_MIN_NANOS);
        median.saturating_add(excess)
    }

    /// Returns what the slow spans have taken beyond the median.
    fn excess_nanos(&self) -> u64 {
        let (median, limit) = (self.times.p50_nanos, self.limit_nanos());
        let slow = self.slowest.iter().filter(|Reverse(span)| span.nanos > limit);
        slow.map(|Reverse(span)| span.nanos.saturating_sub(median)).fold(0, u64::saturating_add)
    }
}

/// Finds spans.
pub(super) struct Finder {
    wanted: Option<String>,
    id: Option<u64>,
    slow_max: usize,
    normal_max: usize,
    names: BTreeMap<String, usize>,
    named: Vec<Named>,
    /// The name of each known call site: its index, or `None` if it is not wanted.
    by_call_site: PerDescription<CallSite, Option<usize>>,
    /// The span with the asked id of each process, and its name: each numbers its own.
    asked: BTreeMap<usize, (String, SubjectSpan)>,
}

impl Finder {
    pub(super) fn new(question: &Question, slow_max: usize, normal_max: usize) -> Self {
        let (wanted, id) = (question.span.clone(), question.id);
        Self {
            wanted,
            id,
            slow_max,
            normal_max,
            names: BTreeMap::new(),
            named: Vec::new(),
            by_call_site: PerDescription::default(),
            asked: BTreeMap::new(),
        }
    }

    /// Returns the index of a span's name; `None` if the name is not wanted.
    fn name_of(&mut self, span: &Span) -> Option<usize> {
        self.by_call_site.of_span(span, || {
            let name = full_name(span);
            let is_wanted = self.wanted.as_ref().is_none_or(|wanted| *wanted == span.name() || *wanted == name);
            is_wanted.then(|| {
                *self.names.entry(name).or_insert_with(|| {
                    self.named.push(Named::default());
                    self.named.len() - 1
                })
            })
        })
    }

    /// Returns the spans of the wanted name.
    ///
    /// # Errors
    /// There is no such span.
    pub(super) fn finish(mut self, question: &Question) -> Result<SubjectSpans, CaptureError> {
        self.named.iter_mut().for_each(|named| named.times = named.lengths.statistics());
        let none = |message: String| CaptureError::new(CaptureErrorKind::BadOptions, message);
        let name = match (self.asked.values().next(), self.id) {
            (Some(_), Some(id)) if self.asked.len() > 1 => {
                let names: Vec<&str> = self.asked.values().map(|(name, _)| name.as_str()).collect();
                let names = names.join(" and ");
                return Err(none(format!("several programs have a span with the id {id}: {names}; name one capture")));
            }
            (Some((name, _)), _) => name.clone(),
            (None, Some(id)) => {
                let of_name = self.wanted.as_ref().map(|wanted| format!(" {wanted}")).unwrap_or_default();
                return Err(none(format!(
                    "no span{of_name} with the id {id} has ended in the capture; `summary` shows which there are"
                )));
            }
            (None, None) => {
                let worst = self.names.iter().max_by_key(|(_, at)| {
                    let named = &self.named[**at];
                    (named.excess_nanos(), named.times.count)
                });
                let Some((name, _)) = worst else {
                    let message = match &self.wanted {
                        Some(wanted) => {
                            format!("no span {wanted} has ended in the capture; `summary` shows which there are")
                        }
                        None => "no span has ended in the capture; capture a program that records spans".to_owned(),
                    };
                    return Err(none(message));
                };
                name.clone()
            }
        };
        let named = self.names.get(&name).map(|at| std::mem::take(&mut self.named[*at])).unwrap_or_default();
        let (SpanTimes { count, p50_nanos: median_nanos, .. }, limit_nanos) = (named.times, named.limit_nanos());
        let mut slow: Vec<SubjectSpan> = named.slowest.into_iter().map(|Reverse(span)| span).collect();
        slow.sort_unstable_by(|a, b| b.cmp(a));
        let mut asked = question.slowest.max(1).min(slow.len());
        if let Some((_, span)) = self.asked.into_values().next() {
            slow.retain(|other| *other != span);
            slow.insert(0, span);
            asked = 1;
        }
        let kept = |at: usize, span: &SubjectSpan| at < asked || span.nanos > limit_nanos;
        let slow: Vec<SubjectSpan> =
            slow.into_iter().enumerate().filter(|(at, span)| kept(*at, span)).map(|(_, span)| span).collect();
        let normal = named.sample.into_iter().filter(|span| span.nanos <= limit_nanos && !slow.contains(span));
        let normal = normal.take(self.normal_max).collect();
        Ok(SubjectSpans { slow, normal, asked, count, median_nanos, limit_nanos })
    }
}

impl ReplayConsumer for Finder {
    fn needs(&self) -> ReplayNeeds {
        // Spans that closed in the last milliseconds are among those that remain.
        ReplayNeeds { remaining: true, ..ReplayNeeds::default() }
    }

    fn span(&mut self, process_index: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let span = over.span;
        let Some(nanos) = span.wall_nanos() else { return Ok(()) };
        let Some(at) = self.name_of(span) else { return Ok(()) };
        let found = SubjectSpan { nanos, process_index, id: span.id.get(), start_nanos: span.start_epoch_nanos() };
        if self.id == Some(found.id) {
            self.asked.insert(process_index, (full_name(span), found));
        }
        self.named[at].add(found, self.slow_max);
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        let lengths = self.named.iter().map(|named| named.lengths.kept_bytes());
        lengths.fold(self.names.len() as u64 * 128, u64::saturating_add)
    }
}

/// Returns the name of a span behind its target.
pub(super) fn full_name(span: &Span) -> String {
    match &span.call_site {
        Some(site) if !site.target.is_empty() => format!("{}::{}", site.target, site.name),
        _ => span.name(),
    }
}
