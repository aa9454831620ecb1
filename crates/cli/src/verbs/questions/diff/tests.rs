//! Tests of the tables for people.

use super::text;
use crate::text::out;
use eventring_export::{InstructionSummary, SpanSummary, Summary};
use eventring_report::compare::{ChangeLimit, Comparison, LimitResults};

fn span(name: &str, target: &str, count: u64, each_nanos: u64, instructions: Option<u64>) -> SpanSummary {
    let mut span = SpanSummary::default();
    (span.name, span.target, span.count) = (name.into(), target.into(), count);
    (span.total_nanos, span.self_nanos, span.busy_nanos) = (count * each_nanos, count * each_nanos, count * each_nanos);
    [span.p50_nanos, span.p90_nanos, span.p99_nanos, span.max_nanos] = [1, 2, 5, 9].map(|factor| each_nanos * factor);
    span.block_medians = (0..count.min(20)).map(|block| each_nanos + block * 7 % 20).collect();
    span.instructions = instructions.map(|all| {
        let mut counted = InstructionSummary::default();
        (counted.spans, counted.all, counted.own) = (count, all, all / 2);
        (counted.min, counted.max) = (all / count.max(1), all / count.max(1));
        counted
    });
    span
}

fn capture(spans: Vec<SpanSummary>) -> [Summary; 1] {
    let mut summary = Summary::default();
    summary.spans = spans;
    [summary]
}

fn shown(a: Vec<SpanSummary>, b: Vec<SpanSummary>, limits: &[&str], with_times: bool) -> String {
    let comparison = Comparison::new(&capture(a), &capture(b), 0.01);
    let limits: Vec<ChangeLimit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    let results = comparison.check_limits(&limits, false).unwrap();
    let columns = 80;
    let text = out::shown(|out| text::write(out, &comparison, &results, with_times, Some(columns)));
    for line in text.lines().filter(|line| !line.starts_with("failed")) {
        assert!(line.chars().count() <= columns, "{} columns: {line}", line.chars().count());
    }
    text
}

#[test]
fn instructions_come_first_where_they_were_counted() {
    let a = vec![
        span("request", "http_service", 5000, 292_000, Some(1_234_567_890)),
        span("query", "http_service::database", 6250, 243_000, Some(987_654_321)),
        span("old", "http_service", 3, 4_000, Some(77)),
        span("task", "http_service", 4, 8_000, None),
    ];
    let b = vec![
        span("request", "http_service", 5000, 292_100, Some(1_234_572_890)),
        span("query", "http_service::database", 6250, 243_000, Some(987_654_321)),
        span("new\u{1b}[31m", "http_service", 3, 4_000, Some(50)),
        span("task", "http_service", 4, 8_000, None),
    ];
    let limits = ["instructions(request)>0", "busy(query)>+1%"];
    insta::assert_snapshot!(shown(a.clone(), b.clone(), &limits, true));
    // Times under QEMU are noise.
    let without_times = shown(a, b, &limits, false);
    assert!(without_times.contains("--times shows them") && !without_times.contains("busy A"), "{without_times}");
}

#[test]
fn without_instructions_there_is_one_table_of_times() {
    let a =
        vec![span("request", "http_service", 5000, 292_000, None), span("query", "http_service", 6250, 2_430, None)];
    let b =
        vec![span("request", "http_service", 4900, 312_000, None), span("query", "http_service", 6250, 2_430, None)];
    insta::assert_snapshot!(shown(a, b, &["p50(*)>+5%", "count(request)<-1"], false));
}

#[test]
fn a_side_that_saw_no_span_whole_is_not_called_new_or_gone_and_losses_stand_below_the_table() {
    let not_whole = |name: &str, open, incomplete| {
        let mut span = span(name, "shop", 0, 0, None);
        (span.open, span.incomplete) = (open, incomplete);
        span
    };
    let of = |lost, spans| {
        let mut side = capture(spans);
        side[0].lost = lost;
        side
    };
    let request = || span("request", "shop", 50, 9_000, None);
    let whole = |name: &str| span(name, "shop", 3, 4_000, None);
    let a = of(505_045, vec![request(), not_whole("customer", 0, 16), whole("task"), whole("old")]);
    let b = of(1, vec![request(), whole("customer"), not_whole("task", 2, 0), whole("fresh")]);
    let comparison = Comparison::new(&a, &b, 0.01);
    insta::assert_snapshot!(out::shown(|out| {
        text::write(out, &comparison, &LimitResults::default(), false, Some(80))
    }));
    let json = serde_json::to_value(comparison.answer(&LimitResults::default())).unwrap();
    let customer = json["spans"].as_array().unwrap().iter().find(|span| span["name"] == "customer").unwrap();
    assert!(customer["a"].is_null() && customer["not_whole"] == serde_json::json!({ "a": 16, "b": 0 }), "{customer}");
}

#[test]
fn captures_without_spans_have_no_table() {
    assert_eq!(shown(vec![], vec![], &[], false), "no spans\n");
}
