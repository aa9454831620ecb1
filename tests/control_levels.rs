//! Clients switch on what a running program records, and their wishes end with them.
#![cfg(all(feature = "cli", feature = "tracing", feature = "macros"))]

mod child;
mod program;

use child::Talk;
use eventring::control::{ControlErrorKind, Process, ServerAddress, WishTime};
use eventring::reader::{RingItem, RingSet};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring::{EventType, record};
use program::program as eventring_program;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The events of the program: two domains, of which one is off.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 400, name = "MARKET")]
#[repr(u16)]
enum Market {
    #[event(domain = "trades")]
    Trade = 2,
    #[event(domain = "orderbook")]
    Order = 3,
}

/// The longest time in which a change must be in force. On an idle machine it takes less than 5 milliseconds, and the
/// promise is 100. This is more, because machines that run tests are busy.
const SOON: Duration = Duration::from_secs(1);

/// Plays the program: each millisecond it makes a log record of each level and an event of each domain.
fn shop() {
    let spans = PerfRecorder::builder().anonymous().shifts(15, 21).prefault(false).build().unwrap();
    let market = Recorder::builder(ContentDescription::of::<Market>()).anonymous().shifts(16, 27);
    let market = market.prefault(false).domains("trades").build().unwrap();
    let subscriber = RecorderSubscriber::new(spans).with_filter("info".parse().unwrap());
    let _guard = tracing::subscriber::set_default(subscriber);
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        child::wait_for_parent();
        drop(end);
    });
    child::say("begun");
    while ended.recv_timeout(Duration::from_millis(1)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        tracing::info!(target: "shop", "info");
        tracing::debug!(target: "shop", "debug");
        tracing::debug!(target: "other", "debug");
        record!(market => Market::Trade);
        record!(market => Market::Order);
    }
}

/// The program, and its rings.
struct Shop {
    talk: Talk,
    socket: PathBuf,
    rings: RingSet,
    _directory: tempfile::TempDir,
}

/// The events that came in some milliseconds: log records, orders and trades.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Came {
    log_records: u64,
    trades: u64,
    orders: u64,
}

impl Shop {
    fn open(test: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("control");
        let mut command = child::play(test, "shop", Path::new(""));
        command.env("EVENTRING_SERVER", &socket);
        let mut talk = Talk::with(command);
        assert_eq!(talk.hear(), "begun");
        let rings = ["PERF", "MARKET"].map(|ring| socket.join(ring));
        let rings = RingSet::open(rings).unwrap();
        Self { talk, socket, rings, _directory: directory }
    }

    fn connect(&self) -> Process {
        Process::connect(&ServerAddress::Path(self.socket.clone())).unwrap()
    }

    /// Counts the events that are recorded in the next 50 milliseconds.
    fn came(&mut self) -> Came {
        // Events that were recorded before are read first.
        self.read_for(Duration::from_millis(15));
        self.read_for(Duration::from_millis(50))
    }

    fn read_for(&mut self, time: Duration) -> Came {
        let (start, mut came) = (Instant::now(), Came::default());
        while start.elapsed() < time {
            let Some(RingItem::Event { ring, event }) = self.rings.next_timeout(Duration::from_millis(1)) else {
                continue;
            };
            match (ring, event.event_type) {
                (0, code) if code == PerfEvent::Event as u16 => came.log_records += 1,
                (1, code) if code == Market::Trade as u16 => came.trades += 1,
                (1, code) if code == Market::Order as u16 => came.orders += 1,
                _ => {}
            }
        }
        came
    }

