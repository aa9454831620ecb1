//! Clients switch on what a running program records, and their filter overrides end with them.

use crate::fixtures::*;
use crate::program::program as eventring_program;
use eventring::control::{ControlErrorKind, OverrideTime, Process, ServerAddress};
use eventring::reader::{RingItem, RingSet};
use eventring_stress::users;

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
const SOON: Duration = Duration::from_secs(10);

/// Plays the program: each millisecond it makes a log record of each level and an event of each domain.
fn shop() {
    shop_with("trades");
}

/// Plays the program with these settings of its domains.
fn shop_with(domains: &str) {
    let spans = PerfRecorder::builder().anonymous().shifts(15, 21).prefault(false).build().unwrap();
    let market = Recorder::builder(ContentDescription::from_event_type::<Market>()).anonymous().shifts(16, 27);
    let market = market.prefault(false).domains(domains).build().unwrap();
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
        let socket = place(&directory, "control");
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
fn two_clients_get_the_union_of_their_overrides_and_a_killed_one_takes_its_override_away() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    let ordinary = shop.came();
    assert!(ordinary.log_records > 1 && ordinary.trades > 1 && ordinary.orders == 0, "{ordinary:?}");
    let first = shop.connect();
    assert_eq!(first.add_override("shop=debug", OverrideTime::Connection).unwrap(), "");
    let one_more = shop.came();
    assert!(one_more.log_records > one_more.trades * 3 / 2, "{one_more:?}");
    let mut command = eventring_program(&["enable", shop.socket.to_str().unwrap(), "other=debug,domain:orderbook"]);
    let mut second = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while first.state().unwrap().overrides.len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "the client does not begin");
    }
    let state = first.state().unwrap();
    assert!(state.effective.contains("shop=debug") && state.effective.contains("other=debug"), "{state:?}");
    assert_eq!(state.overrides[1].pid, second.id());
    let all = shop.came();
    assert!(all.log_records > all.trades * 5 / 2 && all.orders > 1, "{all:?}");
    second.kill().unwrap();
    shop.becomes_soon("the filter override of a killed client goes on", |state| state.overrides.len() == 1);
    second.wait().unwrap();
    let left = shop.came();
    assert!(left.log_records > left.trades * 3 / 2 && left.log_records < left.trades * 5 / 2, "{left:?}");
    assert_eq!(left.orders, 0);
    drop(first);
    shop.becomes_soon("the filter override of a client that has ended goes on", |state| state.overrides.is_empty());
    let after = shop.came();
    assert!(after.log_records < after.trades * 3 / 2, "{after:?}");
    assert!(shop.talk.end().success());
}

