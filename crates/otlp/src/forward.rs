//! Reading rings, and filling batches.

use super::endpoint::OtlpEndpoint;
use super::error::OtlpError;
use super::post::Post;
use super::sender::{OtlpSummary, SendTimeout, send_all};
use crate::messages::{BATCH_BYTES, OtlpConsumer, OtlpMapper, OtlpRequests};
use eventring::reader::{Reader, RingSet, SetRing};
use eventring::recorder::Clock;
use eventring_capture::NextRing;
use eventring_live::{Live, LiveOptions, LiveProgress};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a message waits for others.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// The time between two looks at whether the user wants an end.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// The age from which on an event is certain to have been read, and a span that was closed then to have been seen, if
/// the stream has reached the present. In nanoseconds.
const SETTLED_NANOS: u64 = 10_000_000;
/// The batches that wait for the sender.
const BATCHES: usize = 2;

/// The settings of a forwarding.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct OtlpOptions {
    endpoint: OtlpEndpoint,
    host: Option<String>,
    timeout: Duration,
}

impl OtlpOptions {
    /// The timeout of a forwarding, unless it is set: 30 s.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// Makes settings for this collector.
    pub fn new(endpoint: OtlpEndpoint) -> Self {
        Self { endpoint, host: None, timeout: Self::TIMEOUT }
    }

    /// Sets the name of the host on which the programs run, which is sent as `host.name`. Default: none.
    pub fn host(self, host: Option<String>) -> Self {
        Self { host, ..self }
    }

    /// Sets how long the forwarding goes on trying to reach the collector when the programs have ended: since their
    /// end, or since the collector has answered last, if that was later. Default: [`Self::TIMEOUT`]. While a
    /// program records, the forwarding never gives up.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// Reads rings until their programs have ended, or until `stops` returns true, and sends spans and log records to a
/// collector.
///
/// `next_ring` is called several times a second, as a capture does it, and returns the rings: those that are there, and
/// later those that come. Until it says that no other ring will come, the forwarding goes on, even if all programs have
/// ended.
///
/// `stops` is called several times a second, with the present problem with the collector. When it returns true, what
/// was recorded until then is still read and sent. If it returns true when the programs have ended already and the
/// collector takes nothing, what was not sent is given up.
///
/// A batch leaves after a second, or when it has 2,000 messages or 1 MiB. At most four batches are in memory; while the
/// collector does not take them, nothing is read from the rings.
///
/// # Errors
/// The system gives no thread. Problems with the collector are no errors: they are counted in the summary.
pub fn forward_otlp(
    options: &OtlpOptions,
    mut next_ring: impl FnMut() -> NextRing,
    mut stops: impl FnMut(Option<&str>) -> bool,
) -> Result<OtlpSummary, OtlpError> {
    let (timeout, summary) = (SendTimeout::new(options.timeout), Mutex::new(OtlpSummary::default()));
    let mut stops = || stops(timeout.problem().as_deref());
    let post = Post::new(options.endpoint.clone());
    std::thread::scope(|scope| {
        let (batches, to_send) = sync_channel(BATCHES);
        let thread = std::thread::Builder::new().name("eventring-otlp".to_owned());
        let sender = thread.spawn_scoped(scope, || send_all(&post, to_send, &timeout, &summary));
        let sender = sender.map_err(|error| OtlpError(format!("cannot start the thread that sends: {error}")))?;
        let queue = Queue {
            batches,
            programs: Vec::new(),
            may_come_more: true,
            timeout: &timeout,
            summary: &summary,
            stops: &mut stops,
            stopped_nanos: None,
        };
        let was_stopped = read_all(&mut next_ring, options.host.clone(), queue);
        while !sender.is_finished() {
            // Who asks for an end twice, or after the end of the programs, does not want to wait.
            if stops() && !was_stopped {
                timeout.end();
            }
            std::thread::sleep(LOOK_PAUSE / 10);
        }
        Ok(())
    })?;
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The way to the sender.
struct Queue<'q> {
    batches: SyncSender<OtlpRequests>,
    /// The rings that are read. When their writers have ended and no other ring may come, nothing more is recorded.
    programs: Vec<Reader>,
    may_come_more: bool,
    timeout: &'q SendTimeout,
    summary: &'q Mutex<OtlpSummary>,
    stops: &'q mut dyn FnMut() -> bool,
    /// The time since which the user wants an end, in nanoseconds since the epoch.
    stopped_nanos: Option<u64>,
}

impl Queue<'_> {
    /// Hands a batch over. Waits while the sender has enough to do; meanwhile the events wait in the rings.
    fn leave(&mut self, mut requests: OtlpRequests) {
        loop {
            requests = match self.batches.try_send(requests) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => return,
                Err(TrySendError::Full(requests)) => requests,
            };
            self.look();
            std::thread::sleep(LOOK_PAUSE / 10);
        }
    }

    /// Looks whether the user wants an end, and whether the programs have ended.
    fn look(&mut self) {
        let have_ended = || self.programs.iter().all(|ring| !ring.state().may_be_written());
        if (self.stops)() {
            self.stopped_nanos.get_or_insert_with(|| Clock::global().now_epoch_nanos());
            // Nothing more is recorded, and the collector does not take what was.
            if have_ended() && self.timeout.problem().is_some() {
                self.timeout.end();
            }
        }
        if self.stopped_nanos.is_some() || (!self.may_come_more && have_ended()) {
            self.timeout.begin();
        }
    }

    /// Takes the rings that have come since the last call.
    fn take_rings(&mut self, next_ring: &mut dyn FnMut() -> NextRing, live: &mut Live) {
        while self.may_come_more {
            match next_ring() {
                NextRing::Ring(ring) => {
                    self.programs.push(ring.clone());
                    live.add(ring);
                }
                NextRing::NotYet => return,
                NextRing::NoMore => self.may_come_more = false,
            }
        }
    }
}

