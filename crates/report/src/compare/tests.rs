//! Tests of comparisons: what changes and what does not, how many false alarms there are, and expressions.

use super::*;
use eventring_export::{AllocationSummary, InstructionSummary, SpanSummary, Summary, TimeSummary};
use eventring_live::ConditionError;
use proptest::prelude::*;

/// Random numbers that are the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a sum of twelve numbers, which is nearly normal: its variance is 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    /// Returns durations of about 100 µs. Neighbours have the correlation `correlation`.
    fn durations(&mut self, count: usize, correlation: f64, factor: f64) -> Vec<u64> {
        let mut state = self.normal();
        let mut next = || {
            state = correlation * state + (1.0 - correlation * correlation).sqrt() * self.normal();
            (100_000.0 * factor * (0.1 * state).exp()) as u64
        };
        (0..count).map(|_| next()).collect()
    }
}

const CALLS: usize = 400;
const SPANS: usize = 10;

fn summary(spans: Vec<SpanSummary>) -> Summary {
    let mut summary = Summary::default();
    summary.spans = spans;
    summary
}

/// Makes a capture with ten spans. The span with the number `slow` takes 5 % more time.
fn capture(noise: &mut Noise, correlation: f64, slow: Option<usize>) -> Summary {
    let factor = |span| if Some(span) == slow { 1.05 } else { 1.0 };
    let span = |span: usize| {
        SpanSummary::of_durations(&format!("span {span}"), &noise.durations(CALLS, correlation, factor(span)))
    };
    summary((0..SPANS).map(span).collect())
}

fn has_alarm(comparison: &Comparison) -> bool {
    comparison.spans.iter().any(|span| span.is_significant(comparison.alpha) == Some(true))
}

fn counted(name: &str, instructions: &[u64]) -> SpanSummary {
    let durations: Vec<u64> = instructions.iter().map(|count| count / 4).collect();
    let all = instructions.iter().sum();
    let (min, max) = (instructions.iter().min().copied(), instructions.iter().max().copied());
    let mut of_all = InstructionSummary::default();
    (of_all.spans, of_all.all, of_all.own) = (instructions.len() as u64, all, all / 2);
    (of_all.min, of_all.max) = (min.unwrap_or(0), max.unwrap_or(0));
    let mut summary = SpanSummary::of_durations(name, &durations);
    summary.instructions = Some(of_all);
    summary
}

#[test]
fn pairs_without_a_change_raise_no_more_false_alarms_than_declared() {
    for (correlation, alpha) in [(0.0, 0.01), (0.5, 0.01), (0.9, 0.01), (0.98, 0.05)] {
        let mut noise = Noise(7);
        let alarm = |_: &i32| {
            let [a, b] = [0, 1].map(|_| capture(&mut noise, correlation, None));
            has_alarm(&Comparison::new(&[a], &[b], alpha))
        };
        let alarms = (0..100).filter(alarm).count();
        assert!(alarms as f64 <= 100.0 * alpha, "{alarms} alarms with a correlation of {correlation}");
    }
}

#[test]
fn captures_of_few_calls_raise_no_more_false_alarms_than_declared() {
    for (calls, correlation) in [(5, 0.98), (8, 0.9), (12, 0.98), (30, 0.9), (40, 0.98), (90, 0.9)] {
        let mut noise = Noise(11);
        let alarm = |_: &i32| {
            let [a, b] = [0, 1].map(|_| SpanSummary::of_durations("x", &noise.durations(calls, correlation, 1.0)));
            has_alarm(&Comparison::new(&[summary(vec![a])], &[summary(vec![b])], 0.01))
        };
        let alarms = (0..500).filter(alarm).count();
        assert!(alarms <= 5, "{alarms} alarms in 500 pairs of {calls} calls with a correlation of {correlation}");
    }
}

/// The control of the two tests above: without blocks and without widening, the same durations raise many alarms.
#[test]
fn a_test_of_single_calls_would_raise_many_false_alarms() {
    let mut noise = Noise(7);
    let alarm = |_: &i32| {
        let [a, b] = [0, 1].map(|_| noise.durations(CALLS, 0.9, 1.0));
        rank_sum::p_value(&a, &b) <= 0.01
    };
    let alarms = (0..100).filter(alarm).count();
    assert!(alarms > 20, "{alarms}");
}

