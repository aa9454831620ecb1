//! The reading process of the demo.

use super::INTERVAL;
use super::checksum::Checksum;
use super::workload::knows_its_seqno;
use super::writer::print_line;
use crate::exit::Exit;
use eventring::reader::{Descriptor, Followed, Follower, PayloadRead, Reader, Seek, WaitStrategy};
use eventring::schema::RECORD_ERROR_CODE;
use eventring::schema::exec::ExecEvent;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Read for the demo
#[derive(clap::Args)]
pub(crate) struct ReaderArgs {
    ring: PathBuf,
}

/// Counts of the events that were read or missed.
#[derive(Default)]
struct Counts {
    read: u64,
    gaps: u64,
    expired: u64,
    torn: u64,
    record_errors: u64,
    payload_bytes: u64,
}

pub(crate) fn run(args: &ReaderArgs) -> anyhow::Result<Exit> {
    let reader = Reader::open_typed::<ExecEvent>(&args.ring)?;
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let mut follower = Follower::new(cursor, WaitStrategy::Adaptive);
    print_line(&json!({ "ready": true }))?;

    let mut counts = Counts::default();
    let mut buffer = Vec::new();
    let start = Instant::now();
    let mut next_report = start + INTERVAL;
    for looks in 0u64.. {
        match follower.next_timeout(INTERVAL) {
            Followed::Event(event) => counts.event(&event, follower.cursor().payload(&event, &mut buffer)),
            Followed::Gap(gap) => counts.gaps += gap.count,
            Followed::TimedOut => {}
            Followed::Ended => break,
        }
        // Reading the clock in every round would slow the reader down, so the clock is read once in 64 rounds.
        if looks % 64 == 0 && Instant::now() >= next_report {
            next_report += INTERVAL;
            print_line(&counts.line(start, follower.cursor().lag(), false))?;
        }
    }
    print_line(&counts.line(start, 0, true))?;
    Ok(Exit::Done)
}

impl Counts {
    fn event(&mut self, event: &Descriptor, payload: PayloadRead<'_>) {
        let Some(payload) = payload.valid() else {
            self.expired += 1;
            return;
        };
        self.read += 1;
        self.payload_bytes += payload.len() as u64;
        if event.event_type == RECORD_ERROR_CODE {
            self.record_errors += 1;
        } else if checksum(event, payload) != event.content_ext[3] {
            self.torn += 1;
        }
    }

    fn line(&self, start: Instant, behind: u64, done: bool) -> serde_json::Value {
        let mut line = json!({
            "at": start.elapsed().as_secs_f64(),
            "read": self.read,
            "gaps": self.gaps,
            "expired": self.expired,
            "torn": self.torn,
            "record_errors": self.record_errors,
            "payload_bytes": self.payload_bytes,
            "behind": behind,
        });
        if done {
            line["done"] = true.into();
        }
        line
    }
}

/// Returns the checksum that the writer must have stored in this event.
pub(crate) fn checksum(event: &Descriptor, payload: &[u8]) -> u64 {
    let [block, txn, account, _] = event.content_ext;
    let seqno = if knows_its_seqno(event.event_type) { event.seqno } else { 0 };
    let mut sum = Checksum::new(event.event_type, [block, txn, account], seqno);
    sum.add(payload);
    sum.finish()
}
