//! Collectors that are away when the programs end, and web servers that are none.

use crate::fixtures::*;
use crate::http;
use crate::orders::{ended_orders, order, orders_in};
use std::net::TcpListener;

/// More than the batches that are in memory at a time.
const EVENTS: u64 = 20_000;

/// Starts a forwarder of a ring in which many events are recorded while it runs. Returns it when the ring has ended.
fn forwarder_of_an_ended_ring(directory: &Path, port: u16) -> Child {
    let ring = directory.join("orders");
    let orders = orders_in(&ring);
    let to = format!("otlp://127.0.0.1:{port}");
    let mut forward = program!("forward", &ring, "--to", &to, "--timeout", "2", "--json");
    let forward = forward.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    order(&orders, EVENTS);
    forward
}

/// Waits for the end of a forwarder. Returns its exit code, its counts and what it has said.
fn ended(mut forward: Child) -> (Option<i32>, Value, String) {
    let begin = Instant::now();
    while forward.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            forward.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    let ended = forward.wait_with_output().unwrap();
    let counts = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    (ended.status.code(), counts, String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn the_timeout_begins_when_the_programs_end_and_everything_unsent_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    // A port on which nobody listens.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (code, counts, said) = ended(forwarder_of_an_ended_ring(directory.path(), port));
    assert_eq!((code, &counts["unsent"], &counts["log_records"]), (Some(1), &json!(EVENTS), &json!(0)), "{counts}");
    assert!(said.contains("nothing goes to or from the collector now; it is asked again"), "{said}");
    assert!(said.contains("error: ") && said.contains("check the address"), "{said}");
}

#[test]
fn an_answer_that_is_none_of_a_collector_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let forward = forwarder_of_an_ended_ring(directory.path(), listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            http::read_request(&stream);
            let body = "<html>All is well</html>";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    let (code, counts, said) = ended(forward);
    assert_eq!((code, &counts["rejected"], &counts["log_records"]), (Some(1), &json!(EVENTS), &json!(0)), "{counts}");
    assert!(said.contains("the answer is none of a collector"), "{said}");
}

/// Makes a ring that has ended, with this number of events. Returns its path.
fn ended_ring(directory: &Path, events: u64) -> String {
    let ring = directory.join("ended");
    ended_orders(&ring, events);
    argument(&ring).to_owned()
}

#[test]
fn with_a_timeout_of_zero_each_request_is_sent_once() {
    let directory = tempfile::tempdir().unwrap();
    let ring = ended_ring(directory.path(), 10_000);
    let collector = http::Collector::start_with(|_| "503 Service Unavailable".to_owned());
    let run = run!("forward", &ring, "--to", &collector.address(), "--timeout", "0", "--json");
    let counts = run.said();
    assert_eq!((run.code, &counts["unsent"]), (Some(1), &json!(10_000)), "{run:?}");
    assert_eq!((&counts["requests"], &counts["retries"]), (&json!(5), &json!(0)), "{run:?}");
    assert_eq!(collector.requests(), 5);
}

#[test]
fn a_collector_that_names_a_date_is_asked_again_then() {
    let directory = tempfile::tempdir().unwrap();
    let ring = ended_ring(directory.path(), 1);
    let (told, times) = std::sync::mpsc::channel();
    let mut is_first = true;
    let collector = http::Collector::start_with(move |_| {
        told.send(Instant::now()).unwrap();
        if !std::mem::take(&mut is_first) {
            return "200 OK".to_owned();
        }
        let until = jiff::Timestamp::now() + Duration::from_secs(4);
        let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&until).unwrap();
        format!("503 Service Unavailable\r\nretry-after: {date}")
    });
    let run = run!("forward", &ring, "--to", &collector.address(), "--json");
    assert_eq!(run.json()["retries"], 1);
    let (first, second) = (times.recv().unwrap(), times.recv().unwrap());
    // The date has no fractions of seconds.
    assert!(second - first >= Duration::from_secs(2), "{:?}", second - first);
}

#[test]
fn a_header_of_the_command_line_replaces_that_of_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let ring = ended_ring(directory.path(), 1);
    let collector = http::Collector::start();
    let forward = |header: &str, of_environment: &str| {
        let mut command = program!("forward", &ring, "--to", &collector.address(), "--header", header, "--json");
        command.env("OTEL_EXPORTER_OTLP_HEADERS", of_environment);
        program::finish(command)
    };
    forward("API-Key=given", "api-key=of%20all,tenant=shop").ends(0);
    let (head, _) = &collector.taken()[0];
    let keys: Vec<&str> = head.lines().filter(|line| line.starts_with("api-key:")).collect();
    assert_eq!(keys, ["api-key: given"], "{head}");
    assert!(head.contains("tenant: shop"), "{head}");
    for (header, of_environment) in [("Content-Type=text/plain", ""), ("a=b", "content-encoding=br")] {
        forward(header, of_environment).fails(2, "set by the forwarding itself");
    }
}
