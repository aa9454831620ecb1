//! Sending batches, with retries.

use super::post::{CollectorAnswer, Post, compress, one_line};
use crate::messages::OtlpRequests;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::{DecodeError, Message};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The counts of a forwarding.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OtlpSummary {
    /// Spans that the collector has taken.
    pub spans: u64,
    /// Spans, also those that the collector did not take, that were open when their programs ended.
    pub open_spans: u64,
    /// Log records that the collector has taken: log records outside of spans, typed events outside of spans, losses.
    pub log_records: u64,
    /// Events that were lost in the rings, whatever the cause.
    pub lost: u64,
    /// Those of `lost` that had been overwritten before the forwarding began.
    pub overwritten_before: u64,
    /// Spans that found no room in the engine, so that they were not sent. One of which events were lost may count
    /// twice.
    pub not_tracked: u64,
    /// Links that were dropped because their spans had more than 128.
    pub dropped_links: u64,
    /// Events and links that were sent as log records, and that their spans neither have nor count.
    pub apart: u64,
    /// Requests, with repetitions.
    pub requests: u64,
    /// Repetitions of requests that the collector could not take at first.
    pub retries: u64,
    /// Spans and log records that the collector has refused.
    pub rejected: u64,
    /// Spans and log records that could not be sent before the timeout was over.
    pub unsent: u64,
    /// Bytes of the bodies of all requests, compressed.
    pub bytes: u64,
    /// The reason why a part of a ring's file could not be read, if that happened.
    #[serde(skip)]
    pub unreadable: Option<String>,
    /// The last problem with the collector.
    pub last_error: Option<String>,
}

/// The pause before the first repetition of a request. It doubles with each repetition.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// The longest pause, unless the collector asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The timeout of the sender. It begins when nothing more is recorded, and again with each answer of the collector.
pub(super) struct SendTimeout {
    time: Duration,
    state: Mutex<TimeoutState>,
    changed: Condvar,
}

#[derive(Default)]
struct TimeoutState {
    /// The time since which the timeout is running out. There is none while programs record.
    since: Option<Instant>,
    is_over: bool,
    /// The problem with the collector at this moment, if there is one.
    problem: Option<String>,
}

impl SendTimeout {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes the fact that nothing more is recorded.
    pub(super) fn begin(&self) {
        self.lock().since.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// Ends the timeout at once.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Takes the fact that the collector has answered, with a problem or without one.
    fn renew(&self, problem: Option<&str>) {
        let mut state = self.lock();
        state.since = state.since.map(|_| Instant::now());
        state.problem = problem.map(str::to_owned);
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Waits for this time. Returns false if the sender must give up, at once or at the end of this time.
    fn pause(&self, time: Duration) -> bool {
        let begin = Instant::now();
        let mut state = self.lock();
        loop {
            let left = time.saturating_sub(begin.elapsed());
            let timeout_left = state.since.map(|since| self.time.saturating_sub(since.elapsed()));
            if state.is_over {
                return false;
            }
            if timeout_left.is_some_and(|left| left.is_zero()) {
                // Who has no timeout at all has each request sent once.
                state.is_over = !self.time.is_zero();
                return false;
            }
            if left.is_zero() {
                return true;
            }
            let wait = timeout_left.map_or(left, |timeout_left| timeout_left.min(left));
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, TimeoutState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends batches until there are no more. Counts in `summary`.
pub(super) fn send_all(
    post: &Post,
    batches: Receiver<OtlpRequests>,
    timeout: &SendTimeout,
    summary: &Mutex<OtlpSummary>,
) {
    let sender = Sender { post, timeout, summary };
    for OtlpRequests { traces, logs, spans, log_records } in batches {
        if let Some(traces) = traces {
            let taken = sender.deliver(&post.endpoint().traces(), &traces, spans, |answer| {
                let answer = ExportTraceServiceResponse::decode(answer)?.partial_success;
                Ok(answer.map(|partial| (partial.rejected_spans, partial.error_message)))
            });
            sender.count(|summary| summary.spans += taken);
        }
        if let Some(logs) = logs {
            let taken = sender.deliver(&post.endpoint().logs(), &logs, log_records, |answer| {
                let answer = ExportLogsServiceResponse::decode(answer)?.partial_success;
                Ok(answer.map(|partial| (partial.rejected_log_records, partial.error_message)))
            });
            sender.count(|summary| summary.log_records += taken);
        }
    }
}

/// Returns a pause of some length up to `pause`, or for as much longer than the collector has asked for. So senders
/// that were refused at the same time do not all come back at the same time.
pub(super) fn varied(pause: Duration, asked: Option<Duration>) -> Duration {
    // The standard library has no random numbers, but each of its maps has a random seed.
    let part = RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64;
    match asked {
        Some(asked) => asked + pause.mul_f64(part),
        None => pause.mul_f64(0.5 + part / 2.0),
    }
}

struct Sender<'s> {
    post: &'s Post,
    timeout: &'s SendTimeout,
    summary: &'s Mutex<OtlpSummary>,
}

impl Sender<'_> {
    fn count(&self, change: impl FnOnce(&mut OtlpSummary)) {
        change(&mut self.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Delivers a request with this number of messages. `rejected` reads from an answer how many messages the collector
    /// has rejected, and why. Returns how many it has taken.
    fn deliver(
        &self,
        url: &str,
        request: &impl Message,
        messages: u64,
        rejected: impl Fn(&[u8]) -> Result<Option<(i64, String)>, DecodeError>,
    ) -> u64 {
        let body = compress(&request.encode_to_vec());
        let mut pause = PAUSE_FIRST;
        if self.timeout.is_over() {
            self.count(|summary| summary.unsent += messages);
            return 0;
        }
        loop {
            let answer = self.post.send(url, &body);
            self.count(|summary| {
                summary.requests += 1;
                summary.bytes += body.len() as u64;
            });
            match answer {
                CollectorAnswer::Taken(answer) => {
                    self.timeout.renew(None);
                    let (count, why) = match rejected(&answer) {
                        Ok(partial) => partial.unwrap_or_default(),
                        // Something else than a collector says that all is well.
                        Err(_) => (i64::MAX, "the answer is none of a collector".to_owned()),
                    };
                    let count = u64::try_from(count).unwrap_or(0).min(messages);
                    self.count(|summary| {
                        summary.rejected += count;
                        if count > 0 {
                            summary.last_error = Some(format!("{url}: {count} rejected: {}", one_line(&why)));
                        }
                    });
                    return messages - count;
                }
                CollectorAnswer::Never(why) => {
                    self.timeout.renew(Some(&why));
                    self.count(|summary| {
                        summary.rejected += messages;
                        summary.last_error = Some(why);
                    });
                    return 0;
                }
                CollectorAnswer::Later(asked, why) => {
                    self.timeout.lock().problem = Some(why.clone());
                    self.count(|summary| summary.last_error = Some(why));
                    if !self.timeout.pause(varied(pause, asked)) {
                        self.count(|summary| summary.unsent += messages);
                        return 0;
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                    self.count(|summary| summary.retries += 1);
                }
            }
        }
    }
}
