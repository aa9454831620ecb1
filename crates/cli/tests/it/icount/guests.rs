//! Programs under QEMU that these tests play themselves: tasks that move between the threads of tokio's runtime, and
//! forks. Without QEMU these tests say that they skip.

use crate::fixtures::*;
use crate::qemu;
use eventring_stress::forked;
use std::hint::black_box;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// The turns of the loop in each poll of a task. They differ, so a poll that is left out or counted twice is noticed.
const TURNS: [u64; 4] = [10_000, 23_000, 31_000, 47_000];
/// A limit of what the four polls of a task take beside the loops, without optimization.
const POLLS_MAX: u64 = 40_000;

/// Works for a number of instructions that grows by the same for each turn.
#[inline(never)]
fn work(turns: u64) -> u64 {
    (0..turns).fold(1, |state: u64, _| black_box(state ^ state << 13))
}

/// A task that keeps a worker of the runtime busy.
struct Blocker {
    release: Sender<()>,
    thread: ThreadId,
}

/// Starts a blocker on the first worker that is free.
fn block(blocked: Sender<Blocker>) {
    let (release, released) = channel();
    tokio::spawn(async move {
        blocked.send(Blocker { release, thread: thread::current().id() }).unwrap();
        released.recv().unwrap();
    });
}

/// Runs a task in a span. Each of its polls works, `factor` times the turns of [`TURNS`], and each poll is on another
/// thread than the poll before: all other workers of the runtime are blocked.
fn run_moving(runtime: &Runtime, span: tracing::Span, factor: u64) {
    let (say, hear): (_, Receiver<Blocker>) = channel();
    let next = Arc::new(Notify::new());
    let _entered = runtime.enter();
    (0..2).for_each(|_| block(say.clone()));
    let [mut busy, free] = [hear.recv().unwrap(), hear.recv().unwrap()];
    let woken = Arc::clone(&next);
    let steps = async move {
        for (step, turns) in TURNS.into_iter().enumerate() {
            if step > 0 {
                woken.notified().await;
            }
            black_box(work(factor * turns));
        }
    };
    let task = tokio::spawn(async move {
        let mut steps = pin!(steps.instrument(span));
        std::future::poll_fn(|context| {
            let polled = steps.as_mut().poll(context);
            if polled.is_pending() {
                // The thread of this poll goes on with a blocker, because no other thread is free to take it.
                block(say.clone());
            }
            polled
        })
        .await;
    });
    let mut last = free.thread;
    free.release.send(()).unwrap();
    for _ in 1..TURNS.len() {
        let polled = hear.recv().unwrap();
        assert!(polled.thread == last && busy.thread != last, "the poll was on another thread than the free one");
        last = busy.thread;
        next.notify_one();
        busy.release.send(()).unwrap();
        busy = polled;
    }
    runtime.block_on(task).unwrap();
    busy.release.send(()).unwrap();
}

/// The program whose instructions are counted.
fn record() {
    let _recording = eventring::tracing::init("moving");
    let alone = |turns| info_span!("alone", turns).in_scope(|| black_box(work(turns)));
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    // The first use of everything takes more instructions than later ones.
    alone(1);
    run_moving(&runtime, info_span!("first"), 1);
    alone(TURNS[0]);
    alone(2 * TURNS[0]);
    run_moving(&runtime, info_span!("moving", factor = 1), 1);
    run_moving(&runtime, info_span!("moving", factor = 3), 3);
}

/// Counts the instructions of the guest that `test` plays. Returns the lines of its spans, or `None` without QEMU.
fn spans_of_guest(test: &str, file: &Path) -> Option<Vec<Value>> {
    let counted = icount_of_guest(test, file)?;
    let json = counted.json();
    assert_eq!((&json["lost"], &json["not_counted"]), (&0.into(), &0.into()), "{counted:?}");
    // One count that is not exact makes the whole not exact.
    let are_exact = json["spans"].list().iter().all(|span| span["exact"] == true);
    assert_eq!(json["exact"], are_exact, "{counted:?}");
    let lines = exported(file);
    Some(lines.into_iter().filter(|line| line["type"] == "span").collect())
}

