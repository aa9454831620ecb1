//! Sending batches, and sending them again.

use super::forward::OtlpSummary;
use super::post::{CollectorAnswer, Post, compress};
use crate::export::otlp::OtlpRequests;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pause before the first repetition of a request. It doubles with each repetition.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// The longest pause, unless the collector asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The time at which the sender gives up. There is none before the end of the forwarding.
#[derive(Default)]
pub(super) struct GiveUp {
    at: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl GiveUp {
    pub(super) fn set(&self, at: Instant) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.changed.notify_all();
    }

    /// Waits for this time. Returns false if the sender must give up, at once or at the end of this time.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if at.is_some_and(|at| now >= at) {
                return false;
            }
            if now >= until {
                return true;
            }
            let end = at.map_or(until, |at| at.min(until));
            at = self.changed.wait_timeout(at, end - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sends batches until there are no more. Counts in `summary`.
pub(super) fn send_all(post: &Post, batches: Receiver<OtlpRequests>, give_up: &GiveUp, summary: &Mutex<OtlpSummary>) {
    let sender = Sender { post, give_up, summary };
    for OtlpRequests { traces, logs, spans, log_records } in batches {
        if let Some(traces) = traces {
            let taken = sender.deliver(&post.endpoint().traces(), &traces, spans, |answer| {
                let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
                Some((partial.rejected_spans, partial.error_message))
            });
            sender.count(|summary| summary.spans += taken);
        }
        if let Some(logs) = logs {
            let taken = sender.deliver(&post.endpoint().logs(), &logs, log_records, |answer| {
                let partial = ExportLogsServiceResponse::decode(answer).ok()?.partial_success?;
                Some((partial.rejected_log_records, partial.error_message))
            });
            sender.count(|summary| summary.log_records += taken);
        }
    }
}

struct Sender<'s> {
    post: &'s Post,
    give_up: &'s GiveUp,
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
        rejected: impl Fn(&[u8]) -> Option<(i64, String)>,
    ) -> u64 {
        let body = compress(&request.encode_to_vec());
        let mut pause = PAUSE_FIRST;
        if !self.give_up.pause(Duration::ZERO) {
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
                    let (count, why) = rejected(&answer).unwrap_or_default();
                    let count = u64::try_from(count).unwrap_or(0).min(messages);
                    self.count(|summary| {
                        summary.rejected += count;
                        if count > 0 {
                            summary.last_error = Some(format!("{url}: {count} rejected: {why}"));
                        }
                    });
                    return messages - count;
                }
                CollectorAnswer::Never(why) => {
                    self.count(|summary| {
                        summary.rejected += messages;
                        summary.last_error = Some(why);
                    });
                    return 0;
                }
                CollectorAnswer::Later(asked, why) => {
                    self.count(|summary| summary.last_error = Some(why));
                    if !self.give_up.pause(asked.unwrap_or(pause)) {
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
