//! What the profiled process does.

use crate::fixtures::*;
use eventring::recorder::Clock;
use eventring_stress::random::Random;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use std::hint::black_box;
use std::sync::{Condvar, Mutex};
use std::thread::{JoinHandle, sleep};

/// The number of times that the two threads hand over.
pub const HANDOVERS: u32 = 100;

/// Plays a part, with a ring, and ends the process.
pub fn play(part: &str) -> ! {
    let recording = eventring::tracing::try_init(format!("{}:15:21", child::place().display())).unwrap();
    info!("begun");
    match part {
        "times" => times(),
        "handover" => handover(),
        "hot" => spawn("hot", hot).join().unwrap(),
        "switches" => switches(u32::MAX),
        "hundred thousand" => switches(100_000),
        "forks" => forks(),
        "hang" => hang(),
        "shares" => spawn("shares", shares).join().unwrap(),
        "family" => family(),
        "quick" => {}
        "replaced" => replaced(),
        "half made" => half_made(),
        "lasting" => sleep(Duration::from_secs(1)),
        "waits" => {
            say("ready");
            wait_for_parent();
        }
        _ => unreachable!("{part}"),
    }
    drop(recording);
    std::process::exit(0);
}

pub fn spawn<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().name(name.to_owned()).spawn(body).unwrap()
}

pub fn thread_id() -> i32 {
    gettid().as_raw_nonzero().get()
}

pub fn pin() {
    pin_to(0);
}

fn pin_to(cpu: usize) {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).unwrap();
}

pub fn own(file: &str) -> String {
    fs::read_to_string(format!("/proc/self/task/{}/{file}", thread_id())).unwrap()
}

#[inline(never)]
#[unsafe(no_mangle)]
pub fn hot_function(time: Duration) -> u64 {
    let (begin, mut word) = (Instant::now(), 1_u64);
    while begin.elapsed() < time {
        for n in 0..5_000 {
            word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n));
        }
    }
    word
}

/// Computes until the thread has had a processor for 300 ms.
fn hot() {
    let ran = || own("schedstat").split(' ').next().unwrap().parse::<u64>().unwrap();
    let begin = ran();
    while ran() - begin < 300_000_000 {
        black_box(hot_function(Duration::from_millis(20)));
    }
    say(format_args!("ran {}", ran()));
}

/// A thread computes 200 ms, sleeps 100 ms, and computes again, while another one wants the same processor.
fn times() {
    pin();
    let stolen_before = stolen_nanos();
    let rival = spawn("rival", || _ = black_box(hot_function(Duration::from_millis(900))));
    let worker = spawn("worker", move || {
        black_box(hot_function(Duration::from_millis(400)));
        sleep(Duration::from_millis(100));
        black_box(hot_function(Duration::from_millis(200)));
        let (counted, now) = (own("schedstat"), Clock::global().now_epoch_nanos());
        say(format_args!("schedstat {} {now} {}", thread_id(), counted.trim()));
        say(format_args!("stolen {}", stolen_nanos() - stolen_before));
        // A mark for whoever looks at the thread from outside.
        sleep(Duration::from_millis(1));
    });
    worker.join().unwrap();
    rival.join().unwrap();
}

/// Returns the nanoseconds in which the hypervisor has run somebody else on the processors of this machine, by the
/// kernel's count in hundredths of a second.
fn stolen_nanos() -> u64 {
    let of_all = fs::read_to_string("/proc/stat").unwrap();
    let ticks = of_all.lines().next().unwrap().split_whitespace().nth(8).map_or(0, |ticks| ticks.parse().unwrap());
    ticks * 10_000_000
}

