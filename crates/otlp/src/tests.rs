use super::post::pause;
use super::sender::varied;
use super::*;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use std::time::Duration;
use ureq::http::Response;

#[test]
fn addresses_that_are_no_addresses_say_what_was_expected() {
    for (text, problem) in [
        ("localhost:4318", "it has no scheme"),
        ("nats://localhost", "its scheme is another one"),
        ("otlp://", "it cannot be read"),
        ("otlp://user:secret@host", "it has a user"),
        ("otlp://host/?a=b", "it has a query"),
        ("otlp://host:99999", "its port is no number"),
        ("otlp://host:43l8", "port"),
    ] {
        let error = text.parse::<OtlpEndpoint>().unwrap_err();
        let message = error.to_string();
        assert!(message.contains(problem) && message.contains("expected otlp://HOST"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    for (text, is_this_host) in [
        ("otlp://localhost", true),
        ("otlp://127.0.0.9:1", true),
        ("otlp://[::1]", true),
        ("otlp://localhost.example", false),
    ] {
        assert_eq!(text.parse::<OtlpEndpoint>().unwrap().is_this_host(), is_this_host, "{text}");
    }
    assert_eq!("otlp://[::1]".parse::<OtlpEndpoint>().unwrap().to_string(), "http://[::1]:4318");
    assert_eq!("https://host/".parse::<OtlpEndpoint>().unwrap().to_string(), "https://host");
}

#[test]
fn a_bad_header_is_named_and_its_value_is_not() {
    let endpoint: OtlpEndpoint = "otlp://host".parse().unwrap();
    let error = endpoint.clone().header("key", "secret\n").unwrap_err();
    assert!(error.to_string().contains("`key`") && !error.to_string().contains("secret"), "{error}");
    assert!(endpoint.header("a b", "c").is_err());
}

#[test]
fn a_header_replaces_an_earlier_one_and_those_of_the_forwarding_itself_are_refused() {
    let endpoint: OtlpEndpoint = "otlp://host".parse().unwrap();
    for name in ["Content-Type", "content-encoding", "CONTENT-LENGTH", "host", "transfer-encoding", "connection"] {
        let error = endpoint.clone().header(name, "x").unwrap_err();
        assert!(error.to_string().contains("set by the forwarding itself"), "{error}");
    }
    let endpoint =
        endpoint.header("Key", "first").unwrap().header("other", "x").unwrap().header("KEY", "last").unwrap();
    let headers: Vec<(&str, &str)> =
        endpoint.headers().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(headers, [("other", "x"), ("key", "last")]);
}

#[test]
fn a_pause_is_asked_for_in_seconds_or_until_a_date() {
    let asked = |text: &str| pause(&Response::builder().header("retry-after", text).body(()).unwrap());
    assert_eq!(asked(" 7 "), Some(Duration::from_secs(7)));
    assert_eq!(asked("100000"), Some(Duration::from_secs(300)));
    assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
    assert_eq!((asked("soon"), asked("-1"), asked("")), (None, None, None));
    let later = Timestamp::now() + Duration::from_secs(60);
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&later).unwrap();
    let until_date = asked(&date).unwrap();
    assert!((50..=60).contains(&until_date.as_secs()), "{date}: {until_date:?}");
}

#[test]
fn pauses_differ_and_are_not_shorter_than_asked_for() {
    let second = Duration::from_secs(1);
    let all: Vec<Duration> = (0..100).map(|_| varied(second, None)).collect();
    assert!(all.iter().all(|pause| (second / 2..=second).contains(pause)), "{all:?}");
    assert!(all.iter().any(|pause| *pause != all[0]), "{all:?}");
    let asked: Vec<Duration> = (0..100).map(|_| varied(second, Some(5 * second))).collect();
    assert!(asked.iter().all(|pause| (5 * second..=6 * second).contains(pause)), "{asked:?}");
    assert!(asked.iter().any(|pause| *pause != asked[0]), "{asked:?}");
}