#[test]
fn a_span_that_is_five_percent_slower_is_the_first_of_ten() {
    let mut firsts = 0;
    for seed in 0..100 {
        let mut noise = Noise(seed << 32);
        let slow = seed as usize % SPANS;
        let (a, b) = (capture(&mut noise, 0.3, None), capture(&mut noise, 0.3, Some(slow)));
        let comparison = Comparison::new(&[a], &[b], 0.01);
        let first = &comparison.spans[0];
        firsts += u32::from(first.name == format!("span {slow}") && first.change(Measure::Busy) > Some(0));
    }
    assert!(firsts >= 95, "first in {firsts} of 100");
}

#[test]
fn in_two_thousand_calls_a_span_that_is_five_percent_slower_is_significant() {
    let (mut found, mut others) = (0, 0);
    for seed in 0..20 {
        let mut noise = Noise(seed << 32);
        let side = |noise: &mut Noise, factor| {
            let slow = SpanSummary::of_durations("slow", &noise.durations(2000, 0.3, factor));
            let same = SpanSummary::of_durations("same", &noise.durations(2000, 0.3, 1.0));
            [summary(vec![slow, same])]
        };
        let comparison = Comparison::new(&side(&mut noise, 1.0), &side(&mut noise, 1.05), 0.01);
        let is_found =
            |name| comparison.spans.iter().any(|it| it.name == name && it.is_significant(0.01) == Some(true));
        found += u32::from(is_found("slow"));
        others += u32::from(is_found("same"));
    }
    assert!(found >= 19 && others == 0, "found {found} of 20, and {others} false alarms");
}

#[test]
fn enough_captures_on_each_side_are_compared_by_their_medians() {
    let mut noise = Noise(3);
    // Each capture has a level of its own, as runs on other days do.
    let mut side = |factor: f64| -> Vec<Summary> {
        (0..6)
            .map(|_| {
                let level = factor * (0.02 * noise.normal()).exp();
                summary(vec![SpanSummary::of_durations("x", &noise.durations(100, 0.5, level))])
            })
            .collect()
    };
    let (a, same, slower) = (side(1.0), side(1.0), side(1.3));
    assert!(!has_alarm(&Comparison::new(&a, &same, 0.01)));
    let found = Comparison::new(&a, &slower, 0.01);
    assert!(has_alarm(&found));
    // Of 924 ways to choose six captures, two are as far apart.
    assert!((found.spans[0].p_value.unwrap() - 2.0 / 924.0).abs() < 1e-12, "{:?}", found.spans[0].p_value);
    assert_eq!(found.spans[0].captures, [6, 6]);
}

#[test]
fn a_change_of_instructions_is_the_exact_difference_and_comes_first() {
    let a = [summary(vec![counted("loop", &[10_000; 50]), counted("other", &[7, 9])])];
    let b = [summary(vec![counted("loop", &[10_001; 50]), counted("other", &[9, 7])])];
    let comparison = Comparison::new(&a, &b, 0.01);
    let first = &comparison.spans[0];
    assert_eq!((first.name.as_str(), first.change(Measure::Instructions)), ("loop", Some(50)));
    assert_eq!(first.change_per_call(Measure::Instructions), Some(1.0));
    assert_eq!(first.relative_change(Measure::Instructions), Some(0.0001));
    assert_eq!(comparison.spans[1].change(Measure::Instructions), Some(0));
    assert_eq!((first.change(Measure::MinInstructions), first.change(Measure::CountedSpans)), (Some(1), Some(0)));
    let exceeded = |text: &str| comparison.check_limits(&[text.parse().unwrap()], false).unwrap().exceeded.len();
    assert_eq!([exceeded("instructions(loop)>+49"), exceeded("instructions(loop)>+50")], [1, 0]);
    assert_eq!([exceeded("instructions(loop)>=+0.01%"), exceeded("instructions(loop)>+0.01%")], [1, 0]);
    assert_eq!([exceeded("instructions(*)!=0"), exceeded("instructions(shop::*)!=0")], [1, 1]);
}