#[test]
fn a_forked_child_records_nothing_in_the_rings_of_its_parent_under_qemu() {
    let test = plays!({
        let _recording = eventring::tracing::init("forks");
        let spans = |who| (0..10).for_each(|_| info_span!("work", who).in_scope(|| _ = black_box(work(1000))));
        spans("parent");
        let code = forked::in_child(|| {
            spans("child");
            7
        });
        assert_eq!(code, 7);
        spans("parent");
    });
    let (_directory, [file]) = places(["forks.evc"]);
    let Some(spans) = spans_of_guest(test, &file) else { return };
    assert_eq!(spans.len(), 20, "{spans:?}");
    assert!(spans.iter().all(|span| span["fields"]["who"] == "parent" && span["slices"].list().len() == 1));
}

/// Runs `eventring icount` with the guest that `test` plays.
fn icount_of_guest(test: &str, file: &Path) -> Option<Run> {
    let plugin = qemu::plugin()?;
    let guest = play(test, "guest", file);
    let mut command: Command = program!("icount", "--json", "-o", file, "--");
    command.arg(guest.get_program()).args(guest.get_args());
    command.envs(guest.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("EVENTRING_QEMU_PLUGIN", plugin).env_remove("EVENTRING_FILTER");
    Some(finish(command))
}

#[test]
fn counts_without_the_events_that_were_lost_are_no_result() {
    let test = plays!({
        // Nobody reads the ring until the first events are gone.
        let reader = rustix::process::getppid().unwrap();
        kill_process(reader, Signal::STOP).unwrap();
        let _recording = eventring::tracing::init("lossy:15:21");
        (0..20_000).for_each(|_| info_span!("work").in_scope(|| ()));
        kill_process(reader, Signal::CONT).unwrap();
    });
    let directory = directory();
    let Some(counted) = icount_of_guest(test, &place(&directory, "lossy.evc")) else { return };
    let json: Value = serde_json::from_str(&counted.out).unwrap_or_else(|_| panic!("{counted:?}"));
    assert!(json["exact"] == false && json["lost"].as_u64() > Some(0), "{json}");
    assert!(counted.code == Some(16) && counted.err.contains("EVENTRING_PERF=name:256MiB"), "{counted:?}");
}

#[test]
fn the_exit_code_of_the_program_is_that_of_icount_which_says_so() {
    let test = plays!({
        let _recording = eventring::tracing::init("fails");
        info_span!("work").in_scope(|| _ = black_box(work(1000)));
        std::process::exit(7);
    });
    let directory = directory();
    let Some(counted) = icount_of_guest(test, &place(&directory, "fails.evc")) else { return };
    assert!(counted.code == Some(7) && counted.out.contains("\"work\""), "{counted:?}");
    assert!(counted.err.contains("the program has ended with exit code 7"), "{counted:?}");
}

#[test]
fn the_span_of_a_task_counts_its_polls_on_all_threads() {
    let test = plays!(record());
    let directory = directory();
    let counted = |name: &str| spans_of_guest(test, &place(&directory, name));
    let Some(spans) = counted("first.evc") else { return };
    let of = |name: &str, field: &str, value: u64| {
        let is_it = |span: &&Value| span["name"] == name && span["fields"][field] == value;
        spans.iter().find(is_it).unwrap_or_else(|| panic!("{name} {field}={value}: {spans:?}"))
    };
    let instructions = |span: &Value| span["instructions"].number();
    let [once, thrice] = [1, 3].map(|factor| of("moving", "factor", factor));
    for moving in [once, thrice] {
        let slices = moving["slices"].list();
        let threads: Vec<u64> = slices.iter().map(|slice| slice["thread"]["id"].number()).collect();
        // A last, empty slice is that in which the future is dropped.
        assert!(threads.len() >= TURNS.len(), "{moving}");
        assert!(threads[..TURNS.len()].windows(2).all(|pair| pair[0] != pair[1]), "{moving}");
        assert_eq!(BTreeSet::from_iter(&threads).len(), 2, "{moving}");
    }

    // The loop's instructions are known from spans of one thread.
    let alone = [1, 2].map(|factor| instructions(of("alone", "turns", factor * TURNS[0])));
    let each_ten_thousand = alone[1] - alone[0];
    let turns: u64 = TURNS.iter().sum();
    let known = each_ten_thousand * turns / TURNS[0];
    assert!(known > 10 * POLLS_MAX, "{known}");
    assert_eq!(instructions(thrice) - instructions(once), 2 * known);
    let of_polls = instructions(once).checked_sub(known).unwrap();
    assert!(of_polls < POLLS_MAX, "{of_polls} instructions are no work");
    assert_eq!(once["instructions"], once["self_instructions"]);

    let all = |spans: &[Value]| {
        let mut all: Vec<(String, Value)> = spans
            .iter()
            .map(|span| (format!("{} {}", span["name"], span["fields"]), span["instructions"].clone()))
            .collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    };
    // The first use of everything may differ: threads race to it.
    let without_first =
        |spans: &[Value]| all(spans).into_iter().filter(|(name, _)| !name.contains("first")).collect::<Vec<_>>();
    assert_eq!(without_first(&spans), without_first(&counted("second.evc").unwrap()));
}

#[test]
fn scopes_count_what_spans_count_and_the_span_around_them_has_the_rest() {
    const SIZES: [u64; 3] = [10_000, 20_000, 40_000];
    let test = plays!({
        let _recording = eventring::tracing::init("scoped");
        let scoped = |turns| {
            let _scope = eventring::scope!("scope", turns);
            black_box(work(turns));
        };
        let spanned = |turns| info_span!("span", turns).in_scope(|| _ = black_box(work(turns)));
        // The first use of everything takes more instructions than later ones.
        scoped(1);
        spanned(1);
        for turns in SIZES {
            scoped(turns);
            spanned(turns);
        }
        let around = || {
            let _around = info_span!("around").entered();
            black_box(work(SIZES[0]));
            scoped(3);
            black_box(work(SIZES[1]));
        };
        around();
        around();
    });
    let directory = directory();
    let counted = |name: &str| spans_of_guest(test, &place(&directory, name));
    let Some(spans) = counted("first.evc") else { return };
    let number = |span: &Value, field: &str| span[field].as_u64().unwrap_or_else(|| panic!("{field}: {span}"));
    let of = |spans: &[Value], name: &str, turns: u64| {
        let found = spans.iter().find(|span| span["name"] == name && span["fields"]["turns"] == turns);
        number(found.unwrap_or_else(|| panic!("{name} {turns}: {spans:?}")), "instructions")
    };
    // Each turn takes the same number, in a scope as in a span.
    let each = |name: &str, more: usize| {
        let all = of(&spans, name, SIZES[more]) - of(&spans, name, SIZES[more - 1]);
        all / (SIZES[more] - SIZES[more - 1])
    };
    assert_eq!([each("scope", 1), each("scope", 2)], [each("span", 1); 2]);
    assert!(of(&spans, "scope", SIZES[0]) > SIZES[0] && spans.iter().all(|span| span["instructions"].is_u64()));
    let around: Vec<&Value> = spans.iter().filter(|span| span["name"] == "around").collect();
    let [_, around] = around[..] else { panic!("{spans:?}") };
    let inside = of(&spans, "scope", 3);
    let (all, own) = (number(around, "instructions"), number(around, "self_instructions"));
    assert!(all > own && all - own >= inside && own > each("span", 1) * (SIZES[0] + SIZES[1]), "{around}");
    // A second run takes exactly as many.
    let again = counted("second.evc").unwrap();
    for turns in SIZES {
        assert_eq!(of(&again, "scope", turns), of(&spans, "scope", turns));
    }
}
