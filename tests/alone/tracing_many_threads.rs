//! Any number of threads record. Up to the limit of shards, each thread has a shard of its own. If there are more
//! threads, they share the shards. The events of a thread stay in order, and readers know each thread by its name.

use crate::fixtures::*;
use eventring::schema::perf::FieldValue;
use eventring::tracing::PerfRecorderBuilder;

fn recorder(limit: usize) -> PerfRecorder {
    small(PerfRecorder::builder().anonymous()).shards(limit).build().unwrap()
}

fn small(builder: PerfRecorderBuilder) -> PerfRecorderBuilder {
    builder.shifts(17, 22).tables_shift(16).prefault(false)
}

/// Returns, for each thread's name, the numbers that the thread has logged, in the order in which a reader gets them.
fn numbers_by_thread(records: &[PerfRecord]) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in records {
        if let PerfContent::Event { fields, .. } = &record.content {
            let Some(FieldValue::U64(n)) = fields.get("n") else { panic!("{fields:?}") };
            numbers.entry(record.thread.name.clone().unwrap()).or_default().push(*n);
        }
    }
    numbers
}

/// Returns how many threads have begun to record, and how many have ended.
fn started_and_ended(records: &[PerfRecord]) -> (usize, usize) {
    let count = |wanted| records.iter().filter(|record| record.content == wanted).count();
    (count(PerfContent::ThreadStarted), count(PerfContent::ThreadEnded))
}

#[test]
fn threads_that_begin_at_the_same_moment_get_a_shard_each_and_keep_the_order_of_their_events() {
    alone!();
    const THREADS: usize = 6;
    let recorder = recorder(THREADS);
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let (begin, end) = (Barrier::new(THREADS), Barrier::new(THREADS));
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (recorder, dispatch, begin, end) = (&recorder, &dispatch, &begin, &end);
            let body = move || {
                begin.wait();
                let log = |n| tracing::dispatcher::with_default(dispatch, || tracing::info!(n));
                // While another thread makes a shard, this thread shares an existing shard. With each event it asks
                // again for a shard of its own. So the loop goes on until every thread has its own shard.
                for n in 0.. {
                    log(n);
                    if recorder.shard_count() == THREADS && n > 50 || Instant::now() > deadline {
                        break;
                    }
                    std::thread::yield_now();
                }
                end.wait();
                log(u64::MAX);
            };
            std::thread::Builder::new().name(format!("thread {thread}")).spawn_scoped(scope, body).unwrap();
        }
    });
    assert_eq!(recorder.shard_count(), THREADS);
    let records = records(&recorder);
    let last = |record: &&PerfRecord| match &record.content {
        PerfContent::Event { fields, .. } => fields.get("n") == Some(&FieldValue::U64(u64::MAX)),
        _ => false,
    };
    let shards: BTreeSet<u32> = records.iter().filter(last).map(|record| record.shard).collect();
    assert_eq!(shards.len(), THREADS, "in the end each thread has a shard of its own");
    for (thread, numbers) in numbers_by_thread(&records) {
        assert!(numbers.is_sorted() && numbers.len() > 50, "{thread}: {numbers:?}");
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "{thread}");
    }
    assert_eq!(started_and_ended(&records), (THREADS, THREADS));
}

#[test]
fn two_hundred_threads_share_two_shards_and_none_of_their_events_is_lost() {
    alone!();
    let recorder = recorder(2);
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    for round in 0..4 {
        std::thread::scope(|scope| {
            for thread in 0..50 {
                let dispatch = &dispatch;
                let body = move || {
                    tracing::dispatcher::with_default(dispatch, || (0..100u64).for_each(|n| tracing::info!(n)));
                };
                std::thread::Builder::new().name(format!("{round} {thread}")).spawn_scoped(scope, body).unwrap();
            }
        });
    }
    assert_eq!(recorder.shard_count(), 2);
    let numbers = numbers_by_thread(&records(&recorder));
    assert_eq!(numbers.len(), 200);
    assert!(numbers.values().all(|numbers| numbers.iter().copied().eq(0..100)));
}

#[test]
fn a_thread_that_ends_leaves_its_shard_to_the_next_one() {
    alone!();
    let recorder = recorder(8);
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    for n in 0..20u64 {
        let dispatch = dispatch.clone();
        std::thread::spawn(move || tracing::dispatcher::with_default(&dispatch, || tracing::info!(n))).join().unwrap();
    }
    assert_eq!(recorder.shard_count(), 1);
    let records = records(&recorder);
    let threads: BTreeSet<u32> = records.iter().filter_map(|record| record.thread.os_thread_id).collect();
    assert_eq!(threads.len(), 20);
}