#[test]
fn several_captures_of_a_side_have_the_medians_of_their_figures() {
    let capture = |instructions: u64| summary(vec![counted("x", &[instructions; 2])]);
    let a = [capture(100), capture(108), capture(100_000)];
    let b = [capture(100), summary(vec![])];
    let comparison = Comparison::new(&a, &b, 0.01);
    let x = &comparison.spans[0];
    assert_eq!((x.values(Measure::Instructions), x.captures), (Some((216, 200)), [3, 1]));
}

#[test]
fn new_and_gone_spans_have_a_side_without_figures_and_count_as_0() {
    let a = [summary(vec![counted("gone", &[40; 3]), counted("kept", &[8])])];
    let b = [summary(vec![counted("kept", &[8]), counted("new", &[50; 3])])];
    let comparison = Comparison::new(&a, &b, 0.01);
    let names: Vec<_> = comparison.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["new", "gone", "kept"]);
    let [new, gone, kept] = &comparison.spans[..] else { panic!("{names:?}") };
    assert_eq!((new.a, new.change(Measure::Instructions), new.relative_change(Measure::Busy)), (None, Some(150), None));
    assert_eq!((gone.b, gone.change(Measure::Count), gone.p_value), (None, Some(-3), None));
    assert_eq!((kept.p_value, kept.is_significant(0.01)), (None, None));
    let exceeded = |text: &str| comparison.check_limits(&[text.parse().unwrap()], false).unwrap().exceeded.len();
    assert_eq!([exceeded("p99(new)>+1000%"), exceeded("count(gone)<-99%"), exceeded("count(*)!=0")], [1, 1, 2]);
}

#[test]
fn a_limit_that_cannot_be_checked_is_an_error() {
    let a = [summary(vec![counted("x", &[40; 3]), SpanSummary::of_durations("task", &[5])])];
    let b = [summary(vec![counted("x", &[40; 3]), SpanSummary::of_durations("task", &[5])])];
    let comparison = Comparison::new(&a, &b, 0.01);
    let check = |text: &str| comparison.check_limits(&[text.parse().unwrap()], false);
    assert!(matches!(check("busy(y)>0"), Err(LimitError::NoSuchSpan { .. })));
    assert!(matches!(check("instructions(task)>0"), Err(LimitError::NotCounted { .. })));
    assert_eq!(check("instructions(*)>0"), Ok(LimitResults::default()));
    assert!(check("busy(y)>0").unwrap_err().to_string().contains("shop::task, shop::x"));
}

#[test]
fn a_limit_of_a_time_of_threads_needs_sides_that_have_measured_it() {
    let side = |sleep_nanos: Option<u64>| {
        let mut span = SpanSummary::of_durations("x", &[400; 2]);
        span.times = sleep_nanos.map(|sleep_nanos| {
            let mut times = TimeSummary::default();
            (times.cpu_nanos, times.sleep_nanos) = (800 - sleep_nanos, sleep_nanos);
            times
        });
        [summary(vec![span])]
    };
    let check =
        |a, b, limit: &str| Comparison::new(&side(a), &side(b), 0.01).check_limits(&[limit.parse().unwrap()], false);
    let exceeded = |limit| check(Some(100), Some(300), limit).unwrap().exceeded.len();
    assert_eq!(["sleep(x)>+199ns", "sleep(x)>+200ns", "cpu(x)>0", "queue(x)!=0"].map(exceeded), [1, 0, 0, 0]);
    let error = check(Some(100), None, "sleep(x)>0").unwrap_err();
    assert!(error.to_string().contains("was not measured on both sides"), "{error}");
}

fn with_open(mut span: SpanSummary, open: u64) -> SpanSummary {
    span.open = open;
    span
}

/// Returns how many changes a limit forbids, and how many it cannot judge.
fn checked(comparison: &Comparison, limit: &str) -> (usize, usize) {
    let results = comparison.check_limits(&[limit.parse().unwrap()], false).unwrap();
    (results.exceeded.len(), results.incomplete.len())
}