    /// Waits until `is_so`, and asserts that this happens soon.
    fn becomes_soon(&mut self, what: &str, is_so: impl Fn(&eventring::control::ProcessState) -> bool) {
        let (process, start) = (self.connect(), Instant::now());
        while !is_so(&process.state().unwrap()) {
            assert!(start.elapsed() < SOON, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a verb of the program `eventring` on this program.
    fn run(&self, verb: &str, more: &[&str]) -> program::Run {
        program::run(&[&[verb, self.socket.to_str().unwrap()], more].concat())
    }
}

#[test]
fn two_clients_get_the_union_of_their_wishes_and_a_killed_one_takes_its_wish_away() {
    const NAME: &str = "two_clients_get_the_union_of_their_wishes_and_a_killed_one_takes_its_wish_away";
    if child::part().is_some() {
        return shop();
    }
    let mut shop = Shop::open(NAME);
    let ordinary = shop.came();
    assert!(ordinary.log_records > 1 && ordinary.trades > 1 && ordinary.orders == 0, "{ordinary:?}");
    let first = shop.connect();
    assert_eq!(first.wish("shop=debug", WishTime::Connection).unwrap(), "");
    let one_more = shop.came();
    assert!(one_more.log_records > one_more.trades * 3 / 2, "{one_more:?}");
    let mut command = eventring_program(&["enable", shop.socket.to_str().unwrap(), "other=debug,domain:orderbook"]);
    let mut second = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while first.state().unwrap().wishes.len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(10), "the client does not begin");
    }
    let state = first.state().unwrap();
    assert!(state.effective.contains("shop=debug") && state.effective.contains("other=debug"), "{state:?}");
    assert_eq!(state.wishes[1].pid, second.id());
    let all = shop.came();
    assert!(all.log_records > all.trades * 5 / 2 && all.orders > 1, "{all:?}");
    second.kill().unwrap();
    shop.becomes_soon("the wish of a killed client goes on", |state| state.wishes.len() == 1);
    second.wait().unwrap();
    let left = shop.came();
    assert!(left.log_records > left.trades * 3 / 2 && left.log_records < left.trades * 5 / 2, "{left:?}");
    assert_eq!(left.orders, 0);
    drop(first);
    shop.becomes_soon("the wish of a client that has ended goes on", |state| state.wishes.is_empty());
    let after = shop.came();
    assert!(after.log_records < after.trades * 3 / 2, "{after:?}");
    assert!(shop.talk.end().success());
}

#[test]
fn wishes_with_a_time_end_by_themselves_and_kept_ones_are_taken_back() {
    const NAME: &str = "wishes_with_a_time_end_by_themselves_and_kept_ones_are_taken_back";
    if child::part().is_some() {
        return shop();
    }
    let mut shop = Shop::open(NAME);
    let enabled = shop.run("enable", &["shop=debug", "--for", "400ms"]);
    assert_eq!(enabled.code, Some(0), "{enabled:?}");
    let levels = shop.run("levels", &["--json"]).json();
    assert_eq!(levels["configured"], "info");
    assert_eq!(levels["wishes"][0]["directive"], "shop=debug");
    assert!(levels["wishes"][0]["until_epoch_nanos"].as_u64().unwrap() > 1 << 60, "{levels}");
    assert_eq!(
        levels["domains"],
        serde_json::json!([{ "name": "orderbook", "enabled": false }, { "name": "trades", "enabled": true }])
    );
    std::thread::sleep(Duration::from_millis(400));
    shop.becomes_soon("a wish with a time goes on", |state| state.wishes.is_empty());
    assert_eq!(shop.run("enable", &["domain:orderbook", "--keep"]).code, Some(0));
    assert!(shop.came().orders > 1);
    assert_eq!(shop.run("disable", &["domain:orderbook"]).code, Some(0));
    assert_eq!(shop.came().orders, 0);
    let again = shop.run("disable", &["domain:orderbook"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.err.contains("nobody has switched on `domain:orderbook`"), "{again:?}");
}

#[test]
fn a_wrong_directive_is_refused_with_what_is_expected() {
    const NAME: &str = "a_wrong_directive_is_refused_with_what_is_expected";
    if child::part().is_some() {
        return shop();
    }
    let shop = Shop::open(NAME);
    let process = shop.connect();
    let refused = |directive: &str| {
        let error = process.wish(directive, WishTime::Kept).unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::BadDirective, "{error}");
        error.to_string()
    };
    assert!(refused("shop=loud").contains("has the level `loud`, expected off, error"), "{}", refused("shop=loud"));
    assert!(refused("domain:stocks").contains("no such domain"), "{}", refused("domain:stocks"));
    assert!(refused(" , ").contains("the directive is empty"));
    assert_eq!(process.state().unwrap().wishes, []);
}

#[test]
fn switching_a_thousand_times_loses_no_event_that_was_on_throughout_and_duplicates_none() {
    const NAME: &str = "switching_a_thousand_times_loses_no_event_that_was_on_throughout_and_duplicates_none";
    if child::part().is_some() {
        let spans = PerfRecorder::builder().anonymous().shifts(18, 24).prefault(false).build().unwrap();
        let subscriber = RecorderSubscriber::new(spans).with_filter("info".parse().unwrap());
        tracing::subscriber::with_default(subscriber, || {
            child::say("begun");
            let (end, ended) = std::sync::mpsc::channel::<()>();
            std::thread::spawn(move || {
                child::wait_for_parent();
                drop(end);
            });
            let mut number = 0_u64;
            while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                tracing::info!(target: "shop", number);
                tracing::debug!(target: "shop", "debug");
                number += 1;
                std::thread::sleep(Duration::from_micros(50));
            }
            child::say(number);
        });
        return child::wait_for_parent();
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let mut command = child::play(NAME, "shop", Path::new(""));
    command.env("EVENTRING_SERVER", &socket);
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "begun");
    let mut rings = RingSet::open([&socket]).unwrap();
    let process = Process::connect(&ServerAddress::Path(socket)).unwrap();
    for _ in 0..500 {
        process.wish("shop=debug", WishTime::Kept).unwrap();
        assert_eq!(process.withdraw("shop=debug").unwrap(), 1);
    }
    drop(talk.child.stdin.take());
    let recorded: u64 = talk.hear().parse().unwrap();
    let (mut next, mut debug) = (0, 0_u64);
    while let Some(item) = rings.next_timeout(Duration::from_millis(200)) {
        let RingItem::Event { event, .. } = item else { panic!("{item:?}") };
        if event.event_type != PerfEvent::Event as u16 {
            continue;
        }
        // The number is the only field of eight bytes; the other log record has a message.
        let payload = rings.payload().valid().unwrap().to_vec();
        match payload.last_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) {
            Some(number) if number == next => next += 1,
            _ => debug += 1,
        }
    }
    assert_eq!(next, recorded, "{debug} log records of the level that was switched");
    assert!(debug > 0 && debug < recorded, "{debug} of {recorded}");
}
