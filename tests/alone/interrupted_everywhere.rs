//! A signal handler that records, at any instruction of a thread that records.
//!
//! A timer stops the thread at a random moment. From there on the thread runs instruction by instruction for a while:
//! the processor's trap flag makes a signal follow each of them, and its handler records after some of them. Each pair
//! of a handler and the work that it interrupts runs in a process of its own. Then every event is there once, whole,
//! and in the right span. And the tables of the present have no other span than the one that is open.
//!
//! `EVENTRING_INTERRUPTIONS` is the number of interruptions of each pair.

use crate::fixtures::*;
use eventring::global::GlobalRecorder;
use eventring::now::{NowReader, Presence};
use eventring::reader::Descriptor;
use eventring::schema::perf::flags;
use eventring::tracing::{Fields, PerfItem, SpanId, try_init_with};
use eventring::{EventPayload, EventType, ext_scope, log, scope};
use std::collections::HashSet;

#[derive(EventPayload)]
struct Number {
    number: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "NUMBERS", recorder = NUMBERS, ext(0 = round))]
#[repr(u16)]
enum Numbers {
    #[event(payload = Number)]
    OfWork = 2,
    #[event(payload = Number)]
    OfHandler = 3,
}

static NUMBERS: GlobalRecorder = GlobalRecorder::new("numbers");

/// Recorders of which a thread does not remember all.
struct Others {
    perf: PerfRecorder,
    typed: [Recorder; 5],
}

static OTHERS: OnceLock<Others> = OnceLock::new();

/// A span that is open all the time, and that work and handlers enter.
static HELD: OnceLock<tracing::Span> = OnceLock::new();

/// A value that records while it is formatted.
struct Chatty(u64);

impl std::fmt::Debug for Chatty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_multiple_of(2) {
            let _scope = scope!("inner", number = self.0);
        }
        write!(f, "{}", self.0)
    }
}

/// What is interrupted, and what interrupts it: each gets a number and records it once, in an event or the beginning of
/// a span.
type Job = (&'static str, fn(u64));

const WORK: [Job; 6] = [
    ("info!", |number| tracing::info!(number, v = ?Chatty(number), "x {}", number)),
    ("info_span!", |number| {
        let span = tracing::info_span!("work", number, v = ?Chatty(number));
        span.in_scope(|| tracing::info_span!("within").in_scope(|| tracing::info!(within = number)));
    }),
    ("log::info!", |number| {
        let _scope = scope!("outer");
        log::info!(number, "x {number} {:?}", Chatty(number));
    }),
    ("scope!", |number| {
        let _outer = scope!("work", number, v = ?Chatty(number));
        let _within = scope!("within");
        tracing::info!(within = number);
    }),
    ("record!", |number| {
        let _round = ext_scope!(Numbers, round = number);
        let _span = tracing::info_span!("work", round = number).entered();
        record!(Numbers::OfWork, &Number { number });
    }),
    ("a held span", |number| HELD.get().unwrap().in_scope(|| tracing::info!(number))),
];

const HANDLERS: [Job; 7] = [
    ("info!", |interruption| tracing::info!(interruption, "interrupted {}", interruption)),
    ("log::info!", |interruption| log::info!(interruption, "interrupted {interruption}")),
    ("scope!", |interruption| {
        let _outer = scope!("handler", interruption);
        let _within = scope!("within");
        log::info!(within = interruption, "within");
    }),
    ("info_span!", |interruption| {
        // The spans do not end in the order in which the order of their beginnings would have it.
        let (first, second) = (tracing::info_span!("handler", interruption), tracing::info_span!("another"));
        first.in_scope(|| tracing::info!(within = interruption));
        drop(first);
        drop(second);
    }),
    ("record!", |interruption| {
        let _round = ext_scope!(Numbers, round = interruption);
        record!(Numbers::OfHandler, &Number { number: interruption });
    }),
    ("other recorders", |interruption| {
        let others = OTHERS.get().unwrap();
        others.perf.trigger("interrupted");
        others.typed[interruption as usize % others.typed.len()].record(2, [0; 4], b"interrupted");
        tracing::info!(interruption);
    }),
    ("a held span", |interruption| HELD.get().unwrap().in_scope(|| tracing::info!(interruption))),
];

/// The handler that records.
static HANDLER: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);
/// How many instructions the thread still runs one by one.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Whether the thread is at work, and no step was taken yet.
static IS_AT_WORK: AtomicBool = AtomicBool::new(false);

fn random() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    let mut state = STATE.load(Ordering::Relaxed);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    STATE.store(state, Ordering::Relaxed);
    state
}