#[test]
fn a_limit_on_a_span_that_a_side_has_not_whole_cannot_be_judged() {
    let closed = |name: &str, calls: usize| {
        let mut span = counted(name, &vec![40; calls]);
        span.times = Some(TimeSummary::default());
        span.allocated = Some(AllocationSummary::default());
        span
    };
    let hanging = |name: &str| {
        let mut span = SpanSummary::default();
        (span.name, span.target, span.open) = (name.into(), "shop".into(), 1);
        span
    };
    let a = [summary(vec![closed("server", 1), closed("plain", 21), closed("gone", 3)])];
    let b = [summary(vec![hanging("server"), with_open(closed("plain", 20), 1)])];
    for (a, b) in [(&a, &b), (&b, &a)] {
        let comparison = Comparison::new(a, b, 0.01);
        for measure in Measure::ALL.map(Measure::name) {
            for limit in [format!("{measure}(server)>+0%"), format!("{measure}(server)<-1%")] {
                assert_eq!(checked(&comparison, &limit), (0, 1), "{limit}");
            }
            // Percentiles of many durations hardly change with one more.
            let expected = (0, usize::from(!["p50", "p90", "p99"].contains(&measure)));
            assert_eq!(checked(&comparison, &format!("{measure}(plain)>+0.5%")), expected, "{measure}");
        }
        // A span that does not occur has 0.
        assert_eq!([checked(&comparison, "count(gone)!=0"), checked(&comparison, "count(*)!=0")], [(1, 0), (1, 2)]);
        let server = comparison.spans.iter().find(|span| span.name == "server").unwrap();
        assert_eq!((server.change(Measure::Max), server.relative_change(Measure::Max)), (None, None));
    }
    let comparison = Comparison::new(&a, &b, 0.01);
    let results = comparison.check_limits(&["max(server)>+0%".parse().unwrap()], true).unwrap();
    let why = "1 span of B not counted: open at the end, never entered, or not seen whole";
    assert_eq!(results.incomplete[0].to_string(), format!("max(server)>+0%: shop::server: {why}"));
    let json = serde_json::to_value(comparison.answer(&results)).unwrap();
    assert_eq!((&json["incomplete"][0]["name"], &json["incomplete"][0]["reason"]), (&"server".into(), &why.into()));
    let note = comparison.not_whole_note().unwrap();
    assert!(["shop::server (1 in B)", "shop::plain (1 in B)"].iter().all(|span| note.contains(span)), "{note}");
}

#[test]
fn a_new_span_of_which_none_is_whole_is_compared_unless_both_sides_have_it_so() {
    let span = |name: &str, open: u64| {
        let mut span = SpanSummary::default();
        (span.name, span.target, span.open) = (name.into(), "shop".into(), open);
        span
    };
    let a = [summary(vec![span("loop", 1), counted("x", &[40; 3])])];
    let b = [summary(vec![span("loop", 1), counted("x", &[40; 3]), span("hangs", 2)])];
    for (sides, words) in [([&a, &b], "none whole in B"), ([&b, &a], "none whole in A")] {
        let comparison = Comparison::new(sides[0], sides[1], 0.01);
        let names: Vec<_> = comparison.spans.iter().map(|span| (&*span.name, span.one_sided())).collect();
        assert_eq!(names, [("hangs", Some(words)), ("x", None)]);
        assert_eq!([checked(&comparison, "max(*)>+0%"), checked(&comparison, "max(hangs)<0")], [(0, 1), (0, 1)]);
    }
}

#[test]
fn a_limit_on_a_side_that_lacks_events_cannot_be_judged() {
    let span = |calls: usize| counted("x", &vec![40; calls]);
    let mut some_not_entered = span(3);
    some_not_entered.count = 4;
    let comparison = Comparison::new(&[summary(vec![span(4)])], &[summary(vec![some_not_entered])], 0.01);
    let check = |limit| checked(&comparison, limit);
    assert_eq!([check("instructions(*)>0"), check("count(x)!=0")], [(0, 1), (0, 0)]);
    let mut lossy = summary(vec![span(3)]);
    lossy.lost = 1;
    let mut comparison = Comparison::new(&[summary(vec![span(4)])], &[lossy], 0.01);
    let check = |limit| checked(&comparison, limit);
    assert_eq!([check("instructions(x)>0"), check("count(x)!=0")], [(0, 1), (1, 0)]);
    comparison.has_different_filters = true;
    assert_eq!(checked(&comparison, "count(*)>+1000%"), (0, 1));
}

