//! Triggers: log records with which a program asks programs that watch it to save its recent events.

use crate::global::current_span_id;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use crate::tracing::record::threads::thread;
use std::panic::{Location, PanicHookInfo};
use std::sync::{Arc, Once};
use tracing_core::callsite::Identifier;
use tracing_core::field::{FieldSet, Value};
use tracing_core::metadata::Kind;
use tracing_core::subscriber::Interest;
use tracing_core::{Callsite, Level, Metadata};

/// The call site of all triggers.
struct TriggerCallSite;

static CALL_SITE: TriggerCallSite = TriggerCallSite;

/// The names of the fields. The values come in this order.
static FIELD_NAMES: [&str; 3] = ["message", "reason", "location"];

static METADATA: Metadata<'static> = Metadata::new(
    "TRIGGER",
    "eventring",
    Level::ERROR,
    None,
    None,
    None,
    FieldSet::new(&FIELD_NAMES, Identifier(&CALL_SITE)),
    Kind::EVENT,
);

impl Callsite for TriggerCallSite {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        &METADATA
    }
}

impl PerfRecorder {
    /// Records a trigger: a log record named `TRIGGER`, by which a watcher of the rings notices that now is the moment
    /// to save the past. `reason` says why, in the field `reason`; the field `location` has the place of the call. The
    /// record has the level ERROR and the target `eventring`, and belongs to the span that the thread is in.
    ///
    /// The trigger is recorded whatever the filter says, but only while the recorder is switched on. It does not go to
    /// other subscribers or layers. In a forked child this function does nothing.
    ///
    /// A program that has rings of typed events and no perf recorder declares an event named `TRIGGER`, which serves
    /// the same purpose.
    ///
    /// ```
    /// use eventring::tracing::PerfRecorder;
    ///
    /// let recorder = PerfRecorder::builder().anonymous().build()?;
    /// recorder.trigger("the queue is full");
    /// # Ok::<(), eventring::recorder::RecorderError>(())
    /// ```
    #[track_caller]
    pub fn trigger(&self, reason: &str) {
        self.core.record_trigger(None, reason, Some(Location::caller()));
    }
}

/// Records a trigger to the recorder in [`PERF`], as [`PerfRecorder::trigger`] does. Does nothing if there is no
/// recorder.
///
/// ```
/// eventring::tracing::trigger("the queue is full");
/// ```
#[track_caller]
pub fn trigger(reason: &str) {
    if let Some(recorder) = PERF.active() {
        recorder.core.record_trigger(None, reason, Some(Location::caller()));
    }
}

/// Makes each panic of the program record a trigger ([`trigger()`]) to the recorder in [`PERF`], before anything else
/// happens. The field `reason` is `panic`, the fields `message` and `location` have the message and the place of the
/// panic. The record belongs to the span that the panicking thread is in. A panic that the program catches counts, too.
///
/// The function installs a panic hook, which then calls the hook that was installed before. Further calls do nothing. A
/// call by a thread that panics at this moment does nothing either, because such a thread cannot install a hook. If the
/// program installs a hook of its own later, that hook must call this one, as `std::panic::take_hook` explains.
///
/// The hook itself never panics, and runs no code of the program.
///
/// ```
/// eventring::tracing::trigger_on_panic();
/// ```
pub fn trigger_on_panic() {
    static INSTALLED: Once = Once::new();
    if std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            record_panic(info);
            before(info);
        }));
    });
}

fn record_panic(info: &PanicHookInfo<'_>) {
    if let Some(recorder) = PERF.active() {
        recorder.core.record_trigger(info.payload_as_str(), "panic", info.location());
    }
}

impl PerfCore {
    #[cold]
    fn record_trigger(self: &Arc<Self>, message: Option<&str>, reason: &str, location: Option<&Location<'_>>) {
        // A forked child takes no locks here and records nothing.
        if !self.is_enabled() || !self.belongs_to_this_process() {
            return;
        }
        let location = location.map(|location| format!("{}:{}", location.file(), location.line()));
        thread::with(|thread| {
            // As for other log records, the call site and the ring come before the fields, because looking for them may
            // record other events.
            let call_site_id = self.call_site_id(&METADATA);
            let Some(ring) = thread.ring_of(self) else { return };
            let ext = PerfExt::of_span(current_span_id(), call_site_id);
            let mut fields = METADATA.fields().iter();
            // `FIELD_NAMES` has three names, so there are three fields.
            let (Some(first), Some(second), Some(third)) = (fields.next(), fields.next(), fields.next()) else {
                return;
            };
            let [message, reason, location] = [message, Some(reason), location.as_deref()];
            let values = [(&first, Some(&message as &dyn Value)), (&second, Some(&reason)), (&third, Some(&location))];
            let values = METADATA.fields().value_set(&values);
            self.encode_fields(
                thread,
                ring,
                NO_CALL_SITE,
                |visitor| values.record(visitor),
                |fields| {
                    self.record_with_fields(ring, thread, PerfEvent::Event, ext, fields);
                },
            );
        });
    }
}