#[test]
fn overrides_with_a_time_end_by_themselves_and_kept_ones_are_revoked() {
    let test = plays!(shop());
    let mut shop = Shop::open(test);
    let enabled = shop.run("enable", &["shop=debug", "--for", "400ms"]);
    assert_eq!(enabled.code, Some(0), "{enabled:?}");
    let levels = shop.run("levels", &["--json"]).json();
    crate::ask::schemas::check(&[("levels", levels.clone())]);
    assert_eq!(levels["configured"], "info");
    assert_eq!(levels["wishes"][0]["directive"], "shop=debug");
    assert!(levels["wishes"][0]["until_epoch_nanos"].number() > 1 << 60, "{levels}");
    assert_eq!(
        levels["domains"],
        serde_json::json!([
            { "name": "orderbook", "enabled": false, "forbidden": false },
            { "name": "trades", "enabled": true, "forbidden": false },
        ])
    );
    std::thread::sleep(Duration::from_millis(400));
    shop.becomes_soon("a filter override with a time goes on", |state| state.overrides.is_empty());
    assert_eq!(shop.run("enable", &["domain:orderbook", "--keep"]).code, Some(0));
    assert!(shop.came().orders > 1);
    let disabled = shop.run("disable", &["domain:orderbook"]);
    assert_eq!(disabled.code, Some(0));
    assert!(disabled.err.contains("1 filter override for domain:orderbook ended, of process"), "{disabled:?}");
    assert_eq!(shop.came().orders, 0);
    let again = shop.run("disable", &["domain:orderbook"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    let at_once = shop.run("enable", &["shop=debug", "--for", "0s"]);
    assert_eq!(at_once.code, Some(2), "{at_once:?}");
    assert!(at_once.err.contains("expected a time greater than 0"), "{at_once:?}");
    assert!(again.err.contains("nobody has switched on `domain:orderbook`"), "{again:?}");
}

#[test]
fn a_wrong_directive_is_refused_with_what_is_expected() {
    let test = plays!(shop());
    let shop = Shop::open(test);
    let process = shop.connect();
    let refused = |directive: &str| {
        let error = process.add_override(directive, OverrideTime::Kept).unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::BadDirective, "{error}");
        error.to_string()
    };
    assert!(refused("shop=loud").contains("has the level `loud`, expected off, error"), "{}", refused("shop=loud"));
    let unknown = refused("domain:stocks");
    assert!(unknown.contains("no such domain: `stocks`, expected one of: orderbook, trades"), "{unknown}");
    // The message names the program.
    assert!(unknown.contains(&format!("(process {}, ", shop.talk.child.id())), "{unknown}");
    assert!(
        refused("off").contains("a filter override only adds")
            && refused("x=off,y=off").contains("a filter override only adds")
    );
    assert!(refused("Domain:orderbook").contains("in small letters") && refused("!shop").contains("forbids nothing"));
    assert!(refused("a:b=debug").contains("a single colon"));
    // In a list, it takes something out of what the others want.
    process.add_override("debug,other=off", OverrideTime::Kept).unwrap();
    assert_eq!(process.revoke("debug,other=off").unwrap(), 1);
    assert!(refused(" , ").contains("the directive is empty"));
    assert_eq!(process.state().unwrap().overrides, []);
}

#[test]
fn an_override_for_a_domain_that_the_configuration_forbids_says_so() {
    let test = plays!(shop_with("trades,!orderbook"));
    let mut shop = Shop::open(test);
    let enabled = shop.run("enable", &["domain:orderbook", "--keep"]);
    assert_eq!(enabled.code, Some(0), "{enabled:?}");
    assert!(
        enabled.err.contains("forbids the domain orderbook") && enabled.err.contains("it stays off"),
        "{enabled:?}"
    );
    assert!(!enabled.err.contains("records domain:orderbook"), "{enabled:?}");
    assert_eq!(shop.came().orders, 0);
    let levels = shop.run("levels", &[]);
    assert!(levels.out.contains("orderbook off, forbidden"), "{levels:?}");
    let levels = shop.run("levels", &["--json"]).json();
    assert_eq!(levels["domains"][0], serde_json::json!({ "name": "orderbook", "enabled": false, "forbidden": true }));
}

#[test]
fn an_override_of_another_user_is_not_revoked_and_its_user_is_named() {
    alone!();
    if !users::can_be_played() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let address = format!("others-{}", std::process::id());
    let server = eventring::control::Server::builder().abstract_name(&address).allow_switch(4711).start().unwrap();
    let market =
        Recorder::builder(ContentDescription::from_event_type::<Market>()).anonymous().shifts(16, 27).prefault(false);
    let _market = market.domains("trades").build().unwrap();
    let ours = Process::connect(server.address()).unwrap();
    ours.add_override("domain:orderbook", OverrideTime::Kept).unwrap();
    let copy = place(&directory, "eventring");
    std::fs::copy(program::PROGRAM, &copy).unwrap();
    for place in [directory.path(), &copy] {
        std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = std::process::Command::new(&copy);
    command.args(["disable", &format!("@{address}"), "domain:orderbook"]);
    std::os::unix::process::CommandExt::uid(&mut command, 4711);
    let refused = program::finish(command);
    assert_eq!(refused.code, Some(11), "{refused:?}");
    let whose = format!("process {} of user 0", std::process::id());
    assert!(refused.err.contains(&whose), "{refused:?}");
    assert_eq!(ours.state().unwrap().overrides.len(), 1);
}

#[test]
fn a_capture_whose_program_has_no_server_goes_on_and_says_at_the_end_that_nothing_was_switched_on() {
    let test = plays!({
        std::fs::write(child::place().with_extension("started"), "").unwrap();
        let ring = program::exec_ring(&child::place());
        ring.record(2, [0; 4], b"first");
        std::thread::sleep(Duration::from_millis(300));
        ring.record(2, [0; 4], b"last");
    });
    let (_directory, [ring, saved]) = places(["ring", "saved.evc"]);
    let capture = |directive: &str| {
        let part = child::play(test, "recorder", &ring);
        let mut command = eventring_program(&["capture", program::argument(&ring), "-o", program::argument(&saved)]);
        command.args(["--enable", directive, "--"]).arg(part.get_program()).args(part.get_args());
        command.envs(part.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("EVENTRING_SERVER");
        program::finish(command)
    };
    // A wrong directive is noticed before the program starts.
    for wrong in ["shop=loud", "off", "Domain:x"] {
        let run = capture(wrong);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(!ring.with_extension("started").exists() && !saved.exists(), "{run:?}");
    }
    let run = capture("shop=debug");
    assert!(ring.with_extension("started").exists());
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("nothing was switched on, the capture goes on"), "{run:?}");
    assert!(run.err.contains("nothing was switched on (--enable)"), "{run:?}");
    let run = program::run(&["export", program::argument(&saved), "-t", "jsonl", "-o", "-"]);
    assert_eq!(run.json_lines().iter().filter(|line| line["type"] == "typed_event").count(), 2, "{run:?}");
}
