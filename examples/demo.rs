//! One process records typed events and `tracing` spans. Meanwhile, another process reads, checks and counts all
//! events.
//!
//! ```console
//! $ cargo run --release --example demo
//! $ eventring watch demo                                  # meanwhile, in another terminal
//! $ cargo run --release --example demo -- --rate max      # as fast as the threads can
//! ```
//!
//! - `--seconds N`: the recording lasts N seconds.
//! - `--rate N`: all threads together record N events a second.
//! - `--json`: the counts are printed as one line of JSON.
//!
//! Each event is a line of a simulated trade order, with values computed from the numbers of order and line. An event
//! with other values is *torn*; an event that is overwritten before it is read is *lost*. The exit code is 0 if no
//! event is torn and *recorded = read + lost + torn*.

use eventring::global::GlobalRecorder;
use eventring::reader::{Cursor, Descriptor, Followed, Follower, Reader, WaitStrategy};
use eventring::tracing::{Fields, FieldsProblem, PerfContent, PerfItem, PerfReader};
use eventring::{EventPayload, EventType, recorder::RecorderStats, recordv, schema::perf::FieldValue};
use std::error::Error;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tracing::{info, info_span};

const USAGE: &str = "usage: demo [--seconds N] [--rate N|max] [--json]";
const THREADS: u64 = 4;
/// The lines of an order. Each line is a typed event.
const LINES: u32 = 8;
/// The time between two reports of the writing process.
const INTERVAL: Duration = Duration::from_millis(200);

/// A line of an order was filled by some trades. Its extension words say which one.
#[derive(EventPayload, Clone, Copy, PartialEq)]
struct LineFilled {
    trade_count: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 303, name = "DEMO", recorder = DEMO, ext(0 = order, 1 = line))]
#[repr(u16)]
enum Demo {
    // The payload is the struct, followed by a number for each trade.
    #[event(payload = LineFilled, trailing(trades: u64 * trade_count))]
    LineFilled = 2,
}

static DEMO: GlobalRecorder = GlobalRecorder::new("demo");

fn main() -> Result<(), Box<dyn Error>> {
    let (mut time, mut rate, mut is_json, mut is_writer) = (Duration::from_secs(5), 1e6, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "writer" => is_writer = true,
            "--json" => is_json = true,
            "--seconds" => time = Duration::try_from_secs_f64(value()?.parse()?)?,
            "--rate" => rate = value()?.replace("max", "inf").parse()?,
            _ => return Err(format!("{argument} is not known; {USAGE}").into()),
        }
    }
    if is_writer { write(time, rate) } else { read(is_json) }
}