/// Reads the rings, and puts its counts into the summary. Returns whether the user has ended it.
fn read_all(next_ring: &mut dyn FnMut() -> NextRing, host: Option<String>, mut queue: Queue<'_>) -> bool {
    let no_rings = RingSet::options().from_readers(Vec::new());
    let mut live = Live::new(no_rings, &LiveOptions::new().without_self_times());
    let mut mapper = OtlpMapper::new(BATCH_BYTES).host(host);
    let mut has_left = Instant::now();
    loop {
        let stopped_nanos = queue.stopped_nanos;
        if stopped_nanos.is_none() {
            queue.take_rings(next_ring, &mut live);
        }
        let leave = |mapper: &mut OtlpMapper| {
            queue.leave(mapper.take());
            has_left = Instant::now();
            Ok(())
        };
        // Handing over never fails.
        let progress = live.drive(LOOK_PAUSE, &mut OtlpConsumer { mapper: &mut mapper, leave });
        let progress = progress.unwrap_or(LiveProgress::Ended);
        queue.look();
        let is_end = match stopped_nanos {
            // What was recorded until the user wanted an end is read. A program that goes on cannot delay the end.
            Some(stopped_nanos) => {
                let now_nanos = live.state().now_epoch_nanos();
                progress != LiveProgress::Behind || now_nanos >= stopped_nanos.saturating_add(SETTLED_NANOS)
            }
            None => progress == LiveProgress::Ended && !queue.may_come_more,
        };
        if is_end {
            break;
        }
        if progress == LiveProgress::Ended {
            // Others are awaited.
            std::thread::sleep(LOOK_PAUSE);
        }
        if !mapper.is_empty() && has_left.elapsed() >= WAIT_MAX {
            queue.leave(mapper.take());
            has_left = Instant::now();
        }
    }
    if !mapper.is_empty() {
        queue.leave(mapper.take());
    }
    queue.timeout.begin();
    let mut summary = queue.summary.lock().unwrap_or_else(PoisonError::into_inner);
    // Spans that are open in a program that lives will be closed, and sent by the next forwarding.
    summary.open_spans = mapper.open_spans;
    let (lost, overwritten_before) = mapper.lost();
    (summary.lost, summary.overwritten_before) = (lost.saturating_add(overwritten_before), overwritten_before);
    summary.not_tracked = live.state().spans_without_room();
    (summary.dropped_links, summary.apart) = (mapper.counts.dropped_links, mapper.counts.apart);
    summary.unreadable = live.rings().rings().iter().filter_map(SetRing::reader).find_map(|ring| {
        let lost = ring.lost_pages()?;
        Some(format!("{}: {}", ring.name().unwrap_or("ring".as_ref()).display(), lost.advice()))
    });
    queue.stopped_nanos.is_some()
}
