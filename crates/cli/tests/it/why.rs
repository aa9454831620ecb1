//! `eventring why`: spans with planted faults of six kinds, beside what the scheduler would say of them.

use crate::fixtures::*;
use eventring::schema::EventPayload;
use eventring_profile::schema::{OffState, Sched, Session, SwitchedIn, SwitchedOut, ThreadName, Woken};
use std::time::SystemTime;
use tracing::Span;

const FAULTS: [&str; 6] = ["lock", "processor", "child", "io", "computing", "executor"];
/// The shortest time of a fault.
const LONG: Duration = Duration::from_millis(40);
/// A worker that does nothing for so long between two spans may have been idle.
const PAUSE: Duration = Duration::from_micros(100);

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn name(text: &str) -> ThreadName {
    let mut bytes = [Utf8(0); 16];
    bytes.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = Utf8(byte));
    bytes
}

/// The scheduler, as this test plays it.
pub struct Scheduler {
    ring: Recorder,
    thread: u32,
}

impl Scheduler {
    /// Begins to play the scheduler of the calling thread.
    pub fn begin(place: &Path) -> Self {
        let ring = typed_in::<Sched>(place).shifts(15, 21).compact(true).build().unwrap();
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let scheduler = Self { ring, thread };
        let session = Session {
            process_id: std::process::id(),
            sample_hz: 0,
            clock_error_nanos: 1000,
            has_sched: true,
            has_others: true,
            has_syscalls: true,
            has_stacks: false,
        };
        scheduler.says(Sched::Session, now(), &session);
        scheduler.says(Sched::SwitchedIn, now(), &SwitchedIn { thread_id: thread, cpu: 0 });
        scheduler
    }

    fn says(&self, event: Sched, nanos: u64, payload: &impl EventPayload) {
        payload.with_bytes(|bytes| {
            let mut reserved = self.ring.reserve(event.code(), [0; 4], bytes.len() as u64).unwrap();
            reserved.set_epoch_nanos(nanos);
            reserved.append(bytes);
            reserved.commit();
        });
    }

    /// The thread waits for something in the system call futex.
    pub fn away_while(&self, waits: impl FnOnce()) {
        self.away_for(waits, OffState::Sleeping, 202, "swapper", Some("holder"));
    }

    /// The thread sleeps, and the scheduler says why.
    fn away(&self, long: Duration, state: OffState, syscall: i32, next: &str, waker: Option<&str>) {
        self.away_for(|| thread::sleep(long), state, syscall, next, waker);
    }