#[test]
fn a_shard_that_cannot_be_made_is_counted_and_its_threads_share() {
    alone!();
    let (directory, [place]) = places(["ring"]);
    // The name of shard 1 is taken by something that is no ring.
    std::fs::create_dir(directory.path().join("ring.1")).unwrap();
    let recorder = small(PerfRecorder::builder().config(&place)).shards(4).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for n in 0..3u64 {
            let (dispatch, barrier) = (&dispatch, &barrier);
            scope.spawn(move || {
                tracing::dispatcher::with_default(dispatch, || tracing::info!(n));
                barrier.wait();
                // Until now, the thread shares a shard. With this event it asks again for a shard of its own.
                tracing::dispatcher::with_default(dispatch, || tracing::info!(n));
            });
        }
    });
    let stats = recorder.stats();
    assert_eq!((recorder.shard_count(), stats.shard_failures), (1, 1));
    let error = stats.shard_error.unwrap();
    assert!(error.contains("ring.1"), "{error}");
    let mut reader = PerfReader::open(&place).unwrap();
    let events = reference::records(&mut reader);
    assert_eq!(events.iter().filter(|record| matches!(record.content, PerfContent::Event { .. })).count(), 6);
    assert_eq!(reader.catalog_losses().shards, 1);
}

#[test]
fn threads_that_end_while_others_make_shards_have_started_once() {
    alone!();
    const THREADS: usize = 60;
    let recorder = recorder(4);
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let begin = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for n in 0..THREADS as u64 {
            let (dispatch, begin) = (&dispatch, &begin);
            scope.spawn(move || {
                begin.wait();
                tracing::dispatcher::with_default(dispatch, || tracing::info!(n));
            });
        }
    });
    assert_eq!(started_and_ended(&records(&recorder)), (THREADS, THREADS));
}

thread_local! {
    /// True while a signal is raised on each thread that this one starts, before the standard library has set it up.
    static RAISES_SIGNALS: Cell<bool> = const { Cell::new(false) };
}
static OF_HANDLER: OnceLock<Dispatch> = OnceLock::new();

type Start = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

/// Stands in for the function of the C library by which the standard library starts threads.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut libc::c_void,
) -> libc::c_int {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start,
        *mut libc::c_void,
    ) -> libc::c_int;

    extern "C" fn raise_and_start(begun: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the pointer is that of the box below, which nobody else has.
        let (start, argument) = *unsafe { Box::from_raw(begun.cast::<(Start, *mut libc::c_void)>()) };
        // SAFETY: the handler is installed.
        unsafe { libc::raise(libc::SIGUSR1) };
        start(argument)
    }

    // SAFETY: the name is a valid string.
    let create = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
    // SAFETY: the function of the C library has this type.
    let create = unsafe { std::mem::transmute::<*mut libc::c_void, Create>(create) };
    let (start, argument) = match RAISES_SIGNALS.get() {
        true => (raise_and_start as Start, Box::into_raw(Box::new((start, argument))).cast()),
        false => (start, argument),
    };
    // SAFETY: the arguments are those of the caller, or a function with an argument of its own.
    unsafe { create(thread, attributes, start, argument) }
}

extern "C" fn record_in_handler(_: libc::c_int) {
    let dispatch = OF_HANDLER.get().unwrap();
    tracing::dispatcher::with_default(dispatch, || {
        tracing::info_span!("interrupted").in_scope(|| tracing::info!(n = 1u64))
    });
}

#[test]
fn a_signal_handler_may_record_on_a_thread_that_is_just_starting() {
    alone!();
    const NAME: &str = "the-name-of-a-thread-that-starts";
    let recorder = recorder(4);
    OF_HANDLER.set(Dispatch::new(RecorderSubscriber::new(recorder.clone()))).unwrap();
    // SAFETY: the handler interrupts no code of this thread but `raise`.
    unsafe { libc::signal(libc::SIGUSR1, record_in_handler as *const () as libc::sighandler_t) };
    let inner = || {
        RAISES_SIGNALS.set(true);
        std::thread::Builder::new().name("inner".to_owned()).spawn(|| ()).unwrap().join().unwrap();
    };
    // A new thread has the name of its parent at first: here a name that the system has cut.
    std::thread::Builder::new().name(NAME.to_owned()).spawn(inner).unwrap().join().unwrap();
    let numbers = numbers_by_thread(&records(&recorder));
    assert_eq!(numbers, BTreeMap::from([(NAME[..15].to_owned(), vec![1])]));
}

