//! A slow client among a hundred of `eventring exec gateway`, by another program's library.

use crate::consumers::script;
use crate::program::{Live, argument, directory, place};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventPayload as _;
use eventring::schema::exec::{BlockEnd, ExecEvent};
use eventring_stress::chain::Made;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// The time between two blocks.
const PAUSE: Duration = Duration::from_millis(50);

/// Records blocks until it is over. The end of each block has the time at which it is recorded.
fn execute(recorder: &Recorder, is_over: &AtomicBool) {
    let mut made = Made::default();
    let (mut recorded, mut number) = (0, 0_u64);
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        made.block(number, (number % 251) as u8, 2);
        let (_, payload) = made.0.last_mut().unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let end = BlockEnd { gas_used: now.as_nanos() as u64, ..BlockEnd::default() };
        *payload = end.with_bytes(<[u8]>::to_vec);
        recorded = made.record(recorded, recorder);
        std::thread::sleep(PAUSE);
    }
}

/// Returns the middle of some values.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs only with `EVENTRING_LATENCY_ROUNDS`, the number of rounds of two seconds, for example 30.
#[test]
fn a_slow_client_among_a_hundred_changes_nobodys_latency() {
    let Ok(rounds) = std::env::var("EVENTRING_LATENCY_ROUNDS") else {
        return eventring_stress::skipped("EVENTRING_LATENCY_ROUNDS is not set: this test takes a minute or more");
    };
    let Some(mut script) = script("gateway_latency.py") else { return };
    let dir = directory();
    let ring = place(&dir, "node");
    let content = ContentDescription::from_event_type::<ExecEvent>();
    let recorder = Recorder::builder(content).config(argument(&ring)).shifts(17, 26).compact(true).build().unwrap();
    let start = |()| Live::start(&["exec", "gateway", argument(&ring), "--listen", "127.0.0.1:0", "--json"]);
    let mut gateways = [(); 2].map(start);
    let addresses = gateways.each_mut().map(|gateway| gateway.json_line()["listening"].as_str().unwrap().to_owned());
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| execute(&recorder, &is_over));
        let output = script.args([&rounds, "2"]).args(&addresses).output();
        is_over.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pairs: Vec<[[f64; 2]; 2]> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(pairs.len() >= 20, "{} blocks", pairs.len());
    let ratios = [("middle", 0), ("longest", 1)].map(|(name, at)| {
        let micros = |side: usize| middle(pairs.iter().map(|pair| pair[side][at] / 1e3).collect());
        let ratio = middle(pairs.iter().map(|[with, without]| with[at] / without[at]).collect());
        println!(
            "{name} of 99: {:.0} µs beside a slow client, {:.0} µs without; middle of the ratios of {} blocks: {ratio:.3}",
            micros(0),
            micros(1),
            pairs.len()
        );
        ratio
    });
    for gateway in gateways {
        gateway.interrupt();
        assert_eq!(gateway.end().code, Some(0));
    }
    assert!(ratios.iter().all(|ratio| *ratio <= 1.1), "{ratios:?}");
}