/// Sets or clears the trap flag of the interrupted code.
fn set_trap_flag(context: *mut libc::c_void, is_set: bool) {
    const TRAP_FLAG: libc::greg_t = 0x100;
    // SAFETY: the system passes a context to a handler with `SA_SIGINFO`.
    let flags = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] };
    *flags = if is_set { *flags | TRAP_FLAG } else { *flags & !TRAP_FLAG };
}

extern "C" fn at_a_moment(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if IS_AT_WORK.swap(false, Ordering::Relaxed) {
        // Mostly few, so that handlers come one after another.
        STEPS.store(1 + random() % (1 << (random() % 8)), Ordering::Relaxed);
        set_trap_flag(context, true);
    }
}

extern "C" fn after_an_instruction(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if random().is_multiple_of(2) {
        HANDLERS[HANDLER.load(Ordering::Relaxed)].1(INTERRUPTIONS.fetch_add(1, Ordering::Relaxed));
    }
    if STEPS.fetch_sub(1, Ordering::Relaxed) == 1 {
        set_trap_flag(context, false);
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)) {
    let mut action = libc::sigaction {
        sa_sigaction: handler as *const () as usize,
        sa_flags: libc::SA_SIGINFO | libc::SA_RESTART,
        // SAFETY: a signal set, and an action, may be all zeros.
        ..unsafe { std::mem::zeroed() }
    };
    // While a handler runs, the timer does not end.
    // SAFETY: the set is an initialized one.
    assert_eq!(unsafe { libc::sigaddset(&mut action.sa_mask, libc::SIGALRM) }, 0);
    // SAFETY: the action is complete, and no old action is asked for.
    assert_eq!(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }, 0);
}

/// A timer that signals the calling thread.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> Self {
        let mut timer = std::ptr::null_mut();
        // SAFETY: an event may be all zeros.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        // SAFETY: the function has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        // SAFETY: the event is complete.
        assert_eq!(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) }, 0);
        Self(timer)
    }

    fn signal_in(&self, nanos: u32) {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time =
            libc::itimerspec { it_interval: never, it_value: libc::timespec { tv_sec: 0, tv_nsec: nanos.into() } };
        // SAFETY: the timer exists, and no old time is asked for.
        assert_eq!(unsafe { libc::timer_settime(self.0, 0, &time, std::ptr::null_mut()) }, 0);
    }
}

/// Works until it was interrupted. Returns the number of the next round.
fn work_until_interrupted(timer: &Timer, work: fn(u64), first_round: u64) -> u64 {
    STEPS.store(u64::MAX, Ordering::Relaxed);
    IS_AT_WORK.store(true, Ordering::Relaxed);
    timer.signal_in(1 + (random() % 20_000) as u32);
    for round in first_round.. {
        work(round);
        if STEPS.load(Ordering::Relaxed) == 0 {
            return round + 1;
        }
    }
    unreachable!()
}

/// What is read back of a pair.
#[derive(Default)]
struct Seen {
    /// How often the work and the handler have recorded each of their numbers.
    work: HashMap<u64, u32>,
    handler: HashMap<u64, u32>,
    /// The name of each span, and its number.
    spans: HashMap<SpanId, (String, Option<u64>)>,
    /// How often each span was closed.
    closed: HashMap<SpanId, u32>,
    /// The spans that were closed before.
    earlier: HashSet<SpanId>,
    /// The span that is never closed.
    held: Option<SpanId>,
}

fn number(fields: &Fields, name: &str) -> Option<u64> {
    fields.get(name).map(|value| value.to_string().parse().unwrap())
}

fn count(numbers: &mut HashMap<u64, u32>, number: Option<u64>) {
    number.into_iter().for_each(|number| *numbers.entry(number).or_default() += 1);
}

