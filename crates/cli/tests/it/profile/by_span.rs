//! Samples and times of threads lie in the spans that the threads were in.

use super::profiling;
use super::roles::{hot_function, own, pin, spawn};
use crate::consumers;
use crate::fixtures::*;
use std::hint::black_box;

/// Plays a part, with a ring, and ends the process.
fn play(part: &str) -> ! {
    let recording = eventring::tracing::try_init(format!("{}:17:24", child::place().display())).unwrap();
    match part {
        "hot" => hot(),
        "pinned" => pinned(),
        _ => unreachable!("{part}"),
    }
    drop(recording);
    std::process::exit(0);
}

/// Computes for a number of rounds, of some fifty microseconds each, however busy the machine is.
#[inline(never)]
#[unsafe(no_mangle)]
fn hot_in_thread(rounds: u32) -> u64 {
    let mut word = 1_u64;
    for _ in 0..rounds {
        (0..5_000).for_each(|n| word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n)));
    }
    word
}

#[inline(never)]
#[unsafe(no_mangle)]
fn hot_in_task(rounds: u32) -> u64 {
    let mut word = 2_u64;
    for _ in 0..rounds {
        (0..5_000).for_each(|n| word = black_box(word.wrapping_mul(6_364_136_223_846_793_007).wrapping_sub(n)));
    }
    word
}

