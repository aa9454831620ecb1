//! The times of threads where a program has few rights, where the system does not tell them, and after a kill.

use crate::fixtures::*;
use eventring::internal::{MeasuredTimes, ThreadTimeState};
use eventring::tracing::{PerfItem, Span, SpanReplay, TimeSpent};
use std::os::unix::process::CommandExt as _;

/// How the program that is looked at was started.
const PLACES: [&str; 8] =
    ["plainly", "as another user", "in namespaces", "refused", "refused later", "without rseq", "without proc", "off"];

/// What a program records: a span that computes for 20 ms, and one that sleeps for 30 ms.
fn program(part: &str) {
    if part == "refused later" {
        refuse_calls().unwrap();
    }
    let share = if part == "off" { 0.0 } else { 0.005 };
    let recorder = PerfRecorder::builder().config(place()).prefault(false).keep(true).thread_time(share);
    let recorder = recorder.build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        info_span!("computes").in_scope(|| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(20) {}
        });
        info_span!("sleeps").in_scope(|| std::thread::sleep(Duration::from_millis(30)));
    });
}

/// Has the kernel refuse what containers refuse: `perf_event_open`, `rseq` and `bpf`.
fn refuse_calls() -> std::io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let is = |call: libc::c_long, jump| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump, 0, call as u32);
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        is(libc::SYS_perf_event_open, 3),
        is(libc::SYS_rseq, 2),
        is(libc::SYS_bpf, 1),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the call takes numbers only.
    let is_set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
    // SAFETY: the filter lives as long as the call.
    match is_set && unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) } == 0 {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}

/// Makes the command that runs another one in namespaces of its own, after `first`.
fn in_namespaces(command: &Command, first: &str) -> Command {
    let mut outer = Command::new("unshare");
    outer.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]);
    outer.arg(format!("{first} && exec \"$0\" \"$@\"")).arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
}

fn replay(path: &Path) -> (Vec<Span>, SpanReplay, u64) {
    let mut reader = PerfReader::open(path).unwrap();
    let (mut replay, mut last) = (SpanReplay::new(), 0);
    while let Some(item) = reader.next() {
        if let PerfItem::Record(record) = item {
            last = last.max(record.epoch_nanos);
            replay.push(0, &record);
        }
    }
    (replay.clone().finish(last), replay, last)
}