/// The system calls with which threads start, get memory, wait and end, and those of this test.
const CALLS_OF_THREADS: [i64; 26] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_prctl,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_write,
];

/// Makes every system call but those of the list end the process, for this thread and those that it starts.
fn allow_only(calls: &[i64]) {
    let statement = |code: u32, jump_if_equal, k| libc::sock_filter { code: code as u16, jt: jump_if_equal, jf: 0, k };
    let end = |action| statement(libc::BPF_RET | libc::BPF_K, 0, action);
    // The number of the call is the first word of what the filter gets.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    filter.extend(
        calls.iter().rev().enumerate().rev().map(|(behind, call)| {
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, behind as u8 + 1, *call as u32)
        }),
    );
    filter.extend([end(libc::SECCOMP_RET_KILL_PROCESS), end(libc::SECCOMP_RET_ALLOW)]);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the call takes numbers only.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: `program` describes the statements in `filter`, which the kernel copies.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }, 0);
}

#[test]
fn in_a_sandbox_that_kills_new_threads_record_if_all_shards_were_made_before() {
    const THREADS: u64 = 6;
    let test = plays!(|part| {
        let builder = small(PerfRecorder::builder().config(child::place())).shards(4).keep(true);
        let recorder = builder.all_shards_at_build(part == "before").build().unwrap();
        let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
        let typed = Recorder::builder(ContentDescription::new(300, "THINGS")).memory(6 << 20).build().unwrap();
        allow_only(&CALLS_OF_THREADS);
        let all_record = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|n| {
                    let (dispatch, typed, all_record) = (&dispatch, &typed, &all_record);
                    let work = move || {
                        let log = || tracing::info_span!("work", n).in_scope(|| tracing::info!(n));
                        tracing::dispatcher::with_default(dispatch, log);
                        assert_ne!(typed.record(2, [n, 0, 0, 0], b"also typed"), 0);
                        all_record.wait();
                    };
                    std::thread::Builder::new().name(format!("{n}")).spawn_scoped(scope, work).unwrap()
                })
                .collect();
            // The end of the scope waits for the work of the threads. `join` waits for their ends, too.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        std::process::exit(0);
    });
    let directory = directory();
    let end = |part: &str, place: &std::path::Path| child::play(test, part, place).output().unwrap().status;
    let place = directory.path().join("ring");
    let status = end("before", &place);
    assert_eq!(status.code(), Some(0), "{status}");
    let records = reference::records(&mut PerfReader::open(&place).unwrap());
    let numbers = (0..THREADS).map(|n| (n.to_string(), vec![n])).collect::<BTreeMap<_, _>>();
    assert_eq!(numbers_by_thread(&records), numbers);
    assert_eq!(started_and_ended(&records).1 as u64, THREADS);
    // The control: shards that are made when threads need them.
    let status = end("later", &directory.path().join("later"));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGSYS), "{status}");
}

#[test]
fn a_thread_that_begins_to_record_after_the_end_of_the_main_thread_is_read() {
    let test = plays!({
        // In a forked child, this thread is the main thread.
        // SAFETY: the other threads of this process hold no locks that the child needs: they wait for this test.
        let forked = unsafe { libc::fork() };
        if forked != 0 {
            // SAFETY: without a place for the status, the call stores nothing.
            unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) };
            return;
        }
        let recorder = small(PerfRecorder::builder().config(child::place())).build().unwrap();
        let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
        tracing::dispatcher::with_default(&dispatch, || tracing::info!(n = 1_u64));
        let main = format!("/proc/thread-self/../{}/stat", std::process::id());
        std::thread::spawn(move || {
            wait_while(|| !std::fs::read_to_string(&main).is_ok_and(|stat| stat.contains(") Z ")));
            tracing::dispatcher::with_default(&dispatch, || tracing::info!(n = 2_u64));
            child::say("recorded");
            child::wait_for_parent();
            std::process::exit(0);
        });
        // SAFETY: only this thread ends, as if a program in C had called `pthread_exit`. Nothing that it owns is used.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    });
    let (_directory, [path]) = places(["ring"]);
    let mut talk = Talk::told(test, "", &path, "recorded");
    let mut reader = PerfReader::open(&path).unwrap();
    let numbers: Vec<u64> = numbers_by_thread(&reference::records(&mut reader)).into_values().flatten().collect();
    assert_eq!(numbers.len(), 2, "{numbers:?}");
    assert!(talk.end().success());
}
