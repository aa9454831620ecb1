//! The times of threads: what the recorder measures is what the kernel counts.

use crate::fixtures::*;
use eventring::tracing::{Span, SpanReplay, TimeSpent};
use std::thread;

/// What the kernel has counted for the calling thread.
#[derive(Clone, Copy, Debug, Default)]
struct Kernel {
    cpu_nanos: u64,
    queue_nanos: u64,
    switches: u64,
}

fn kernel() -> Kernel {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    Kernel { cpu_nanos: cpu_nanos(), queue_nanos: numbers[1], switches: switches() }
}

/// How long the calling thread has run.
fn cpu_nanos() -> u64 {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
}

/// How often the calling thread has left its processor.
fn switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for writes.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) }, 0);
    // SAFETY: the call has written it.
    let usage = unsafe { usage.assume_init() };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// Returns true if this system tells threads what the tests need. Otherwise says that the test is skipped.
fn is_measured() -> bool {
    let recorder = small().thread_time(1.0).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || info!("begun"));
    let is_time = |record: &PerfRecord| matches!(record.content, PerfContent::ThreadTime { flags: 0, .. });
    let is_measured = records(&recorder).iter().any(is_time);
    if !is_measured {
        missing::skipped("this system does not tell threads how long they ran (rseq, schedstat)");
    }
    is_measured
}

fn spin(nanos: u64) {
    let until = Instant::now() + Duration::from_nanos(nanos);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Threads that compute all the time, so that others wait for a processor.
struct Competitors(Arc<AtomicBool>, Vec<thread::JoinHandle<()>>);

impl Competitors {
    fn new(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let busy = || {
            let stop = stop.clone();
            thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        Self(stop.clone(), (0..count).map(|_| busy()).collect())
    }
}

impl Drop for Competitors {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// In longer rounds, what is asked between the spans hardly matters.
const LONG_NANOS: u64 = 1_000_000;

/// Does one kind of work.
fn work(kind: &str, nanos: u64) {
    match kind {
        "spin" => spin(nanos),
        "sleep" => thread::sleep(Duration::from_nanos(2 * nanos)),
        "yield" => {
            spin(nanos / 2);
            thread::yield_now();
            spin(nanos / 2);
        }
        // Freed at once, so each round faults anew.
        "fault" => drop(std::hint::black_box(vec![1_u8; 300_000])),
        _ => {}
    }
}

const KINDS: [&str; 5] = ["spin", "sleep", "yield", "fault", "nothing"];

/// A round of all kinds, each in a span.
fn round(nanos: u64, mut around: impl FnMut(usize, &dyn Fn())) {
    macro_rules! kind {
        ($index:literal, $name:literal) => {
            around($index, &|| info_span!($name).in_scope(|| work($name, nanos)));
        };
    }
    let _round = info_span!("round", is_long = nanos > LONG_NANOS).entered();
    kind!(0, "spin");
    kind!(1, "sleep");
    kind!(2, "yield");
    kind!(3, "fault");
    kind!(4, "nothing");
}

/// Returns the spans of a recorder.
fn spans(recorder: &PerfRecorder) -> Vec<Span> {
    let mut replay = SpanReplay::new();
    let mut last = 0;
    for record in records(recorder) {
        last = last.max(record.epoch_nanos);
        replay.push(0, &record);
    }
    replay.finish(last)
}

fn rounds(default: u64) -> u64 {
    std::env::var("EVENTRING_TIMED_ROUNDS").ok().map_or(default, |rounds| rounds.parse().unwrap())
}

/// Asserts that two sums are equal but for a thousandth, and for what the test itself does in between.
#[track_caller]
fn assert_close(measured: u64, kernel: u64, between_nanos: u64, what: &str) {
    let allowed = kernel / 1000 + between_nanos;
    assert!(measured.abs_diff(kernel) <= allowed, "{what}: {measured} ns, by the kernel {kernel} ns");
}

#[test]
fn the_times_of_spans_are_those_of_the_kernel_beside_competitors() {
    alone!();
    if !is_measured() {
        return;
    }
    const THREADS: u64 = 4;
    let rounds = rounds(2_000) / THREADS;
    let recorder = PerfRecorder::builder().anonymous().memory((64 << 20) + rounds * THREADS * 8_000).thread_time(1.0);
    let recorder = recorder.shards(4).build().unwrap();
    let competitors = Competitors::new(6);
    let run = move |recorder: PerfRecorder| {
        let mut by_kind = [0; KINDS.len()];
        let mut whole = (Kernel::default(), Kernel::default());
        tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
            let _work = info_span!("work", thread = tracing::field::Empty).entered();
            whole.0 = kernel();
            for index in 0..rounds {
                // Most rounds are short.
                let nanos = if index % 50 == 0 { 10_000_000 } else { 20_000 };
                round(nanos, |kind, span| {
                    if nanos > LONG_NANOS {
                        let before = cpu_nanos();
                        span();
                        by_kind[kind] += cpu_nanos() - before;
                    } else {
                        span();
                    }
                });
            }
            whole.1 = kernel();
        });
        let cpu_nanos = whole.1.cpu_nanos - whole.0.cpu_nanos;
        let queue_nanos = whole.1.queue_nanos - whole.0.queue_nanos;
        (Kernel { cpu_nanos, queue_nanos, switches: whole.1.switches - whole.0.switches }, by_kind)
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            thread::spawn({
                let recorder = recorder.clone();
                move || run(recorder)
            })
        })
        .collect();
    let counted: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    drop(competitors);
    let spans = spans(&recorder);
    let named = |name: &'static str| spans.iter().filter(move |span| span.name() == name);
    // The whole, on all threads.
    let sum = |of: fn(&Kernel) -> u64| counted.iter().map(|(whole, _)| of(whole)).sum::<u64>();
    let times = |name: &'static str| named(name).filter_map(Span::times).reduce(TimeSpent::plus).unwrap();
    let whole = times("work");
    assert_close(whole.cpu_nanos, sum(|whole| whole.cpu_nanos), 20_000, "processor time");
    assert_close(whole.queue_nanos, sum(|whole| whole.queue_nanos), 20_000, "run-queue delay");
    assert_eq!(whole.unmeasured_nanos, 0);
    assert!(whole.is_exact);
    assert!(sum(|whole| whole.switches) > rounds * THREADS);
    // Each round.
    let mut all = 0;
    for span in named("round") {
        let times = span.times().unwrap();
        assert_eq!(times.total_nanos(), span.busy_nanos(), "{span:?}");
        assert_eq!(times.unmeasured_nanos, 0);
        all += 1;
    }
    assert_eq!(all, rounds * THREADS);
    // By name, in long rounds.
    // What is asked between the spans is in the kernel's sums alone. The empty span has nothing else, so it tells how
    // much that is.
    let by_kernel = |kind: usize| counted.iter().map(|(_, kinds)| kinds[kind]).sum::<u64>();
    let is_long = |span: &&Span| span.fields.get("is_long").is_some_and(|is_long| is_long.to_string() == "true");
    let long: BTreeSet<_> = named("round").filter(is_long).map(|span| span.id).collect();
    for (index, kind) in KINDS.iter().enumerate().filter(|(_, kind)| ["spin", "yield"].contains(kind)) {
        let asked = by_kernel(KINDS.len() - 1);
        let of_long = named(kind).filter(|span| span.parent.is_some_and(|parent| long.contains(&parent)));
        let cpu_nanos = of_long.filter_map(Span::times).reduce(TimeSpent::plus).unwrap().cpu_nanos;
        assert_close(cpu_nanos, by_kernel(index) - asked, 8_000 * long.len() as u64, kind);
    }
    let sleeping = times("sleep");
    assert!(sleeping.sleep_nanos > 40_000 * rounds * THREADS);
    assert!(times("spin").sleep_nanos < sleeping.sleep_nanos / 50);
}