/// A thread computes in one span and sleeps in another. A task computes in its span, on one thread after the other.
fn hot() {
    let thread = spawn("computes", || {
        for _ in 0..20 {
            info_span!("computing").in_scope(|| black_box(hot_in_thread(200)));
            info_span!("sleeping").in_scope(|| thread::sleep(Duration::from_millis(2)));
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
    let task = async {
        let mut threads = BTreeSet::new();
        for _ in 0..100 {
            black_box(hot_in_task(50));
            threads.insert(super::roles::thread_id());
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        threads
    };
    let others = async {
        for _ in 0..300 {
            black_box(hot_function(Duration::from_millis(1)));
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    };
    let threads = runtime.block_on(async {
        let task = tokio::spawn(task.instrument(info_span!("task")));
        let other = tokio::spawn(others.instrument(info_span!("other")));
        let threads = task.await.unwrap();
        other.await.unwrap();
        threads
    });
    say(format_args!("threads {}", threads.len()));
    thread.join().unwrap();
}

/// A thread is in one span all the time: it computes, sleeps, and computes, while another one wants the same processor.
fn pinned() {
    pin();
    let rival = spawn("rival", || _ = black_box(hot_function(Duration::from_millis(900))));
    let worker = spawn("worker", || {
        let span = info_span!("work").entered();
        let (before, begin) = (own("schedstat"), Instant::now());
        black_box(hot_function(Duration::from_millis(400)));
        thread::sleep(Duration::from_millis(150));
        black_box(hot_function(Duration::from_millis(250)));
        let (after, wall) = (own("schedstat"), begin.elapsed().as_nanos());
        drop(span);
        say(format_args!("schedstat {} {} {wall}", before.trim(), after.trim()));
    });
    worker.join().unwrap();
    rival.join().unwrap();
}

/// Profiles a part into a file. Returns what the part has said; `None`, and says so, if the kernel does not tell
/// everything here.
fn profiled(test: &str, part: &str, file: &Path, options: &[&str]) -> Option<String> {
    let ended = finish(profiling(test, part, file, options)).ends(0);
    let summary = ended.said();
    if summary["missing"] != json!([]) {
        eventring_stress::missing(format_args!("root, tracefs and perf_event_open: {}", summary["missing"]));
        return None;
    }
    Some(ended.err)
}

/// Returns the lines of folded stacks with this weight.
fn folded(file: &Path, weight: &str) -> Vec<(String, u64)> {
    let out = run!("export", file, "--format", "folded", "--weight", weight).ends(0);
    out.out
        .lines()
        .map(|line| {
            let (stack, number) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), number.parse().unwrap())
        })
        .collect()
}

#[test]
fn samples_of_a_function_lie_in_its_span_also_if_a_task_moves_between_threads() {
    let test = plays!(|part| play(&part));
    let (_directory, [file]) = places(["p.evc"]);
    // Without --resolve: names come from the file of this program, which is still there.
    let Some(said) = profiled(test, "hot", &file, &["--sched", "--stacks", "--syscalls"]) else { return };
    let threads = said.lines().find_map(|line| line.trim().strip_prefix("talk: threads ")).unwrap();
    assert!(threads.trim().parse::<u32>().unwrap() > 1, "the task has stayed on one thread");
    let lines = folded(&file, "cpu");
    for (function, span) in [("hot_in_thread", "computing"), ("hot_in_task", "task")] {
        let of_function = |line: &&(String, u64)| line.0.split(';').any(|frame| frame.contains(function));
        let all: u64 = lines.iter().filter(of_function).map(|(_, nanos)| nanos).sum();
        let inside = lines.iter().filter(of_function).filter(|(stack, _)| stack.split(';').nth(1) == Some(span));
        let inside: u64 = inside.map(|(_, nanos)| nanos).sum();
        assert!(all > 30_000_000, "{function}: {all} ns in {lines:?}");
        assert!(inside * 100 >= all * 95, "{function}: {inside} ns of {all} ns are in {span}");
    }
    // The sleep was blocked in its span, and its stack is known.
    let slept = folded(&file, "blocked");
    let slept: Vec<_> = slept.iter().filter(|(stack, _)| stack.split(';').nth(1) == Some("sleeping")).collect();
    let nanos: u64 = slept.iter().map(|(_, nanos)| nanos).sum();
    // There were twenty sleeps of two milliseconds.
    assert!(nanos >= 35_000_000, "{slept:?}");
    assert!(slept.iter().any(|(stack, _)| stack.contains("nanosleep")), "{slept:?}");
    page_and_trace(&file);
}

/// The page has both flame graphs, and trace_processor finds the samples, the states and the arrows.
fn page_and_trace(file: &Path) {
    let page: PathBuf = file.with_extension("html");
    run!("report", file, "-o", &page, "--flame", "task").ends(0);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("On the processor in task, by samples") && html.contains("hot_in_task"));
    assert!(html.contains("Blocked in ") || html.contains("Runnable in "), "there is no graph off the processor");
    run!("report", file, "-o", &page, "--force", "--flame", "no such span").ends(2);

    let [trace, asked] = ["trace", "asked"].map(|end| file.with_extension(end));
    run!("export", file, "-o", &trace).ends(0);
    let queries = json!({
        "samples": "select count(*) as n from perf_sample where callsite_id is not null",
        "functions": "select distinct name from stack_profile_frame where name in ('hot_in_task', 'hot_in_thread') order by name",
        "threads": "select distinct t.name from perf_sample s join thread t using (utid) where t.name = 'computes'",
        "states": "select s.name, count(*) as n, sum(s.dur) as ns from slice s where s.category = 'scheduler' and s.dur > 0 \
                   group by s.name",
        "sleeps": "select count(*) as n from slice where name = 'blocked: clock_nanosleep' and dur >= 2000000",
        "arrows": "select count(*) as n from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
                   where a.name like 'wakes %' and b.name = 'runnable'",
        "errors": "select name, value from stats where severity in ('error', 'data_loss') and value != 0",
    });
    fs::write(&asked, queries.to_string()).unwrap();
    let Some(answers) = consumers::read_files("trace_processor.py", &[&trace, &asked]) else { return };
    let count = |name: &str| answers[name][0]["n"].as_u64().unwrap_or_else(|| panic!("{name}: {answers}"));
    let samples = run!("watch", file, "--type", "SAMPLE", "--json").json_lines();
    let samples = samples.iter().filter(|event| event["payload"]["kind"] == "ON_PROCESSOR").count() as u64;
    assert!(count("samples") > 100 && count("samples") == samples, "{samples}: {answers}");
    assert_eq!(answers["functions"], json!([{ "name": "hot_in_task" }, { "name": "hot_in_thread" }]));
    assert_eq!(answers["threads"], json!([{ "name": "computes" }]));
    let states: Vec<&str> = answers["states"].list().iter().map(|row| row["name"].text()).collect();
    assert!(states.contains(&"running") && states.contains(&"runnable"), "{states:?}");
    assert!(count("sleeps") >= 15 && count("arrows") > 0, "{answers}");
    assert_eq!(answers["errors"], json!([]));
}

#[test]
fn times_of_a_span_are_those_of_the_scheduler() {
    let test = plays!(|part| play(&part));
    let directory = directory();
    let mut found = Vec::new();
    // A machine that is busy with other things delays what is compared.
    for round in 0..3 {
        let file = directory.path().join(format!("{round}.evc"));
        let Some(said) = profiled(test, "pinned", &file, &["--sched"]) else { return };
        let line = said.lines().find_map(|line| line.trim().strip_prefix("talk: schedstat ")).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [ran_before, waited_before, _, ran_after, waited_after, _, wall] = numbers[..] else { panic!("{line}") };
        let (ran, waited) = (ran_after - ran_before, waited_after - waited_before);
        let expected = [ran, waited, wall - ran - waited];
        let summary = run!("summary", &file, "--json").json();
        crate::ask::schemas::check(&[("summary", summary.clone())]);
        let span = summary["spans"].list().iter().find(|span| span["name"] == "work").unwrap();
        let times = ["cpu_ns", "runnable_ns", "blocked_ns"].map(|name| span[name].number());
        let [cpu, runnable, blocked] = times;
        let all = cpu + runnable + blocked + span["unknown_ns"].number();
        assert_eq!(Some(all), span["busy_ns"].as_u64(), "{span}");
        assert_eq!((&span["self_cpu_ns"], &span["self_blocked_ns"]), (&span["cpu_ns"], &span["blocked_ns"]));
        assert!(waited > 50_000_000, "nobody else wanted the processor");
        if times.iter().zip(expected).all(|(a, b)| a.abs_diff(b) * 20 <= *a.max(&b)) {
            run!("summary", &file).shows("self cpu");
            return;
        }
        found.push((times, expected));
    }
    panic!("cpu, runnable and blocked, and those of the scheduler: {found:?}");
}