/// Two threads hand a number to each other. Each one sleeps when the other one wakes it.
fn handover() {
    let shared = Arc::new((Mutex::new((0, [0; 2])), Condvar::new()));
    let threads = [0_u32, 1].map(|me| {
        let shared = shared.clone();
        spawn(if me == 0 { "left" } else { "right" }, move || {
            let (number, changed) = &*shared;
            number.lock().unwrap().1[me as usize] = thread_id();
            for mine in (me..HANDOVERS + 2).step_by(2) {
                let mut held = number.lock().unwrap();
                while held.0 != mine {
                    held = changed.wait(held).unwrap();
                }
                drop(held);
                // The other one is asleep by now.
                sleep(Duration::from_millis(2));
                number.lock().unwrap().0 += 1;
                changed.notify_one();
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let [left, right] = shared.0.lock().unwrap().1;
    say(format_args!("threads {left} {right}"));
}

/// On each of two processors, two threads send a byte to and fro, so that threads leave processors about so often a
/// second.
fn switches(rate: u32) {
    let cpus = thread::available_parallelism().unwrap().get().min(2);
    let pairs: Vec<_> = (0..cpus).map(|cpu| spawn("pair", move || pair(cpu, rate / cpus as u32))).collect();
    let counts: Vec<String> = pairs.into_iter().map(|pair| pair.join().unwrap()).collect();
    say(format_args!("switches {}", counts.join(" ")));
}

/// Returns the number of a thread, how often it has left its processor, and in how many microseconds.
fn pair(cpu: usize, rate: u32) -> String {
    pin_to(cpu);
    let (mut here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
    let echo = spawn("echo", move || {
        let mut byte = [0];
        while there.read(&mut byte).unwrap() == 1 {
            there.write_all(&byte).unwrap();
        }
    });
    let ping = spawn("ping", move || {
        let (begin, mut byte) = (Instant::now(), [7]);
        let mut switches = 0_u64;
        while begin.elapsed() < Duration::from_millis(700) {
            if switches * 1_000_000 > u64::from(rate) * begin.elapsed().as_micros() as u64 {
                sleep(Duration::from_micros(200));
            }
            here.write_all(&byte).unwrap();
            here.read_exact(&mut byte).unwrap();
            switches += 2;
        }
        let status = own("status");
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let counts: u64 = counts.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum();
        format!("{} {counts} {}", thread_id(), begin.elapsed().as_micros())
    });
    let counts = ping.join().unwrap();
    echo.join().unwrap();
    counts
}

/// Computes for a number of rounds, without calls: the address of each sample lies in the function itself.
macro_rules! computes {
    ($name:ident) => {
        #[inline(never)]
        #[unsafe(no_mangle)]
        fn $name(rounds: u64) -> u64 {
            let (mut word, mut left) = (1_u64, rounds);
            while left > 0 {
                word ^= word << 13;
                word ^= word >> 7;
                word ^= word << 17;
                left -= 1;
            }
            word
        }
    };
}
computes!(share_of_ten);
computes!(share_of_six);
computes!(share_of_four);

/// Three functions take a half, three tenths and a fifth of the time. They take turns of random lengths, much shorter
/// than the time between two samples: with turns of three milliseconds, each third sample may come at the same place.
fn shares() {
    let mut random = Random(7);
    for _ in 0..30_000 {
        let unit = 100 + random.below(1801);
        black_box([share_of_ten(10 * unit), share_of_six(6 * unit), share_of_four(4 * unit)]);
    }
    say(format_args!("thread {}", thread_id()));
}

/// Has a ring, and a child with a ring of its own.
fn family() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(std::env::args_os().skip(1));
    let child_place = child::place().with_file_name("child");
    let played = eventring_stress::child::play(super::running::FAMILY, "lasting", &child_place);
    child.envs(played.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(child.status().unwrap().success());
}

/// Has a recorder of several shards, and maps what a further shard is while it is being made: under its other name, with
/// its mark, and with a header that does not say yet whose shard it is.
fn half_made() {
    let shard = child::place().with_extension("1");
    while !shard.exists() {
        let threads = [(); 4].map(|()| {
            spawn("one", || {
                info!("in a shard");
                sleep(Duration::from_millis(20));
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let mut bytes = fs::read(&shard).unwrap();
    bytes[0x100..0x1000].fill(0);
    let made = child::place().with_extension(format!("1.~{:010}", std::process::id()));
    fs::write(&made, bytes).unwrap();
    fs::set_permissions(&made, std::os::unix::fs::PermissionsExt::from_mode(0o1600)).unwrap();
    let file = File::options().read(true).write(true).open(&made).unwrap();
    // SAFETY: a fresh mapping at an address of the kernel's choice, which nobody uses.
    let mapped = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 1 << 21, rights, libc::MAP_SHARED, std::os::fd::AsRawFd::as_raw_fd(&file), 0)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    say("ready");
    wait_for_parent();
    fs::remove_file(&made).unwrap();
}

/// Computes in a span for ever, after it has put pipes where its file was and where the system says that it is now.
fn replaced() {
    let file = std::env::current_exe().unwrap();
    fs::remove_file(&file).unwrap();
    for path in [format!("{}", file.display()), format!("{} (deleted)", file.display())] {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    }
    spawn("hot", || {
        let _span = info_span!("computes").entered();
        loop {
            black_box(hot_function(Duration::from_millis(20)));
        }
    });
    sleep(Duration::from_millis(50));
    say("ready");
    wait_for_parent();
}

/// Starts another process when the parent says so.
fn forks() {
    say("ready");
    wait_for_parent();
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.1";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
}

#[inline(never)]
#[unsafe(no_mangle)]
fn stuck_function() {
    sleep(Duration::from_millis(250));
    black_box(());
}

/// A thread is in a span for ever, and in another one again and again.
fn hang() {
    spawn("stuck", || {
        let _wait = info_span!("wait").entered();
        loop {
            info_span!("late").in_scope(stuck_function);
        }
    });
    sleep(Duration::from_millis(100));
    say("ready");
    wait_for_parent();
}