    fn away_for(&self, sleeps: impl FnOnce(), state: OffState, syscall: i32, next: &str, waker: Option<&str>) {
        let out = SwitchedOut {
            thread_id: self.thread,
            next_thread_id: 7,
            stack_id: 0,
            syscall,
            cpu: 0,
            state,
            next_name: name(next),
        };
        self.says(Sched::SwitchedOut, now(), &out);
        sleeps();
        let back = now();
        if let Some(waker) = waker {
            let woken = Woken {
                thread_id: self.thread,
                waker_thread_id: 8,
                waker_process_id: std::process::id(),
                cpu: 0,
                waker_name: name(waker),
            };
            self.says(Sched::Woken, back - 1000, &woken);
        }
        self.says(Sched::SwitchedIn, back, &SwitchedIn { thread_id: self.thread, cpu: 0 });
    }
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Returns the pause of the worker before the request.
fn request(shard: u64, fault: Option<&str>, long: Duration, scheduler: &Scheduler) -> Duration {
    let request: Span = info_span!("request", shard, fault);
    let (mut free, mut pause) = (Instant::now(), Duration::ZERO);
    if fault == Some("executor") {
        // Its worker is busy with something else.
        info_span!("housekeeping").in_scope(|| {
            spin(long);
            free = Instant::now();
        });
    }
    request.in_scope(|| {
        pause = free.elapsed();
        spin(Duration::from_micros(100));
        info_span!("query").in_scope(|| spin(if fault == Some("child") { long } else { Duration::from_micros(50) }));
        match fault {
            Some("lock") => scheduler.away(long, OffState::Sleeping, 202, "swapper", Some("holder")),
            Some("processor") => scheduler.away(long, OffState::Runnable, -1, "hog", None),
            Some("io") => scheduler.away(long, OffState::Uninterruptible, 74, "swapper", None),
            Some("computing") => spin(long),
            _ => {}
        }
    });
    pause
}

#[test]
fn each_planted_fault_has_its_kind_the_shares_add_up_and_what_slow_spans_have_in_common_is_found() {
    let (dir, [ring, sched, capture]) = places(["shop", "shop-sched", "shop.evc"]);
    let recorder = spans_in(&ring).shifts(16, 22).build().unwrap();
    let scheduler = Scheduler::begin(&sched);
    let pauses = in_recorder(recorder.clone(), || {
        let mut usual: Vec<Duration> = (0..120)
            .map(|number| {
                let begin = Instant::now();
                request(number % 5, None, LONG, &scheduler);
                begin.elapsed()
            })
            .collect();
        usual.sort_unstable();
        // On a busy machine all requests take longer.
        let long = LONG.max(6 * usual[usual.len() * 95 / 100]);
        FAULTS.map(|fault| request(7, Some(fault), long, &scheduler))
    });
    run!("capture", &ring, &sched, "--now", "-o", &capture).ends(0);

    // On a busy machine further spans may be as slow, so each is asked for by its id.
    let lines = exported(&capture);
    let ask = |file: &Path, fault: &str| {
        let is_it = |line: &&Value| line["name"] == "request" && line["fields"]["fault"] == fault;
        let id = lines.iter().find(is_it).unwrap_or_else(|| panic!("{fault}"))["id"].to_string();
        let answer = run!("why", file, "--id", id.trim_matches('"'), "--json").json();
        assert_eq!(answer["spans"].list().len(), 1);
        answer
    };
    let answers = FAULTS.map(|fault| ask(&capture, fault));
    let spans = answers.each_ref().map(|answer| &answer["spans"][0]);
    assert_eq!(spans.map(|span| span["cause"].as_str().unwrap_or("none")), FAULTS, "{answers:#?}");
    for span in spans {
        let shares: f64 = span["shares"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
        assert!((shares - 100.0).abs() < 1.0, "{span:#}");
    }
    let evidence = |cause: &str| {
        let span = spans.iter().find(|span| span["cause"] == cause).unwrap();
        span["evidence"].text().to_owned()
    };
    for (cause, says) in [
        ("lock", "in futex, until holder woke it"),
        ("processor", "hog ran instead"),
        ("child", "query took "),
        ("io", "in fsync"),
        ("computing", "it computed for "),
        ("executor", "its worker was in housekeeping"),
    ] {
        assert!(evidence(cause).contains(says), "{cause}: {}", evidence(cause));
    }
    // What is called the cause is the largest part.
    for (span, part) in spans.iter().zip(["blocked", "runnable", "children", "blocked", "computing", "executor"]) {
        let shares = span["shares"].as_object().unwrap();
        let largest = shares.iter().max_by(|a, b| a.1.as_f64().unwrap().total_cmp(&b.1.as_f64().unwrap())).unwrap().0;
        assert_eq!(largest, part, "{span:#}");
        assert!(span["duration_ns"].number() >= LONG.as_nanos() as u64, "{span:#}");
    }
    let answer = run!("why", &capture, "--span", "request", "--slowest", "6", "--json").json();
    assert_eq!(answer["spans"].list().len(), 6);
    let difference = answer["difference"].list();
    assert_eq!(difference[0]["what"], "field.shard=7", "{difference:#?}");
    // A busy machine makes further spans slow, of other shards.
    assert!(difference[0]["slow"].as_f64() > Some(30.0) && difference[0]["normal"] == 0.0, "{difference:#?}");
    assert_eq!(answer["missing"], json!([]));
    // Without a name, the same spans are the worst.
    run!("why", &capture).shows(" of the slow ones, 0 % of the others");

    // Without the scheduler, the threads say themselves how long they slept, and what is not known is named.
    let alone = place(&dir, "alone.evc");
    run!("capture", &ring, "--now", "-o", &alone).ends(0);
    let alone = FAULTS.map(|fault| ask(&alone, fault));
    let causes = alone.each_ref().map(|answer| answer["spans"][0]["cause"].as_str().unwrap_or("none"));
    // If the kernel stopped the worker between the two spans, they alone do not show that it was busy.
    let [.., pause] = pauses;
    let executor = if pause >= PAUSE && causes[5] == "waiting" { "waiting" } else { "executor" };
    // On a busy machine, others have had the processor for most of the time in which the thread wanted to compute.
    let computing = if causes[4] == "processor" { "processor" } else { "computing" };
    assert_eq!(causes, ["blocked", "blocked", "child", "blocked", computing, executor], "{alone:#?}");
    let sources = |answers: &[Value; 6]| answers.each_ref().map(|answer| answer["spans"][0]["source"].clone());
    assert_eq!(
        [sources(&answers), sources(&alone)],
        ["kernel", "program"].map(|source| [(); 6].map(|()| json!(source)))
    );
    assert!(alone[0]["missing"][0].text().starts_with("what threads waited for"), "{alone:#?}");
    run!("why", &capture, "--span", "reqest").fails(2, "no span reqest has ended");
}