/// Returns a number that follows from `number` and looks like noise.
fn noise(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Returns the payload of a line: its fixed part, and the trades, of which the first `trade_count` are recorded.
fn line_filled(order: u64, line: u32) -> (LineFilled, [[u8; 8]; 16]) {
    let seed = noise(order ^ u64::from(line) << 56);
    let trades = std::array::from_fn(|trade| noise(seed ^ trade as u64).to_le_bytes());
    (LineFilled { trade_count: seed % 17 }, trades)
}

/// The writing process. First it prints the paths of its rings. Then it reports again and again the [`numbers`] of its
/// typed events, and those of its spans and log records.
fn write(time: Duration, rate: f64) -> Result<(), Box<dyn Error>> {
    // The rings are `demo` and `demo-spans`. If another demo is running, they get other names: `demo~2`.
    let lines = DEMO.try_init::<Demo>("demo")?;
    let spans = eventring::tracing::try_init("demo-spans")?.recorder().ok_or("no spans are recorded")?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", lines.path().ok_or("the ring has no path")?.display())?;
    writeln!(out, "{}", spans.path().ok_or("the rings have no path")?.display())?;
    // The answer comes when the reading process has opened the rings.
    std::io::stdin().read_line(&mut String::new())?;

    // An order is its lines, the four steps of its span (new, enter, exit, close) and a log record.
    let (start, rate) = (Instant::now(), rate / f64::from(LINES + 4 + 1));
    let take_orders = |thread| thread::spawn(move || take_orders(thread, start, time, rate));
    let threads: Vec<_> = (0..THREADS).map(take_orders).collect();
    let mut report = |[lines, skipped]: [u64; 2]| {
        let [spans, spans_skipped] = numbers(&spans.stats().shards);
        writeln!(out, "{lines} {skipped} {spans} {spans_skipped}")
    };
    while !threads.iter().all(JoinHandle::is_finished) {
        thread::sleep(INTERVAL);
        // If the reading process is gone, this process ends, too. It ends normally, so its rings are removed.
        let Ok(()) = report(numbers(&[lines.stats()])) else { return Ok(()) };
    }
    // The threads have counted the typed events that they have recorded. (They cannot count the events of `tracing`,
    // because the recorder adds some of its own, for example at the end of a thread.)
    let counts = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked"));
    let [_, skipped] = numbers(&[lines.stats()]);
    Ok(report([counts.sum::<Result<u64, _>>()? + skipped, skipped])?)
}

/// Returns how many sequence numbers the rings have handed out, and how many of them were skipped. A thread that was
/// stalled gives its number up and takes a later one. The number then stands for no event.
fn numbers(rings: &[RecorderStats]) -> [u64; 2] {
    rings.iter().fold([0; 2], |[all, up], ring| [all + ring.last_seqno, up + ring.refused_claims + ring.overrun_claims])
}

/// Records the orders of one thread. All threads together record at most `rate` orders a second. Returns the number of
/// typed events.
fn take_orders(thread: u64, start: Instant, time: Duration, rate: f64) -> u64 {
    let mut lines = 0;
    for order in (thread..).step_by(THREADS as usize).take_while(|_| start.elapsed() < time) {
        while order as f64 > start.elapsed().as_secs_f64() * rate && start.elapsed() < time {
            thread::sleep(Duration::from_millis(1));
        }
        let _span = info_span!("order", order, check = noise(order)).entered();
        for line in 0..LINES {
            let (fixed, trades) = line_filled(order, line);
            let trades = trades[..fixed.trade_count as usize].as_flattened();
            lines += u64::from(0 < recordv!(Demo::LineFilled, &fixed, [trades]; order = order, line = line.into()));
        }
        info!(order, check = noise(order), "filled");
    }
    lines
}

/// The counts of one kind of events: the sequence numbers that were handed out and skipped, the events that were read,
/// the sequence numbers without an event that was read, and the torn events.
type Tally = [AtomicU64; 5];

/// The reading process, which starts the writing process.
fn read(is_json: bool) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("writer").args(std::env::args().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
    // Ctrl-C reaches only this process. The writing process then ends normally, and so its rings are removed.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut writer = command.spawn()?;
    let mut reports = BufReader::new(writer.stdout.take().ok_or("no pipe")?).lines();
    let mut path = || reports.next().ok_or("the writing process has not made its rings");
    // Nothing is recorded yet, so the cursor stands before the first event.
    let (lines, spans) = (Reader::open_typed::<Demo>(path()??)?.cursor(), PerfReader::open(path()??)?);
    writeln!(writer.stdin.take().ok_or("no pipe")?)?;

    let tallies: [Tally; 2] = Default::default();
    thread::scope(|scope| {
        scope.spawn(|| follow_lines(lines, &tallies[0]));
        scope.spawn(|| follow_spans(spans, &tallies[1]));
        show(reports.map_while(Result::ok), &tallies, is_json);
    });
    let is_good = end(counts(&tallies), is_json) && writer.wait()?.success();
    is_good.then_some(()).ok_or("the writer has failed, an event is torn, or the account does not add up".into())
}

/// Follows the ring of typed events up to its end.
fn follow_lines(cursor: Cursor, tally: &Tally) {
    let [.., read, missed, torn] = tally;
    let mut follower = Follower::new(cursor, WaitStrategy::default());
    let mut buffer = Vec::new();
    loop {
        let (count, by) = match follower.next_blocking() {
            Followed::Event(event) => match follower.cursor().payload(&event, &mut buffer).valid() {
                Some(payload) => (if is_whole(&event, payload) { read } else { torn }, 1),
                None => (missed, 1),
            },
            Followed::Gap(gap) => (missed, gap.count),
            Followed::TimedOut => continue,
            Followed::Ended => return,
        };
        count.fetch_add(by, Ordering::Relaxed);
    }
}

/// Returns true if the event is one that the writing process has recorded. The extension words say which one.
fn is_whole(event: &Descriptor, payload: &[u8]) -> bool {
    let (fixed, trades) = line_filled(event.content_ext[0], event.content_ext[1] as u32);
    let expected = (fixed, trades[..fixed.trade_count as usize].as_flattened());
    event.event_type == Demo::LineFilled as u16 && LineFilled::decode(payload).is_ok_and(|found| found == expected)
}

/// Follows the rings of the spans and log records up to their end.
fn follow_spans(mut reader: PerfReader, tally: &Tally) {
    let [.., read, missed, torn] = tally;
    let of_fields = |fields: &Fields| match (fields.problem, fields.get("order"), fields.get("check")) {
        (None, Some(FieldValue::U64(order)), Some(FieldValue::U64(check))) if *check == noise(*order) => read,
        (Some(FieldsProblem::Expired), ..) => missed,
        _ => torn,
    };
    while !reader.has_ended() {
        let (count, by) = match reader.next_timeout(INTERVAL) {
            Some(PerfItem::Record(record)) => match &record.content {
                PerfContent::SpanNew { fields, .. } | PerfContent::Event { fields, .. } => (of_fields(fields), 1),
                PerfContent::NotRecorded { .. } | PerfContent::Unknown { .. } => (torn, 1),
                _ => (read, 1),
            },
            Some(PerfItem::Gap { gap, .. }) => (missed, gap.count),
            _ => continue,
        };
        count.fetch_add(by, Ordering::Relaxed);
    }
}

/// Returns how many events were recorded, read, lost and torn: typed events, events of `tracing`, and both together.
fn counts(tallies: &[Tally; 2]) -> [[u64; 4]; 3] {
    let [lines, spans] = tallies.each_ref().map(|tally| {
        let [handed_out, skipped, read, missed, torn] = tally.each_ref().map(|count| count.load(Ordering::Relaxed));
        [handed_out.saturating_sub(skipped), read, missed.saturating_sub(skipped), torn]
    });
    [lines, spans, std::array::from_fn(|index| lines[index] + spans[index])]
}

/// Shows the counts, and the rates since they were last shown: on a terminal in a line that is drawn again and again,
/// elsewhere in a line a second.
fn show(reports: impl Iterator<Item = String>, tallies: &[Tally; 2], is_json: bool) {
    let (start, mut then, mut before) = (Instant::now(), 0.0, [0; 4]);
    for report in reports {
        for (count, number) in tallies.iter().flat_map(|tally| &tally[..2]).zip(report.split(' ')) {
            count.store(number.parse().unwrap_or(0), Ordering::Relaxed);
        }
        let ([.., all], now) = (counts(tallies), start.elapsed().as_secs_f64());
        let is_terminal = std::io::stderr().is_terminal();
        if !is_terminal && now as u64 == then as u64 {
            continue;
        }
        let rate = |index: usize| (all[index] as f64 - before[index] as f64) / (now - then) / 1e6;
        let [recorded, read, lost, torn] = all.map(grouped);
        let recorded = format!("recorded {recorded} ({:.1} M/s)", rate(0));
        let line = format!("{now:.1} s  {recorded}  read {read} ({:.1} M/s)  lost {lost}  torn {torn}", rate(1));
        if is_terminal {
            // A narrow terminal must not wrap the line.
            eprint!("\r\x1b[?7l{line}\x1b[K\x1b[?7h");
        } else if !is_json {
            eprintln!("{line}");
        }
        (then, before) = (now, all);
    }
}

/// Prints the account. Returns true if it adds up and nothing is torn.
fn end(counts: [[u64; 4]; 3], is_json: bool) -> bool {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    let adds_up = |[recorded, read, lost, torn]: [u64; 4]| recorded == read + lost + torn;
    let [.., [recorded, read, lost, torn]] = counts;
    if is_json {
        println!(r#"{{"recorded":{recorded},"read":{read},"lost":{lost},"torn":{torn}}}"#);
    } else {
        for (kind, row) in ["typed events", "tracing spans", "all"].into_iter().zip(counts) {
            let ([recorded, read, lost, torn], sign) = (row.map(grouped), if adds_up(row) { '=' } else { '≠' });
            println!("{kind:13}{recorded:>12} recorded {sign}{read:>12} read +{lost:>11} lost +{torn:>2} torn");
        }
    }
    torn == 0 && counts.into_iter().all(adds_up)
}

/// Returns the number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    number.to_string().as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
