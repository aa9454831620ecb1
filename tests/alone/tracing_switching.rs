//! Several threads change switches and filters at the same time. A layer also changes them while `tracing` asks it
//! about a call site. A value changes them while it is formatted.

use crate::fixtures::*;
use eventring::tracing::FilterHandle;
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Level, Metadata};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};

fn filter(directives: &str) -> TargetFilter {
    directives.parse().unwrap()
}

/// A layer that calls a function whenever `tracing` asks it about a call site.
struct Asked<F>(F);

impl<F: Fn() + 'static, S: Subscriber> Layer<S> for Asked<F> {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        (self.0)();
        Interest::always()
    }
}

struct Program {
    recorder: PerfRecorder,
    filter: FilterHandle,
    dispatch: Dispatch,
}

impl Program {
    fn new<F: Fn() + Send + Sync + 'static>(asked: impl FnOnce(&PerfRecorder, &FilterHandle) -> F) -> Self {
        let builder = small();
        let recorder = builder.build().unwrap();
        let subscriber = RecorderSubscriber::new(recorder.clone());
        let filter = subscriber.filter_handle();
        let dispatch = Dispatch::new(subscriber.with(Asked(asked(&recorder, &filter))));
        Self { recorder, filter, dispatch }
    }

    fn run<R>(&self, program: impl FnOnce() -> R) -> R {
        tracing::dispatcher::with_default(&self.dispatch, program)
    }

    /// Returns true if a span of this level is recorded now.
    fn records_a_span(&self) -> bool {
        let recorded = || records(&self.recorder).len();
        let before = recorded();
        self.run(|| drop(info_span!("is it recorded?")));
        recorded() > before
    }
}

thread_local! {
    /// Two channels, if this thread is to pause. When `tracing` asks about the first call site, the thread sends a
    /// message to the first channel. Then it waits for a message from the second one.
    static PAUSE: Cell<Option<(SyncSender<()>, Receiver<()>)>> = const { Cell::new(None) };
}

/// Makes two changes at the same time, on two threads. The thread of the `first` change pauses while `tracing` asks
/// about its call sites. It goes on when the `second` change has been made, or after a timeout. The timeout is needed
/// if the second change waits for the first one.
fn race(program: &Program, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let (says_paused, is_paused) = sync_channel(1);
    let (says_done, is_done) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            PAUSE.set(Some((says_paused, is_done)));
            program.run(first);
        });
        is_paused.recv().unwrap();
        program.run(second);
        let _ = says_done.send(());
    });
}

fn pausing() -> Program {
    Program::new(|_, _| {
        || {
            if let Some((says_paused, is_done)) = PAUSE.take() {
                says_paused.send(()).unwrap();
                // If the second change has to wait for the first one, no message comes. The timeout then ends the
                // pause.
                let _ = is_done.recv_timeout(Duration::from_millis(500));
            }
        }
    })
}

#[test]
fn a_filter_that_is_changed_beside_a_switch_does_not_leave_recording_off() {
    alone!();
    let program = pausing();
    assert!(program.records_a_span());
    for _ in 0..3 {
        program.run(|| program.recorder.set_enabled(false));
        assert!(!program.records_a_span());
        race(&program, || program.filter.set(filter("debug")), || program.recorder.set_enabled(true));
        assert!(program.records_a_span(), "recording was left off");

        program.run(|| program.filter.set(filter("error")));
        assert!(!program.records_a_span());
        race(&program, || program.recorder.set_enabled(true), || program.filter.set(filter("info")));
        assert!(program.records_a_span(), "the filter was left as it was");
    }
    // This is the control: here the first thread calls plain `rebuild_interest_cache`, without the lock of the switch.
    // It asks while recording is off, and stores the answers after the second change. So recording stays off.
    program.run(|| program.recorder.set_enabled(false));
    race(&program, tracing::callsite::rebuild_interest_cache, || program.recorder.set_enabled(true));
    assert!(!program.records_a_span());
}

/// Runs the program on a new thread. Fails if the program hangs.
fn ends(program: impl FnOnce() + Send + 'static) {
    let (says_done, is_done) = sync_channel(1);
    let thread = std::thread::spawn(move || {
        program();
        says_done.send(()).unwrap();
    });
    // No machine is so busy that the program takes this long. If the program panics, `recv_timeout` returns another
    // error, and `join` then fails.
    let waited = is_done.recv_timeout(Duration::from_secs(100));
    assert_ne!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it hangs");
    thread.join().unwrap();
}

