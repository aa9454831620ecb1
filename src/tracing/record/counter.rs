//! Counters and markers, which readers show together with the spans.

use crate::global::current_span_id;
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ValueType};
use crate::sync::{AtomicUsize, Ordering};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::threads::thread;
use std::panic::Location;
use std::ptr;

/// A number that changes with time, for example the length of a queue or the bytes in use. Declare a counter as a
/// `static`, and call [`Self::sample`] where the number changes.
///
/// ```
/// use eventring::tracing::{Counter, PERF, PerfRecorder};
///
/// static QUEUE_LENGTH: Counter = Counter::new("queue length");
///
/// PERF.install(PerfRecorder::builder().anonymous().build()?)?;
/// QUEUE_LENGTH.sample(17);
/// QUEUE_LENGTH.sample(0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Counter {
    call_site: StaticCallSite,
}

/// A named moment, for example the begin of a phase. Declare a marker as a `static`, and call [`Self::mark`] at that
/// moment.
///
/// ```
/// use eventring::tracing::Marker;
///
/// static RELOADED: Marker = Marker::new("configuration reloaded");
///
/// RELOADED.mark();
/// RELOADED.mark_with("from /etc/my-app.toml");
/// ```
#[derive(Debug)]
pub struct Marker {
    call_site: StaticCallSite,
}

/// A sample of a [`Counter`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CounterValue {
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A float.
    F64(f64),
}

macro_rules! counter_value_from {
    ($($from:ty => $variant:ident),*) => {
        $(impl From<$from> for CounterValue {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

counter_value_from!(i8 => I64, i16 => I64, i32 => I64, i64 => I64, u8 => U64, u16 => U64, u32 => U64, u64 => U64, f32 => F64, f64 => F64);

impl From<usize> for CounterValue {
    fn from(value: usize) -> Self {
        // No machine has more than 64 bits.
        Self::U64(value as u64)
    }
}

impl From<isize> for CounterValue {
    fn from(value: isize) -> Self {
        Self::I64(value as i64)
    }
}

/// The call site of a counter or marker.
#[derive(Debug)]
struct StaticCallSite {
    name: &'static str,
    location: &'static Location<'static>,
    /// The call site's id, or 0 until the id is known.
    id: AtomicUsize,
}

impl StaticCallSite {
    const fn new(name: &'static str, location: &'static Location<'static>) -> Self {
        Self { name, location, id: AtomicUsize::new(0) }
    }

    /// Returns the id of the call site. In a forked child, returns 0 for a call site that has no id yet. The child
    /// must not take the lock of the call sites, because another thread may have held it at the fork.
    #[inline(always)]
    fn call_site_id(&'static self, recorder: &PerfRecorder, kind: CallSiteKind) -> u32 {
        // Acquire, pairs with the release in `register`. `register` adds the call site to the tables of all recorders
        // before it stores the id. So the tables have the call site before this thread records an event with its id. A
        // thread that still sees 0 calls `register` again and gets the same id.
        match self.id.load(Ordering::Acquire) {
            0 => self.register(recorder, kind),
            id => id as u32,
        }
    }

    #[cold]
    fn register(&'static self, recorder: &PerfRecorder, kind: CallSiteKind) -> u32 {
        if !recorder.belongs_to_this_process() {
            return 0;
        }
        let describe = || view_of(kind, self.name, "", Some(self.location)).encode();
        let id = CALL_SITES.id_of_key(ptr::from_ref(self).addr(), describe);
        // Release, pairs with the acquire in `call_site_id`.
        self.id.store(id as usize, Ordering::Release);
        id
    }
}

/// Returns the description of the call site of a counter or marker.
pub(in crate::tracing::record) fn view_of<'v>(
    kind: CallSiteKind,
    name: &'v str,
    target: &'v str,
    location: Option<&'v Location<'v>>,
) -> CallSiteView<'v> {
    CallSiteView {
        kind,
        level: CallSiteLevel::None,
        name: name.into(),
        target: target.into(),
        module: "".into(),
        file: location.map_or("", Location::file).into(),
        line: location.map_or(0, Location::line),
        field_names: Vec::new(),
    }
}

impl Counter {
    /// Makes a counter with this name.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { call_site: StaticCallSite::new(name, Location::caller()) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.call_site.name
    }

    /// Records a sample to the recorder in [`PERF`]. While `PERF` is off, the call costs a load and a branch.
    #[inline]
    pub fn sample(&'static self, value: impl Into<CounterValue>) {
        if let Some(recorder) = PERF.active() {
            self.sample_to(recorder, value);
        }
    }

    /// Records a sample to `recorder`.
    pub fn sample_to(&'static self, recorder: &PerfRecorder, value: impl Into<CounterValue>) {
        if !recorder.core.is_enabled() {
            return;
        }
        let (value_type, bits) = match value.into() {
            CounterValue::I64(value) => (ValueType::I64, value.cast_unsigned()),
            CounterValue::U64(value) => (ValueType::U64, value),
            CounterValue::F64(value) => (ValueType::F64, value.to_bits()),
        };
        thread::with(|thread| {
            let ext = PerfExt {
                related: bits,
                value_type: value_type as u8,
                ..PerfExt::of_span(current_span_id(), self.call_site.call_site_id(recorder, CallSiteKind::Counter))
            };
            recorder.core.record(thread, PerfEvent::Counter, ext, &[]);
        });
    }
}

impl Marker {
    /// Makes a marker with this name.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { call_site: StaticCallSite::new(name, Location::caller()) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.call_site.name
    }

    /// Records a mark to the recorder in [`PERF`]. While `PERF` is off, the call costs a load and a branch.
    #[inline]
    pub fn mark(&'static self) {
        self.mark_with("");
    }

    /// Records a mark with a text, like [`Self::mark`].
    #[inline]
    pub fn mark_with(&'static self, text: &str) {
        if let Some(recorder) = PERF.active() {
            self.mark_to(recorder, text);
        }
    }

    /// Records a mark to `recorder`.
    pub fn mark_to(&'static self, recorder: &PerfRecorder, text: &str) {
        if !recorder.core.is_enabled() {
            return;
        }
        thread::with(|thread| {
            let call_site_id = self.call_site.call_site_id(recorder, CallSiteKind::Marker);
            let ext = PerfExt::of_span(current_span_id(), call_site_id);
            recorder.core.record(thread, PerfEvent::Marker, ext, text.as_bytes());
        });
    }
}
