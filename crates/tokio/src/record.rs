//! The span of a task, and the events of this span. The events go to the subscriber that created the span, whichever
//! thread records them.

use std::fmt;
use std::panic::Location;
use tracing::Span;
use tracing_core::callsite::DefaultCallsite;
use tracing_core::field::{Field, FieldSet, Value};
use tracing_core::{Dispatch, Event, Kind, Level, Metadata, identify_callsite};

/// The target of the spans of tasks, and of their events.
pub const TARGET: &str = "eventring::task";

/// What is known of a task when it is spawned.
#[derive(Clone, Copy)]
pub(crate) struct NewTask<'n> {
    pub(crate) name: &'n str,
    pub(crate) kind: &'static str,
    pub(crate) spawned_at: &'static Location<'static>,
}

/// A place in the source: file and line.
struct Place(&'static Location<'static>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

/// Makes the span of a task. Returns `None` if nobody wants it.
#[inline]
pub(crate) fn task_span(new: NewTask<'_>) -> Option<Span> {
    let NewTask { name, kind, spawned_at } = new;
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        "task",
        name,
        spawned_at = %Place(spawned_at),
        kind,
        outcome = tracing::field::Empty
    );
    if span.is_disabled() {
        return None;
    }
    // `tracing` asks the subscriber of the thread that comes to a call site first. This thread has the right one; a
    // thread that wakes the task may have none.
    for site in [&WOKEN, &UNWAKEABLE] {
        site.interest();
    }
    if let Some(spawner) = Span::current().id() {
        span.follows_from(spawner);
    }
    Some(span)
}

/// Records how a task has ended.
pub(crate) fn outcome(span: &Span, outcome: &'static str) {
    span.record("outcome", outcome);
}

/// Defines a call site of an event of tasks.
macro_rules! call_site {
    ($site:ident, $metadata:ident, $name:literal, $fields:expr) => {
        static $site: DefaultCallsite = DefaultCallsite::new(&$metadata);
        static $metadata: Metadata<'static> = Metadata::new(
            $name,
            TARGET,
            Level::INFO,
            Some(file!()),
            Some(line!()),
            Some(module_path!()),
            FieldSet::new($fields, identify_callsite!(&$site)),
            Kind::EVENT,
        );
    };
}

// Events without fields are recorded on the shortest way.
call_site!(WOKEN, WOKEN_METADATA, "woken", &[]);
call_site!(UNWAKEABLE, UNWAKEABLE_METADATA, "unwakeable", &[]);

/// The subscriber and the number of a task's span. They keep the span no longer open.
pub(crate) struct Recorded {
    pub(crate) id: tracing_core::span::Id,
    pub(crate) dispatch: Dispatch,
}

impl Recorded {
    /// Records a wake by this thread.
    #[inline]
    pub(crate) fn woken(&self) {
        self.event(&WOKEN, &WOKEN_METADATA);
    }

    /// Records that nobody can wake the task any more.
    #[cold]
    pub(crate) fn unwakeable(&self) {
        self.event(&UNWAKEABLE, &UNWAKEABLE_METADATA);
    }

    #[inline]
    fn event(&self, site: &'static DefaultCallsite, metadata: &'static Metadata<'static>) {
        if is_wanted(site, metadata, &self.dispatch) {
            let none: [(&Field, Option<&dyn Value>); 0] = [];
            let values = metadata.fields().value_set(&none);
            self.dispatch.event(&Event::new_child_of(self.id.clone(), metadata, &values));
        }
    }
}

/// Returns true if the subscriber wants the event, as the macros of `tracing` ask it.
#[inline]
fn is_wanted(site: &'static DefaultCallsite, metadata: &'static Metadata<'static>, dispatch: &Dispatch) -> bool {
    let interest = site.interest();
    interest.is_always() || (!interest.is_never() && dispatch.enabled(metadata))
}
