//! The death of a program. The file that `eventring capture --on death` writes lists exactly the spans that were open
//! when the program was killed, in the middle of its work. The time of a death is an interval that contains it: whoever
//! looks later knows only the last event and that the program is dead now; whoever watched knows more.

use crate::fixtures::*;
use crate::triggers::{checked, count, open_spans, result, watch_before};
use eventring::tracing::try_init;
use std::time::{SystemTime, UNIX_EPOCH};

const THREADS: u64 = 4;
/// The number of spans in each other that a thread may be in.
const DEPTH: u64 = 6;
const SLOT_BYTES: u64 = 16;

/// States of a span that the program notes in a file, which stays after its death. While a span is being created or
/// closed, nobody can say whether it is open.
const GONE: u64 = 0;
const BEGINNING: u64 = 1;
const OPEN: u64 = 2;
const ENDING: u64 = 3;

fn note(truth: &File, slot: u64, state: u64, id: u64) {
    let words: Vec<u8> = [state, id].iter().flat_map(|word| word.to_le_bytes()).collect();
    truth.write_all_at(&words, slot * SLOT_BYTES).unwrap();
}

/// Opens spans in each other to a random depth, and closes them again. Notes each step.
fn nest(truth: &File, thread: u64, depth: u64, random: &mut u64) {
    let slot = thread * DEPTH + depth;
    note(truth, slot, BEGINNING, 0);
    let span = info_span!("work", depth);
    let id = span.id().unwrap().into_u64();
    note(truth, slot, OPEN, id);
    let entered = span.entered();
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    if depth + 1 < DEPTH && *random >> 62 != 0 {
        nest(truth, thread, depth + 1, random);
    }
    info!(depth, "in the span");
    if *random >> 40 & 7 == 0 {
        thread::sleep(Duration::from_micros(300));
    }
    let span = entered.exit();
    note(truth, slot, ENDING, id);
    drop(span);
    note(truth, slot, GONE, 0);
}

fn work() -> ! {
    let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
    let truth = File::options().write(true).open(child::place().with_extension("truth")).unwrap();
    let truth: &File = Box::leak(Box::new(truth));
    for thread in 0..THREADS {
        thread::spawn(move || {
            let mut random = (thread + u64::from(std::process::id())) * 2 + 1;
            loop {
                nest(truth, thread, 0, &mut random);
                thread::sleep(Duration::from_micros(200));
            }
        });
    }
    say("works");
    loop {
        thread::park();
    }
}

/// Notes of the program at its death.
#[derive(Debug)]
struct Truth {
    open: BTreeSet<u64>,
    /// The spans that were being closed.
    ending: BTreeSet<u64>,
    /// The number of spans that were being created.
    beginning: usize,
}

impl Truth {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let slots: Vec<(u64, u64)> = (0..bytes.len()).step_by(16).map(|at| (word(at), word(at + 8))).collect();
        let ids = |state| slots.iter().filter(move |it| it.0 == state).map(|it| it.1).collect();
        let beginning = slots.iter().filter(|it| it.0 == BEGINNING).count();
        Self { open: ids(OPEN), ending: ids(ENDING), beginning }
    }

    /// Returns true if these are the open spans.
    fn allows(&self, listed: &BTreeSet<u64>) -> bool {
        let known: BTreeSet<u64> = self.open.union(&self.ending).copied().collect();
        self.open.is_subset(listed) && listed.difference(&known).count() <= self.beginning
    }
}

#[test]
fn the_file_of_a_death_lists_exactly_the_spans_that_were_open() {
    let test = plays!(work());
    let mut open = 0;
    for round in 0..5_u64 {
        let (_directory, [ring, names, named]) = places(["ring", "{n}-{span}.evc", "1-death.evc"]);
        let truth = ring.with_extension("truth");
        fs::write(&truth, vec![0; (THREADS * DEPTH * SLOT_BYTES) as usize]).unwrap();
        let live = watch_before(&ring, &["--on", "death", "--after", "100ms", "-o", argument(&names)]);
        let mut talk = Talk::told(test, "works", &ring, "works");
        thread::sleep(Duration::from_millis(100 + 37 * round));
        talk.kill();
        let result = result(&live.end());
        assert_eq!(count(&result, "fired"), 1, "{result:#}");
        // A thread that is killed between the claim and the commit of an event leaves a seqno without one.
        assert!(count(&result, "lost") <= THREADS, "{result:#}");
        let (file, manifest) = checked(&result["files"][0]);
        assert_eq!((&manifest["reason"], &manifest["program"]["pid"]), (&"death".into(), &talk.child.id().into()));
        assert_eq!(file, named);
        let open_spans = open_spans(&file);
        assert!(open_spans.iter().all(|(_, name)| name == "work"), "{open_spans:?}");
        let listed: BTreeSet<u64> = open_spans.into_iter().map(|(id, _)| id).collect();
        let truth = Truth::read(&truth);
        assert!(truth.allows(&listed), "{listed:?}, expected {truth:?}");
        // The check notices one span too few, and spans too many.
        for id in &truth.open {
            assert!(!truth.allows(&listed.iter().copied().filter(|listed| listed != id).collect()));
        }
        let more = listed.iter().copied().chain((1..=THREADS * DEPTH + 1).map(|n| u64::MAX - n));
        assert!(!truth.allows(&more.collect()));
        open += truth.open.len();
    }
    assert!(open > 0, "no span was open at any death");
}

/// The time for which the program is idle in its open span before it is killed.
const IDLE: Duration = Duration::from_millis(1500);