#[test]
fn a_layer_that_switches_while_it_is_asked_changes_what_is_recorded() {
    alone!();
    ends(|| {
        let is_to_switch = Arc::new(AtomicBool::new(false));
        let program = Program::new(|recorder, handle| {
            let (is_to_switch, recorder, handle) = (is_to_switch.clone(), recorder.clone(), handle.clone());
            move || {
                if is_to_switch.swap(false, Ordering::Relaxed) {
                    recorder.set_enabled(true);
                    handle.set(filter("info"));
                }
            }
        });
        assert!(program.records_a_span());
        program.run(|| program.recorder.set_enabled(false));
        is_to_switch.store(true, Ordering::Relaxed);
        program.run(|| program.filter.set(filter("off")));
        assert!(!is_to_switch.load(Ordering::Relaxed));
        assert!(program.records_a_span());
    });
}

#[test]
fn a_layer_that_switches_whenever_it_is_asked_hangs_nobody() {
    alone!();
    ends(|| {
        let (is_to_switch, times) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let program = Program::new(|recorder, handle| {
            let (recorder, handle) = (recorder.clone(), handle.clone());
            let (is_to_switch, times) = (is_to_switch.clone(), times.clone());
            move || {
                if is_to_switch.load(Ordering::Relaxed) {
                    let times = times.fetch_add(1, Ordering::Relaxed);
                    recorder.set_enabled(times % 2 == 0);
                    handle.set(filter("info"));
                }
            }
        });
        assert!(program.records_a_span());
        is_to_switch.store(true, Ordering::Relaxed);
        program.run(|| program.recorder.set_enabled(true));
        assert!(times.load(Ordering::Relaxed) > 0);
    });
}

struct Switching<'p>(&'p Program);

impl fmt::Debug for Switching<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.recorder.set_enabled(false);
        self.0.filter.set(filter("debug"));
        self.0.recorder.set_enabled(true);
        f.write_str("switched")
    }
}

#[test]
fn a_value_that_switches_while_it_is_formatted_hangs_nobody() {
    alone!();
    ends(|| {
        let program = Program::new(|_, _| || ());
        // With only one subscriber in the program, `tracing` asks the subscriber that is current on the thread. With
        // this second subscriber, it asks all subscribers at each change.
        let _other = Dispatch::new(tracing_subscriber::registry());
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    program.run(|| program.filter.set(filter("info")));
                }
            });
            for _ in 0..300 {
                program.run(|| tracing::info!(value = ?Switching(&program), "hello"));
            }
            has_ended.store(true, Ordering::Relaxed);
            other.join().unwrap();
        });
        assert!(program.records_a_span());
    });
}

#[test]
fn while_a_filter_is_changed_the_old_or_the_new_one_is_asked() {
    alone!();
    let program = Program::new(|_, _| || ());
    let metadata = program.run(|| tracing::span!(target: "noisy", Level::INFO, "noise").metadata()).unwrap();
    let builder = small();
    let subscriber = RecorderSubscriber::new(builder.build().unwrap());
    let handle = subscriber.filter_handle();
    let filters = ["noisy=off,first=info", "noisy=warn,second=debug", "error", "noisy=error"].map(filter);
    handle.set(filters[0].clone());
    std::thread::scope(|scope| {
        let ask = || {
            for _ in 0..150_000 {
                assert!(!subscriber.enabled(metadata), "what no filter accepts was admitted");
                let level = subscriber.max_level_hint().expect("a level");
                assert!((LevelFilter::ERROR..=LevelFilter::DEBUG).contains(&level), "{level}");
                assert!(filters.contains(&handle.get()));
            }
        };
        let asking = [scope.spawn(ask), scope.spawn(ask)];
        let is_over = || asking.iter().all(|thread| thread.is_finished());
        filters.iter().cycle().take_while(|_| !is_over()).for_each(|next| handle.set(next.clone()));
    });
    handle.set(filter("noisy=info"));
    assert!(subscriber.enabled(metadata));
}