#[test]
fn a_plain_user_in_a_container_gets_the_times_and_where_the_system_lacks_something_the_ring_says_what() {
    let test = plays!(|part| program(&part));
    for place in PLACES {
        // Another user needs a directory of its own.
        let directory = directory();
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(directory.path(), permissions).unwrap();
        let path = directory.path().join("ring");
        let mut command = child::play(test, place, &path);
        match place {
            "as another user" if users::can_be_played() => _ = command.uid(65534).gid(65534),
            "as another user" => continue,
            "in namespaces" => command = in_namespaces(&command, "mount -t tmpfs none /sys"),
            "without proc" => command = in_namespaces(&command, "mount -t tmpfs none /proc"),
            "without rseq" => _ = command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
            // SAFETY: the hook makes two system calls and allocates nothing.
            "refused" => _ = unsafe { command.pre_exec(refuse_calls) },
            _ => {}
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let has_namespaces = place.contains("namespaces") || place == "without proc";
        if has_namespaces && (said.contains("unshare:") || said.contains("mount:")) {
            missing::missing(format_args!("namespaces may not be made here: {said}"));
            continue;
        }
        assert!(output.status.success(), "{place}: {said}");
        let measured = MeasuredTimes::read(&Reader::open(&path).unwrap()).unwrap();
        let (spans, ..) = replay(&path);
        let times = |name: &str| {
            let span = spans.iter().find(|span| span.name() == name).unwrap();
            assert!(span.busy_nanos() >= 19_000_000, "{place}: {span:?}");
            span.times()
        };
        let expected = match place {
            "without rseq" | "refused" => ThreadTimeState::Unregistered,
            "without proc" => ThreadTimeState::NoQueue,
            "off" => ThreadTimeState::Off,
            _ => ThreadTimeState::Measured,
        };
        if expected.is_measured() && matches!(measured.state, ThreadTimeState::Kernel | ThreadTimeState::Library) {
            missing::skipped(measured.state.text());
            continue;
        }
        assert_eq!(measured.state, expected, "{place}");
        if !expected.is_measured() {
            assert_eq!((times("computes"), times("sleeps"), measured.asked), (None, None, 0), "{place}");
            continue;
        }
        let (computes, sleeps) = (times("computes").unwrap(), times("sleeps").unwrap());
        assert!(measured.asked > 0 && measured.cost_nanos > 0 && measured.merged == 0, "{place}: {measured:?}");
        let of_waits = |times: &TimeSpent| times.sleep_nanos + times.queue_nanos + times.unmeasured_nanos;
        assert!(of_waits(&sleeps) > 29_000_000 && sleeps.cpu_nanos < 5_000_000, "{place}: {sleeps:?}");
        assert!(computes.sleep_nanos < 1_000_000, "{place}: {computes:?}");
        let tells_queue = expected == ThreadTimeState::Measured;
        assert_eq!(sleeps.sleep_nanos > 0, tells_queue, "{place}: {sleeps:?}");
        assert_eq!(sleeps.unmeasured_nanos == 0, tells_queue, "{place}: {sleeps:?}");
    }
}

/// Works until it is killed. Each log record has what the kernel has counted for the thread since the span began.
fn open_span() {
    let recorder = PerfRecorder::builder().config(place()).shifts(17, 24).shards(1).thread_time(1.0).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let cpu_nanos = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let _open = info_span!("open").entered();
        let begin = (Instant::now(), cpu_nanos());
        let mut random = Random(u64::from(std::process::id()));
        say("begun");
        loop {
            match random.below(3) {
                0 => std::thread::sleep(Duration::from_micros(random.below(300))),
                1 => std::thread::yield_now(),
                _ => (0..random.below(50_000)).for_each(|number| _ = std::hint::black_box(number)),
            }
            let cpu = cpu_nanos() - begin.1;
            info!(cpu, wall = begin.0.elapsed().as_nanos() as u64, "counted");
        }
    });
}

#[test]
fn after_a_kill_the_times_of_an_open_span_are_there_up_to_its_last_event() {
    let test = plays!(open_span());
    let kills: u64 = std::env::var("EVENTRING_KILLS").ok().map_or(10, |kills| kills.parse().unwrap());
    let mut random = Random(77);
    for kill in 0..kills {
        let (_directory, [path]) = places(["ring"]);
        let mut talk = Talk::start(test, "open", &path);
        assert_eq!(talk.hear(), "begun");
        std::thread::sleep(Duration::from_micros(random.below(150_000)));
        child::kill(&mut talk.child);
        if !MeasuredTimes::read(&Reader::open(&path).unwrap()).unwrap().state.is_measured() {
            return missing::skipped("this system does not tell threads how long they ran");
        }
        let mut reader = PerfReader::open(&path).unwrap();
        let (mut replay, mut told) = (SpanReplay::new(), None);
        while let Some(item) = reader.next() {
            let PerfItem::Record(record) = item else { continue };
            replay.push(0, &record);
            if let PerfContent::Event { fields, .. } = &record.content {
                let number = |name: &str| fields.get(name).unwrap().to_string().parse::<u64>().unwrap();
                told = Some((number("cpu"), number("wall"), record.epoch_nanos, replay.clone()));
            }
        }
        let Some((cpu, wall, at, replay)) = told else { continue };
        let spans = replay.finish(at);
        let times = spans.iter().find(|span| span.name() == "open").unwrap().times().unwrap();
        // The program asked a moment before its event.
        assert!(
            times.cpu_nanos.abs_diff(cpu) <= 300_000 + cpu / 500,
            "kill {kill}: {times:?}, told {cpu} of {wall} ns"
        );
        assert!(times.is_exact && times.unmeasured_nanos == 0, "kill {kill}: {times:?}");
    }
}