impl Seen {
    /// Notes the spans.
    fn note(&mut self, item: &PerfItem) {
        match item {
            PerfItem::Record(PerfRecord {
                content: PerfContent::SpanNew { span, parent, call_site, fields, .. },
                ..
            }) => {
                if *call_site.name == *"held" {
                    assert!(self.held.replace(*span).is_none());
                    return;
                }
                self.check_has_begun(*parent);
                let of = ["number", "round", "interruption"].into_iter().find_map(|name| number(fields, name));
                let before = self.spans.insert(*span, (call_site.name.to_string(), of));
                assert!(before.is_none() && !self.earlier.contains(span), "{span:?} is there twice: {before:?}");
            }
            PerfItem::Record(PerfRecord { content: PerfContent::SpanExit { span, flags, .. }, .. }) => {
                count_close(&mut self.closed, *span, flags & flags::CLOSED != 0);
            }
            PerfItem::Record(PerfRecord { content: PerfContent::SpanClose { span, .. }, .. }) => {
                count_close(&mut self.closed, *span, true);
            }
            PerfItem::Record(PerfRecord { content: PerfContent::Event { span, .. }, .. }) => {
                self.check_has_begun(*span)
            }
            PerfItem::Record(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Checks that no event is in a span that begins after it.
    fn check_has_begun(&self, span: Option<SpanId>) {
        assert!(
            span.is_none_or(|span| self.held == Some(span) || self.spans.contains_key(&span)),
            "{span:?} has not begun"
        );
    }

    fn named(&self, span: Option<SpanId>) -> Option<&(String, Option<u64>)> {
        let span = span.filter(|span| Some(*span) != self.held)?;
        Some(self.spans.get(&span).expect("the span was recorded"))
    }

    /// Checks where each event is, after all spans are known.
    fn check(&mut self, item: &PerfItem) {
        match item {
            PerfItem::Record(PerfRecord { content: PerfContent::SpanNew { span, parent, fields, .. }, .. }) => {
                let Some((name, _)) = self.named(Some(*span)).cloned() else { return };
                let parent = self.named(*parent).map(|(name, _)| name.as_str());
                match name.as_str() {
                    "within" => assert!(matches!(parent, Some("work" | "handler")), "within {parent:?}"),
                    "work" | "outer" => assert_eq!(parent, None),
                    _ => assert!(!matches!(parent, Some("handler" | "another")), "{name} in {parent:?}"),
                }
                count(&mut self.work, number(fields, "number").filter(|_| name == "work"));
                count(&mut self.handler, number(fields, "interruption"));
            }
            PerfItem::Record(PerfRecord { content: PerfContent::Event { span, fields, .. }, .. }) => {
                count(&mut self.work, number(fields, "number"));
                count(&mut self.handler, number(fields, "interruption"));
                let span = self.named(*span);
                match number(fields, "within") {
                    None => self.check_of_any(span),
                    // Within the span of the number, or in a span in it.
                    Some(within) => assert!(
                        span.is_some_and(|(name, of)| name == "within" || *of == Some(within)),
                        "{within} is in {span:?}"
                    ),
                }
            }
            _ => {}
        }
    }

    fn check_typed(&mut self, event: &Descriptor, payload: [u8; 8]) {
        let of = u64::from_le_bytes(payload);
        assert_eq!(event.content_ext[0], of, "the word is that of the scope around the event");
        let span = self.named(SpanId::new(event.content_ext[3]));
        if event.event_type == Numbers::OfWork as u16 {
            assert_eq!(span, Some(&("work".to_owned(), Some(of))));
            count(&mut self.work, Some(of));
        } else {
            self.check_of_any(span);
            count(&mut self.handler, Some(of));
        }
    }

    fn check_of_any(&self, span: Option<&(String, Option<u64>)>) {
        assert!(!matches!(span, Some((name, _)) if name == "handler" || name == "another"), "{span:?} had ended");
    }
}

fn count_close(closed: &mut HashMap<SpanId, u32>, span: SpanId, is_closed: bool) {
    if is_closed {
        *closed.entry(span).or_default() += 1;
    }
}

/// Rounds before the first interruption.
const WARM_UP: u64 = 10;

fn pair(work: usize, handler: usize, interruptions: u64) {
    let directory = directory();
    let builder = || PerfRecorder::builder().shifts(18, 25).prefault(false);
    try_init_with(builder().config(directory.path().join("perf")), "info".parse().unwrap()).unwrap();
    HELD.set(tracing::info_span!("held")).unwrap();
    let numbers = ContentDescription::from_event_type::<Numbers>();
    NUMBERS.install(Recorder::builder(numbers).anonymous().prefault(false).build().unwrap()).unwrap();
    let typed = || Recorder::builder(ContentDescription::new(301, "OTHER")).anonymous().prefault(false);
    let typed = [(); 5].map(|()| typed().build().unwrap());
    assert!(OTHERS.set(Others { perf: builder().anonymous().build().unwrap(), typed }).is_ok());
    HANDLER.store(handler, Ordering::Relaxed);
    // A thread records, and comes to each call site, before a handler may.
    for number in 0..WARM_UP {
        WORK[work].1(number);
        HANDLERS[handler].1(INTERRUPTIONS.fetch_add(1, Ordering::Relaxed));
    }
    handle(libc::SIGALRM, at_a_moment);
    handle(libc::SIGTRAP, after_an_instruction);
    let timer = Timer::new();
    let perf = PERF.installed().unwrap();
    let shards = perf.open_readers().unwrap();
    let shard0 = Reader::open(perf.path().unwrap()).unwrap();
    let now = NowReader::open_beside(&shard0).unwrap().expect("a recorder with a name has tables");
    let typed = Reader::options().open_fd(NUMBERS.installed().unwrap().as_fd()).unwrap();
    let mut typed = typed.cursor();
    typed.seek(Seek::Seqno(1));
    let mut rings = (PerfReader::from_shards(shards), typed);
    let (mut seen, mut rounds, mut last_read) = (Seen::default(), WARM_UP, 0);
    while INTERRUPTIONS.load(Ordering::Relaxed) < interruptions {
        rounds = work_until_interrupted(&timer, WORK[work].1, rounds);
        // What is wrong here may be right again after the next round.
        let held = now.span(HELD.get().and_then(tracing::Span::id).unwrap().into_u64()).unwrap();
        assert!(matches!(held.presence, Presence::Left(..) | Presence::NotYet), "{:?}", held.presence);
        if INTERRUPTIONS.load(Ordering::Relaxed) + rounds - last_read > 10_000 {
            last_read = INTERRUPTIONS.load(Ordering::Relaxed) + rounds;
            read(&mut rings, &mut seen);
            check_tables(&now, &seen);
        }
    }
    read(&mut rings, &mut seen);
    check_tables(&now, &seen);
    let all_once = |numbers: &HashMap<u64, u32>, len: u64| {
        assert!(numbers.len() as u64 == len && numbers.values().all(|times| *times == 1), "{} of {len}", numbers.len());
    };
    all_once(&seen.work, rounds);
    all_once(&seen.handler, INTERRUPTIONS.load(Ordering::Relaxed));
    println!("eventring: {rounds} rounds of {} under {}", WORK[work].0, HANDLERS[handler].0);
}

/// Checks the tables of the present, while no work is under way.
fn check_tables(now: &NowReader, seen: &Seen) {
    let present = now.read();
    let [held] = &present.spans[..] else { panic!("other spans than one are open: {:?}", present.spans) };
    assert_eq!(SpanId::new(held.id), seen.held);
    assert!(matches!(held.presence, Presence::Left(..) | Presence::NotYet), "{:?}", held.presence);
    assert_eq!(present.threads.len(), 1);
    assert_eq!(present.untabled.spans, 0);
}

/// Reads all events, while no work is under way: each span is closed.
fn read((reader, typed): &mut (PerfReader, Cursor), seen: &mut Seen) {
    let items: Vec<PerfItem> = std::iter::from_fn(|| reader.next_timeout(Duration::from_millis(30))).collect();
    items.iter().for_each(|item| seen.note(item));
    items.iter().for_each(|item| seen.check(item));
    let mut payload = Vec::new();
    while let Next::Event(event) = typed.next() {
        let payload = typed.payload(&event, &mut payload).valid().expect("the ring holds all");
        seen.check_typed(&event, payload.try_into().unwrap());
    }
    assert!(seen.spans.keys().all(|span| seen.closed.remove(span) == Some(1)), "each span is closed once");
    assert!(seen.closed.is_empty(), "nothing else is closed");
    seen.earlier.extend(seen.spans.drain().map(|(span, _)| span));
}

#[test]
fn a_handler_that_records_at_any_instruction_spoils_nothing() {
    let test = plays!(|part| {
        let [work, handler, interruptions] = part.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<_>>()[..] else {
            panic!("{part}")
        };
        pair(work, handler, interruptions as u64);
        std::fs::write(place(), "done").unwrap();
    });
    let interruptions = std::env::var("EVENTRING_INTERRUPTIONS").map_or(2000, |number| number.parse::<u64>().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut failed = Vec::new();
    for (work, handler) in (0..WORK.len()).flat_map(|work| (0..HANDLERS.len()).map(move |handler| (work, handler))) {
        let place = directory.path().join(format!("{work} {handler}"));
        // Both change the same cell, and only an interruption between two neighbouring instructions could spoil it.
        let is_same_span = WORK[work].0 == "a held span" && HANDLERS[handler].0 == "a held span";
        let part = format!("{work} {handler} {}", interruptions * if is_same_span { 30 } else { 1 });
        let run = play(test, &part, &place).stderr(Stdio::piped()).output().unwrap();
        if !run.status.success() || !place.exists() {
            let (work, handler) = (WORK[work].0, HANDLERS[handler].0);
            failed.push(format!("{work} under {handler}: {}, {}", run.status, String::from_utf8_lossy(&run.stderr)));
        }
    }
    assert!(failed.is_empty(), "{} pairs of 42:\n{}", failed.len(), failed.join("\n"));
}