#[test]
fn a_limit_of_a_time_may_ask_for_significance() {
    let mut noise = Noise(5);
    let a = [summary(vec![SpanSummary::of_durations("x", &noise.durations(400, 0.0, 1.0))])];
    let equal = [summary(vec![SpanSummary::of_durations("x", &noise.durations(404, 0.0, 1.0))])];
    let slower = [summary(vec![SpanSummary::of_durations("x", &noise.durations(400, 0.0, 1.2))])];
    let limits: Vec<ChangeLimit> = ["total(x)!=0", "count(x)!=0"].map(|text| text.parse().unwrap()).into();
    let count = |b: &[Summary], only| Comparison::new(&a, b, 0.01).check_limits(&limits, only).unwrap().exceeded.len();
    assert_eq!([count(&equal, false), count(&equal, true)], [2, 1]);
    assert_eq!([count(&slower, false), count(&slower, true)], [1, 1]);
}

#[test]
fn amounts_are_compared_in_whole_numbers() {
    let forbids = |text: &str, from, to| text.parse::<ChangeLimit>().unwrap().forbids(from, to);
    assert!(!forbids("instructions(x)>+0.5%", 200_000, 201_000) && forbids("instructions(x)>+0.5%", 200_000, 201_001));
    assert!(forbids("count(x)>+1000000000%", 0, 1) && !forbids("count(x)>+5%", 0, 0));
    assert!(forbids("count(x)<-10%", 100, 89) && !forbids("count(x)<-10%", 100, 90));
    assert!(forbids("busy(x)>=+2ms", 0, 2_000_000) && !forbids("busy(x)>+2ms", 0, 2_000_000));
    assert!(forbids("total(x)>0", 0, u64::MAX) && forbids("total(x)<-100ns", u64::MAX, 0));
}

#[test]
fn faults_of_limits_point_at_their_column() {
    let faults = [
        "",
        "speed(x)>+5%",
        "busy",
        "busy x",
        "busy()>+5%",
        "busy(x",
        "busy(x)",
        "busy(x)+5%",
        "busy(x)>5%",
        "busy(x)>+5",
        "busy(x)>+5 %",
        "busy(x)>+-5%",
        "count(x)>+5ms",
        "count(x)>+0.5",
        "count(x)>+0.0000005%",
        "count(größe)>++5%",
        "count(x)>+5% or busy(x)>+5%",
        "p99(\"x)>+5%",
    ];
    let shown: Vec<String> = faults.iter().map(|text| text.parse::<ChangeLimit>().unwrap_err().to_string()).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
    let long: Result<ChangeLimit, ConditionError> = format!("count({})>0", "x".repeat(5000)).parse();
    assert!(long.is_err());
}

proptest! {
    #[test]
    fn what_a_limit_prints_is_the_same_limit(
        measure in 0..Measure::ALL.len(),
        span in "[a-zä:*() \"\\\\]{1,8}",
        compare in prop_oneof![Just("="), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")],
        sign in prop_oneof![Just('+'), Just('-')],
        number in 0_u32..2_000_000,
        decimals in 0_u32..1000,
        is_relative: bool,
    ) {
        let measure = Measure::ALL[measure];
        let span = span.replace('\\', "\\\\").replace('"', "\\\"");
        let amount = match (is_relative, measure.is_time()) {
            (true, _) => format!("{number}.{decimals}%"),
            (false, true) => format!("{number}us"),
            (false, false) => number.to_string(),
        };
        let text = format!("{} ( \"{span}\" ) {compare} {sign}{amount}", measure.name());
        let limit: ChangeLimit = text.parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let again: ChangeLimit = limit.to_string().parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        prop_assert_eq!(&again, &limit, "{}", limit);
    }

    #[test]
    fn any_text_is_a_limit_or_an_error(text in "(busy|count|p99)?\\(?[a-z*:]{0,3}\\)?[<>=!]{0,2}[+-]?[0-9.]{0,9}[%a-z ]{0,3}") {
        if let Ok(limit) = text.parse::<ChangeLimit>() {
            prop_assert_eq!(&limit.to_string().parse::<ChangeLimit>().unwrap(), &limit);
        }
    }
}