fn idle() -> ! {
    let _recording = try_init(format!("{}:15:21", child::place().display())).unwrap();
    info_span!("short").in_scope(|| info!("before"));
    let _connection = info_span!("connection").entered();
    say(now());
    loop {
        thread::park();
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Kills a program. Returns the times before and after its death.
fn kill(child: &mut Child) -> (u64, u64) {
    let before = now();
    child::kill(child);
    (before, now())
}

/// Returns the bounds of an end that an object of JSON states, which must contain the time of the death.
fn interval(object: &Value, (killed, gone): (u64, u64)) -> (u64, u64) {
    let [after, before] = ["ended_after_ns", "ended_before_ns"].map(|name| count(object, name));
    // The clocks of two programs differ by little.
    let slack = 1_000_000;
    assert!(after <= gone + slack && killed <= before + slack, "{after} to {before}, killed {killed} to {gone}");
    (after, before)
}

fn span<'v>(spans: &'v Value, name: &str) -> &'v Value {
    spans.list().iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}: {spans}"))
}

#[test]
fn who_looks_after_a_death_states_an_interval_that_contains_it() {
    let test = plays!(idle());
    let (directory, [ring, file]) = places(["ring", "t.evc"]);
    let mut talk = Talk::start(test, "idle", &ring);
    let opened: u64 = talk.hear().parse().unwrap();
    thread::sleep(IDLE);
    let killed = kill(&mut talk.child);
    let idle_nanos = killed.0 - opened;
    // The age of the open span is at least that at the last event, and at most that at the time of the look.
    let check_age = |span: &Value| {
        assert!(count(span, "age_ns") <= idle_nanos && idle_nanos <= count(span, "age_max_ns"), "{span}");
    };
    let captured = run!("capture", &ring, "-o", &file, "--json").json();
    assert_eq!((&captured["reason"], &captured["died"]), (&"writers_ended".into(), &true.into()));
    assert_eq!(captured["rings"][0]["died"], true);
    interval(&captured["rings"][0], killed);
    for name in [&ring, &file] {
        let opened = run!("open", name, "--json").json();
        check_age(span(&opened["spans"], "connection"));
        let program = &opened["programs"][0];
        let (after, before) = interval(program, killed);
        assert_eq!(program["state"], "died");
        assert!(before - after >= idle_nanos - 100_000_000, "{program}");
        let text = run!("open", name).out;
        assert!(text.contains("died between ") && text.contains(" ≥ "), "{text}");
        let old = ["open", argument(name), "--json", "--min-age", "1s"];
        assert_eq!(run(&old).json()["spans"].list().len(), 1, "it may be as old");
        let old = ["open", argument(name), "--json", "--min-age", "1h"];
        assert_eq!(run(&old).json()["spans"].list().len(), 0, "it cannot be as old");
    }
    let top = run!("top", &ring, "--once", "--json").json();
    interval(&top["programs"][0], killed);
    let text = run!("capture", &ring, "-o", &file, "--force").err;
    assert!(text.contains("died") && !text.contains("has ended"), "{text}");
    run!("summary", &file).shows("+ 1 open when the program died");
    for verb in ["info", "list"] {
        let place = if verb == "info" { &ring } else { directory.path() };
        let told = run!(verb, place, "--json").json();
        interval(if verb == "info" { &told } else { &told["rings"][0] }, killed);
    }
    run!("watch", &ring, "--utc").warns("its program died between ");
}

#[test]
fn a_capture_that_sees_a_death_writes_down_that_the_program_lived_after_its_last_event() {
    let test = plays!(idle());
    let (_directory, [ring, file]) = places(["ring", "t.evc"]);
    let live = live!("capture", &ring, "--wait", "-o", &file, "--json");
    let mut talk = Talk::start(test, "idle", &ring);
    let opened: u64 = talk.hear().parse().unwrap();
    thread::sleep(IDLE);
    let killed = kill(&mut talk.child);
    let captured: Value = serde_json::from_str(&live.end().out).unwrap();
    let told = interval(&captured["rings"][0], killed);
    assert!(told.0 - opened >= 500_000_000, "the capture looks ten times a second: {captured}");
    // All who read the capture say the same.
    let listed = run!("open", &file, "--json").json();
    assert_eq!(interval(&listed["programs"][0], killed), told);
    let least = count(span(&listed["spans"], "connection"), "age_ns");
    assert!((500_000_000..=killed.1 - opened + 10_000_000).contains(&least), "{listed}");
    let lines = exported(&file);
    let connection = lines.iter().find(|line| line["name"] == "connection").unwrap();
    // It was created a moment before `opened`, and the thread was in it until the end.
    assert!(count(connection, "busy_ns").abs_diff(least) < 1_000_000, "{connection} {least}");
    let of_process = &lines.last().unwrap()["processes"][0];
    assert_eq!((interval(of_process, killed), &of_process["state"]), (told, &"died".into()));
}

#[test]
fn a_death_is_not_dated_before_a_trigger_that_came_before_it() {
    let test = plays!(idle());
    let (_directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let old = "span=connection open>500ms";
    let live = watch_before(&ring, &["--on", old, "--on", "death", "--after", "0", "-o", argument(&names)]);
    let mut talk = Talk::start(test, "idle", &ring);
    talk.hear();
    thread::sleep(IDLE);
    let killed = kill(&mut talk.child);
    let result = result(&live.end());
    let [first, second] = result["files"].list().as_slice() else { panic!("{result:#}") };
    let [(_, first), (_, second)] = [first, second].map(checked);
    assert_eq!((&first["reason"], &second["reason"]), (&old.into(), &"death".into()));
    assert!(count(&second, "epoch_nanos") >= count(&first, "epoch_nanos"), "{first:#} {second:#}");
    let (after, _) = interval(&second, killed);
    assert_eq!(count(&second, "epoch_nanos"), after);
}
