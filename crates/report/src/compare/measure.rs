//! The measures of a span, and their values.

use eventring_export::SpanSummary;
use eventring_export::numbers::{grouped, time};

/// A number that captures have for each span.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Measure {
    /// The number of closed spans.
    Count,
    /// The sum of the times from creation to close.
    Total,
    /// The part of the total in which no child existed.
    SelfTime,
    /// The sum of the times that threads were in the spans.
    Busy,
    /// The part of the busy time in which threads ran on a processor.
    Cpu,
    /// The part of the busy time in which threads could have run, but had no processor.
    Queue,
    /// The part of the busy time in which threads waited for something.
    Sleep,
    /// The number of allocations, without those of spans inside.
    Allocations,
    /// The bytes of these allocations.
    AllocatedBytes,
    /// The median of the durations.
    P50,
    /// The duration that 90 % of the spans did not exceed.
    P90,
    /// The duration that 99 % of the spans did not exceed.
    P99,
    /// The longest duration.
    Max,
    /// The sum of the instructions.
    Instructions,
    /// The part of the instructions that was executed in no span inside.
    SelfInstructions,
    /// The smallest number of instructions of one span.
    MinInstructions,
    /// The largest number of instructions of one span.
    MaxInstructions,
    /// The number of spans in which instructions were counted.
    CountedSpans,
}

/// The number of measures.
const MEASURES: usize = 18;

impl Measure {
    /// All measures, in the order of their numbers.
    pub const ALL: [Self; MEASURES] = [
        Self::Count,
        Self::Total,
        Self::SelfTime,
        Self::Busy,
        Self::Cpu,
        Self::Queue,
        Self::Sleep,
        Self::Allocations,
        Self::AllocatedBytes,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::Max,
        Self::Instructions,
        Self::SelfInstructions,
        Self::MinInstructions,
        Self::MaxInstructions,
        Self::CountedSpans,
    ];

    /// Returns the name of the measure in expressions and budgets.
    #[must_use]
    pub fn name(self) -> &'static str {
        let key = self.key();
        key.strip_suffix("_ns").unwrap_or(key)
    }

    /// Returns the name of the measure in JSON. That of a time ends with the unit.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Total => "total_ns",
            Self::SelfTime => "self_ns",
            Self::Busy => "busy_ns",
            Self::Cpu => "cpu_ns",
            Self::Queue => "queue_ns",
            Self::Sleep => "sleep_ns",
            Self::Allocations => "allocations",
            Self::AllocatedBytes => "allocated_bytes",
            Self::P50 => "p50_ns",
            Self::P90 => "p90_ns",
            Self::P99 => "p99_ns",
            Self::Max => "max_ns",
            Self::Instructions => "instructions",
            Self::SelfInstructions => "self_instructions",
            Self::MinInstructions => "min_instructions",
            Self::MaxInstructions => "max_instructions",
            Self::CountedSpans => "counted_spans",
        }
    }

    /// Finds a measure by its name, or by its key in JSON: `busy` or `busy_ns`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name || measure.key() == name)
    }

    /// Returns true if the values are nanoseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        self.key().ends_with("_ns")
    }

    /// Returns true if the values are instructions, or the number of spans in which they were counted.
    #[must_use]
    pub fn is_of_instructions(self) -> bool {
        self.key().ends_with("instructions") || self == Self::CountedSpans
    }

    /// Returns true if the values are times that threads have measured themselves.
    #[must_use]
    pub fn is_of_threads(self) -> bool {
        matches!(self, Self::Cpu | Self::Queue | Self::Sleep)
    }

    /// Returns true if the values are counts of allocations, or their bytes.
    #[must_use]
    pub fn is_of_allocator(self) -> bool {
        matches!(self, Self::Allocations | Self::AllocatedBytes)
    }

    /// Returns true if the values are percentiles of the durations, which do not tell of each span.
    #[must_use]
    pub fn is_percentile(self) -> bool {
        matches!(self, Self::P50 | Self::P90 | Self::P99)
    }

    /// Returns a value, or a quotient of values, for people.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self.is_time() {
            true => time(value.round() as u64),
            // A quotient of few instructions has decimals.
            false if value < 100.0 && value.fract() != 0.0 => format!("{value:.2}"),
            false => grouped(value.round() as u64),
        }
    }

    /// Returns the measure by which the sum of this measure is divided for the value of one call. Returns `None` if
    /// this is no sum.
    pub(super) fn calls(self) -> Option<Self> {
        match self {
            Self::Total | Self::SelfTime | Self::Busy | Self::Cpu | Self::Queue | Self::Sleep => Some(Self::Count),
            Self::Allocations | Self::AllocatedBytes => Some(Self::Count),
            Self::Instructions | Self::SelfInstructions => Some(Self::CountedSpans),
            _ => None,
        }
    }
}

/// The values of all measures of one span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpanFigures {
    values: [Option<u64>; MEASURES],
}

impl SpanFigures {
    /// Returns the value of a measure; `None` if instructions were not counted, or times of threads not measured.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Option<u64> {
        self.values[measure as usize]
    }

    /// Returns the number of spans in which instructions were not counted, though they were in others.
    pub(super) fn not_counted(&self) -> u64 {
        let numbers = self.get(Measure::Count).zip(self.get(Measure::CountedSpans));
        numbers.map_or(0, |(all, counted)| all.saturating_sub(counted))
    }

    /// Returns the median of each measure over several captures. Captures without a value do not count. Between two
    /// values in the middle, it is their mean, rounded down.
    pub(super) fn medians(of: &[Self]) -> Self {
        let mut values = [None; MEASURES];
        for (index, median) in values.iter_mut().enumerate() {
            let mut all: Vec<u64> = of.iter().filter_map(|figures| figures.values[index]).collect();
            all.sort_unstable();
            let middle = |at: usize| all.get(at).copied();
            *median = middle(all.len() / 2).zip(middle(all.len().saturating_sub(1) / 2)).map(|(a, b)| a.midpoint(b));
        }
        Self { values }
    }
}

impl From<&SpanSummary> for SpanFigures {
    fn from(span: &SpanSummary) -> Self {
        let (counted, times) = (span.instructions.as_ref(), span.times.as_ref());
        let value = |measure| match measure {
            Measure::Count => Some(span.count),
            Measure::Total => Some(span.total_nanos),
            Measure::SelfTime => Some(span.self_nanos),
            Measure::Busy => Some(span.busy_nanos),
            Measure::Cpu => times.map(|times| times.cpu_nanos),
            Measure::Queue => times.map(|times| times.queue_nanos),
            Measure::Sleep => times.map(|times| times.sleep_nanos),
            Measure::Allocations => span.allocated.as_ref().map(|allocated| allocated.allocations),
            Measure::AllocatedBytes => span.allocated.as_ref().map(|allocated| allocated.bytes),
            Measure::P50 => Some(span.p50_nanos),
            Measure::P90 => Some(span.p90_nanos),
            Measure::P99 => Some(span.p99_nanos),
            Measure::Max => Some(span.max_nanos),
            Measure::Instructions => counted.map(|counted| counted.all),
            Measure::SelfInstructions => counted.map(|counted| counted.own),
            Measure::MinInstructions => counted.map(|counted| counted.min),
            Measure::MaxInstructions => counted.map(|counted| counted.max),
            Measure::CountedSpans => counted.map(|counted| counted.spans),
        };
        Self { values: Measure::ALL.map(value) }
    }
}