#[test]
fn no_switch_between_two_events_is_missed() {
    alone!();
    if !is_measured() {
        return;
    }
    let mut left = rounds(20_000);
    let mut switches_seen = 0;
    while left > 0 {
        let rounds = left.min(50_000);
        left -= rounds;
        let recorder = PerfRecorder::builder().anonymous().memory((32 << 20) + rounds * 800).shards(1).thread_time(1.0);
        let recorder = recorder.build().unwrap();
        let certain = tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
            let _competitors = Competitors::new(2);
            let mut random = Random(7);
            (0..rounds)
                .map(|_| {
                    info!("before");
                    let before = switches();
                    match random.below(10) {
                        0 => thread::yield_now(),
                        1 => spin(5_000),
                        _ => thread::sleep(Duration::from_nanos(1)),
                    }
                    let after = switches();
                    info!("after");
                    after - before
                })
                .collect::<Vec<u64>>()
        });
        let records = records(&recorder);
        let is_log = |record: &PerfRecord| matches!(record.content, PerfContent::Event { .. });
        let first = records.iter().position(is_log).unwrap();
        let mut pairs = 0;
        let mut rest = &records[first..];
        for certain in certain {
            // The event before, what is between, the event after.
            let after = 1 + rest[1..].iter().position(is_log).unwrap();
            let is_told = rest[1..after].iter().any(|record| matches!(record.content, PerfContent::ThreadTime { .. }));
            assert!(is_told || certain == 0, "{certain} switches of round {pairs} were missed");
            switches_seen += certain;
            pairs += 1;
            let next = after + 1;
            rest = rest[next..].iter().position(is_log).map_or(&[], |at| &rest[next + at..]);
        }
        assert_eq!(pairs, rounds);
    }
    println!("{switches_seen} switches");
    assert!(switches_seen > 0);
}
