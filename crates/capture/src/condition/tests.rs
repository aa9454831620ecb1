use super::node::{DEPTH_MAX, TEXT_BYTES_MAX};
use super::*;
use eventring::schema::perf::CallSiteLevel;
use proptest::prelude::*;

/// A span, log record or typed event of a test.
#[derive(Default)]
struct Happened {
    spans: Vec<&'static str>,
    event: Option<&'static str>,
    level: Option<CallSiteLevel>,
    closed_after: Option<Duration>,
    open: Option<Duration>,
    fields: Vec<(&'static str, Operand<'static>)>,
    lost: Vec<&'static str>,
    is_death: bool,
    rate: Option<f64>,
}

impl Subject for Happened {
    fn is_death(&self) -> bool {
        self.is_death
    }

    fn is_unnamed(&self) -> bool {
        self.spans.is_empty() && self.open.is_some()
    }

    fn any_span_name(&self, test: &mut dyn FnMut(&str, &str) -> bool) -> bool {
        self.spans.iter().any(|name| test("shop", name))
    }

    fn event_name(&self, take: &mut dyn FnMut(&str)) {
        self.event.into_iter().for_each(take);
    }

    fn level(&self) -> Option<CallSiteLevel> {
        self.level
    }

    fn times_nanos(&self, part: TimesPart) -> Option<u64> {
        self.closed_after_nanos().map(|nanos| match part {
            TimesPart::Cpu => nanos / 2,
            TimesPart::Queue => nanos / 4,
            TimesPart::Sleep => nanos - nanos / 2 - nanos / 4,
        })
    }

    fn closed_after_nanos(&self) -> Option<u64> {
        self.closed_after.map(|time| time.as_nanos() as u64)
    }

    fn open_nanos(&self) -> Option<u64> {
        self.open.map(|time| time.as_nanos() as u64)
    }

    fn field(&self, path: &str, take: &mut dyn FnMut(Operand<'_>)) {
        self.fields.iter().filter(|(name, _)| *name == path).for_each(|(_, value)| take(*value));
    }

    fn may_have_lost(&self, path: &str) -> bool {
        self.lost.contains(&path)
    }

    fn per_second(&self, of: &RateOf, window: Duration) -> Option<f64> {
        let is_asked = *of == RateOf::Spans(NamePattern::new("request")) && window == Duration::from_secs(10);
        self.rate.filter(|_| is_asked)
    }

    fn quantile_nanos(&self, _: &RateOf, window: Duration, part: f64) -> Option<u64> {
        Some((part * 1e9 * window.as_secs_f64()) as u64)
    }
}

fn holds(text: &str, subject: &Happened) -> bool {
    text.parse::<Condition>().unwrap_or_else(|error| panic!("{text}:\n{error}")).holds(subject)
}

fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn a_slow_span_of_a_name_fulfils_the_condition_and_others_do_not() {
    let span = |name, closed_after| Happened { spans: vec![name], closed_after, ..Happened::default() };
    assert!(holds("span=db.* dur>50ms", &span("db.query", millis(51))));
    assert!(!holds("span=db.* dur>50ms", &span("db.query", millis(50))));
    assert!(!holds("span=db.* dur>50ms", &span("http", millis(51))));
    assert!(!holds("span=db.* dur>50ms", &span("db.query", None)));
    assert!(holds("span!=db.* and dur>=50ms", &span("http", millis(50))));
    assert!(holds("not (span=db.* or span=http) and dur<1s", &span("other", millis(50))));
    assert!(holds("open>2s", &Happened { open: millis(2001), ..span("x", None) }));
    assert!(!holds("open>2s", &span("x", millis(3000))));
}

#[test]
fn what_threads_did_in_a_closed_span_fulfils_the_condition() {
    let span = |closed_after| Happened { spans: vec!["query"], closed_after, ..Happened::default() };
    // Half of it is cpu, and a quarter each is queue and sleep.
    assert!(holds("cpu>19ms queue>=10ms sleep<11ms", &span(millis(40))));
    assert!(holds("span=query cpu=20ms", &span(millis(40))));
    assert!(!holds("cpu>20ms", &span(millis(40))));
    assert!(!holds("cpu>=0s", &Happened { open: millis(40), ..span(None) }));
    // A search takes the words as names of fields.
    assert!(Condition::for_search("queue=orders").is_ok());
    let refused = Condition::for_search("queue>5 or span=x").unwrap();
    assert_eq!(refused.field_paths(), ["queue".to_owned()].into());
    assert!(Condition::for_events("queue>5ms").unwrap().asks_for_durations());
}

#[test]
fn a_span_is_found_by_its_name_with_and_without_its_target() {
    let query = Happened { spans: vec!["query", "request"], closed_after: millis(1), ..Happened::default() };
    for text in ["span=query", "span=shop::query", "span=shop::*", "span=sh*::q*", "span=shop::request", "span!=web::*"]
    {
        assert!(holds(&format!("{text} dur>0s"), &query), "{text}");
    }
    for text in ["span=web::query", "span=shop*", "span=::query", "span!=shop::query", "span!=sh*::*"] {
        assert!(!holds(&format!("{text} dur>0s"), &query), "{text}");
    }
}

#[test]
fn only_spans_fulfil_what_asks_for_one_name_of_them_or_for_a_time() {
    for (text, only_spans) in [
        ("span=a", true),
        ("span=a or span=b", true),
        ("span=a dur>1ms", true),
        ("sleep>1ms", true),
        ("span=a span=b dur>1ms", true),
        ("span=a (span=b or dur>1ms)", false),
        ("span=a span=b", false),
        ("(span=a span=b) or span=c", false),
        ("dur>1ms not span=a", false),
    ] {
        assert_eq!(text.parse::<Condition>().unwrap().is_about_spans_alone(), only_spans, "{text}");
    }
}

#[test]
fn two_negations_are_none_and_the_negation_of_exclusions_names_something() {
    let span = |name| Happened { spans: vec![name], closed_after: millis(1), ..Happened::default() };
    for text in ["not not span=a", "not (not span=a)", "not (not span=a or not dur<5ms)", "not not not not span=a"] {
        assert!(holds(text, &span("a")) && !holds(text, &span("b")), "{text}");
    }
    for text in ["not not not span=a", "not (not span=a and not dur>5ms) or not death", "not span!=a"] {
        let error = text.parse::<Condition>().unwrap_err().to_string();
        assert!(error.contains("only says what shall not be"), "{text}: {error}");
    }
}

#[test]
fn a_name_that_is_not_known_is_no_other_name() {
    let open = |spans| Happened { spans, open: Some(Duration::from_secs(3)), ..Happened::default() };
    for text in ["open>2s not span=a", "open>2s span!=a", "open>2s not target=shop", "open>2s span=*"] {
        assert!(!holds(text, &open(vec![])), "{text}");
    }
    assert!(holds("open>2s not span=a", &open(vec!["b"])) && holds("open>2s", &open(vec![])));
}

#[test]
fn a_lost_field_makes_unknown_only_what_depends_on_it() {
    let (fields, lost) = (vec![("size", Operand::Bool(true))], vec!["kind", "log.target"]);
    let event = Happened { event: Some("BLOB"), fields, lost, ..Happened::default() };
    let cases = [
        (Truth::Indeterminate, &["field.kind=1", "field.kind!=1", "not field.kind=1", "event=BLOB field.kind=1"][..]),
        (Truth::Indeterminate, &["event=OTHER or field.kind=1", "not (event=BLOB field.kind=1)"]),
        (Truth::Indeterminate, &["target=shop", "target!=shop"]),
        (Truth::No, &["event=OTHER field.kind=1", "field.kind=1 event=OTHER", "not (event=BLOB or field.kind=1)"]),
        (Truth::No, &["field.other=1", "field.size=false"]),
        (Truth::Yes, &["event=BLOB or field.kind=1", "field.kind=1 or event=BLOB", "not (event=OTHER field.kind=1)"]),
        (Truth::Yes, &["field.size=true", "not field.other=1"]),
    ];
    for (truth, text) in cases.into_iter().flat_map(|(truth, texts)| texts.iter().map(move |text| (truth, *text))) {
        let condition = Condition::for_events(text).unwrap();
        assert_eq!((condition.truth(&event), condition.holds(&event)), (truth, truth == Truth::Yes), "{text}");
    }
}

#[test]
fn records_are_found_by_level_name_field_and_any_of_their_spans() {
    let record = |level| Happened {
        spans: vec!["query", "request"],
        event: Some("ORDER_REJECTED"),
        level: Some(level),
        fields: vec![
            ("code", Operand::Integer(7_u64.into())),
            ("user", Operand::Text("x")),
            ("share", Operand::Float(0.5)),
            ("is_new", Operand::Bool(true)),
            ("size", Operand::Text("1000")),
            ("lines", Operand::Text("a\nb\t\"c\"")),
            ("ratio", Operand::Float(f64::NAN)),
        ],
        ..Happened::default()
    };
    for text in [
        "level>=ERROR",
        "level>=warn",
        "event=ORDER_REJECTED field.code=7",
        "field.user=\"x\"",
        "field.user=x",
        "field.user=*",
        "field.user>=\"w\"",
        "field.share<1",
        "field.share=0.5",
        "field.code>6.5",
        "field.code!=8",
        "field.is_new=true",
        "field.size>999",
        "span=request level=ERROR",
        "event!=OTHER level=ERROR",
        "field.user!=5",
        r#"field.lines="a\nb\t\"c\"""#,
        "field.ratio=NaN",
    ] {
        assert!(holds(text, &record(CallSiteLevel::Error)), "{text}");
    }
    for text in
        ["field.other=7", "field.code=\"7\"", "field.user<\"x\"", "level<ERROR", "span!=request level=ERROR", "death"]
    {
        assert!(!holds(text, &record(CallSiteLevel::Error)), "{text}");
    }
    assert!(!holds("level>=ERROR", &record(CallSiteLevel::Warn)));
    assert!(holds("level<ERROR", &record(CallSiteLevel::Warn)));
}

#[test]
fn what_has_no_level_fulfils_no_condition_about_levels() {
    let event = Happened { level: Some(CallSiteLevel::None), ..Happened::default() };
    for text in ["level>=TRACE", "level<=ERROR", "level<INFO", "level=INFO", "level!=INFO"] {
        assert!(!holds(text, &event), "{text}");
    }
}

#[test]
fn a_field_of_any_name_is_asked_for_in_quotation_marks() {
    let fields = ["content-type", "quoted key", "header.x-id", "span", "a\"b\\c"];
    let fields = fields.map(|name| (name, Operand::Text("x"))).to_vec();
    let record = Happened { fields, ..Happened::default() };
    for text in [
        r#"field."content-type"=x"#,
        r#"field."quoted key" = x"#,
        r#"field.header."x-id"=x"#,
        r#"field."header.x-id"=x"#,
        r#"field."a\"b\\c"=x"#,
    ] {
        assert!(holds(text, &record), "{text}");
        let search = text.strip_prefix("field.").unwrap();
        for text in [text, search] {
            assert!(Condition::for_search(text).unwrap().holds(&record), "{text}");
        }
    }
    // What is quoted is a field, also if it looks like a word of the language.
    assert!(Condition::for_search("\"span\"=x").unwrap().holds(&record));
    assert!(!Condition::for_search("span=x").unwrap().holds(&record));
    assert!("\"span\"=x".parse::<Condition>().is_err() && "field.\"\"=x".parse::<Condition>().is_err());
    let condition: Condition = r#"field."header".x<1 or field.header."x-id"=x"#.parse().unwrap();
    assert_eq!(condition.to_string(), r#"field.header.x<1 or field."header.x-id"=x"#);
    let error = "field.content-type=x".parse::<Condition>().unwrap_err().to_string();
    assert!(error.contains("field.\"content-type\""), "{error}");
}

#[test]
fn numbers_are_equal_if_they_are_the_same_decimal_number_however_they_are_recorded() {
    let large = (1_u64 << 53) + 1;
    let integer = |number: u64| Operand::Integer(number.into());
    let texts = ["9007199254740993", "9007199254740993.0", "9007199254740993e0"].map(Operand::Text);
    let (exact, near) =
        ([&[integer(large)][..], &texts].concat(), [integer(large - 1), Operand::Float(9.007199254740992e15)]);
    let cases: [(&[&str], &[Operand<'_>], &[Operand<'_>]); 10] = [
        (&["9007199254740993", "9007199254740993.0", "900719925474099.3e1"], &exact, &near),
        (
            &["1", "1.0", "+1", "01", "10e-1", "1e0"],
            &[
                integer(1),
                Operand::Float(1.0),
                Operand::Float32(1.0),
                Operand::Text("1"),
                Operand::Text("1.0"),
                Operand::Text("+1e0"),
            ],
            &[
                Operand::Bool(true),
                Operand::Text("1x"),
                Operand::Text("true"),
                Operand::Text(" 1"),
                Operand::Text("0x1"),
                integer(10),
            ],
        ),
        // As they are shown.
        (
            &["0.1", ".1", "1e-1"],
            &[Operand::Float(0.1), Operand::Float32(0.1), Operand::Text("0.10")],
            &[Operand::Float(0.1_f32.into())],
        ),
        (&["16777217"], &[integer(16_777_217)], &[Operand::Float32(16_777_216.0)]),
        (&["30000000000", "3e10"], &[Operand::Float32(3e10), integer(30_000_000_000)], &[integer(30_000_001_024)]),
        (
            &["0", "-0", "0.00"],
            &[integer(0), Operand::Float(-0.0), Operand::Text("-0")],
            &[Operand::Text("1e-400"), Operand::Text("")],
        ),
        (
            &["1e400"],
            &[Operand::Text("10e399")],
            &[Operand::Float(f64::INFINITY), Operand::Text("inf"), Operand::Text("1e401")],
        ),
        // A quoted number is a text, and so is a quoted name of what is no number.
        (&["\"1\""], &[Operand::Text("1")], &[Operand::Text("1.0"), integer(1)]),
        (&["\"inf\"", "\"i*f\""], &[Operand::Text("inf")], &[Operand::Float(f64::INFINITY), Operand::Text("-inf")]),
        (&["\"NaN\""], &[Operand::Text("NaN")], &[Operand::Float(f64::NAN), Operand::Float32(f32::NAN)]),
    ];
    for (wanted, equal, others) in cases {
        for (wanted, (found, is_equal)) in wanted.iter().flat_map(|wanted| {
            let (equal, others) =
                (equal.iter().zip([true].into_iter().cycle()), others.iter().zip([false].into_iter().cycle()));
            equal.chain(others).map(move |found| (wanted, found))
        }) {
            let event = Happened { fields: vec![("n", *found)], ..Happened::default() };
            let is = |compare: &str| holds(&format!("field.n{compare}{wanted}"), &event);
            assert_eq!((is("="), is("!=")), (is_equal, !is_equal), "{wanted} {found:?}");
            if !wanted.starts_with('"') {
                assert!(!is_equal || (is("<=") && is(">=") && !is("<") && !is(">")), "{wanted} {found:?}");
            }
        }
    }
    let above = |found: Operand<'static>, wanted: &str| {
        let event = Happened { fields: vec![("n", found)], ..Happened::default() };
        let [more, less] = [">", "<"].map(|sign| holds(&format!("field.n{sign}{wanted}"), &event));
        assert_ne!(more, less, "{wanted} {found:?}");
        more
    };
    assert!(
        above(integer(large), "9007199254740992.0") && !above(Operand::Float(9.007199254740992e15), "9007199254740993")
    );
    assert!(above(Operand::Float(f64::INFINITY), "1e999") && !above(Operand::Text("-inf"), "-1e999"));
    assert!(above(Operand::Text("-1.5"), "-15.1e-1"));
    let nan = Happened { fields: vec![("n", Operand::Float(f64::NAN))], ..Happened::default() };
    assert!(["=1", "<1", ">1"].iter().all(|is| !holds(&format!("field.n{is}"), &nan)) && holds("field.n!=1", &nan));
}

#[test]
fn a_name_is_that_of_all_fields_that_the_program_calls_so() {
    let event = |fields: &[(&'static str, u64)]| Happened {
        fields: fields.iter().map(|(name, value)| (*name, Operand::Integer((*value).into()))).collect(),
        ..Happened::default()
    };
    let both = event(&[("x", 1), ("x", 2)]);
    for text in ["field.x=1", "field.x=2", "field.x>1", "field.x<2", "field.x!=3"] {
        assert!(holds(text, &both), "{text}");
    }
    for text in ["field.x!=1", "field.x!=2", "field.x=3"] {
        assert!(!holds(text, &both), "{text}");
    }
}

#[test]
fn a_search_refuses_what_no_event_says_by_itself() {
    for text in ["span=a level>=ERROR", "event=x span!=a", "(level>=ERROR or event=x) x=1 span=a"] {
        let error = Condition::for_search(text).unwrap_err().to_string();
        assert!(error.contains("never hold together") && error.contains("`export --where`"), "{text}: {error}");
        assert!(Condition::for_events(&text.replace(" x=", " field.x=")).is_ok(), "{text}");
    }
    assert!(
        ["span=a x=1", "span=a or level>=ERROR", "span=a target=b"].iter().all(|it| Condition::for_search(it).is_ok())
    );
}

#[test]
fn rates_and_percentiles_hold_only_if_their_window_is_known() {
    let at = |rate| Happened { rate, ..Happened::default() };
    assert!(holds("rate(span=request)<10/s", &at(Some(9.9))));
    assert!(!holds("rate(span=request)<10/s", &at(Some(10.0))));
    assert!(!holds("rate(span=request)<10/s", &at(None)));
    assert!(holds("rate(span=request,10s)<600/m", &at(Some(9.9))));
    assert!(!holds("rate(span=request,5s)<10/s", &at(Some(1.0))));
    assert!(holds("p50(span=request,2s)>999ms", &at(None)) && !holds("p50(span=request,2s)>1s", &at(None)));
    let condition: Condition = "p99.9(span=request) > 20ms and rate(event=tick,1m) > 5/h".parse().unwrap();
    assert_eq!(condition.rates().iter().map(|(_, window)| window.as_secs()).collect::<Vec<_>>(), [10, 60]);
}

#[test]
fn the_ages_of_open_spans_are_known() {
    let ages = |text: &str| -> Vec<u128> {
        text.parse::<Condition>().unwrap().open_ages().iter().map(Duration::as_nanos).collect()
    };
    assert_eq!(ages("open>2ms or span=x open>=500us"), [500_000, 2_000_001]);
    assert!(ages("dur>2s").is_empty());
}

#[test]
fn patterns_stand_for_whole_names() {
    let fits = |pattern: &str, name: &str| NamePattern::new(pattern).fits(name);
    assert!(fits("db.*", "db.query") && fits("*", "") && fits("a*b*c", "a1b2c") && fits("a*a", "aa") && fits("", ""));
    assert!(!fits("a*a", "a") && !fits("db", "db.query") && !fits("a*b*c", "a1c2b") && !fits("*x", "xy"));
}

#[test]
fn faults_point_at_their_column() {
    let faults = [
        "",
        "span",
        "span=",
        "span=a and",
        "span=a or or span=b",
        "(span=a",
        "span=a)",
        "dur>soon",
        "dur 5ms",
        "dur>-5ms",
        "open<2s",
        "level>=LOUD",
        "level>=3",
        "rate(span=a)<10",
        "rate(dur=a)<10/s",
        "rate(event=7)>1/s",
        "rate(span=a,10ms)<10/s",
        "p101(span=a)>1s",
        "p99(event=a)>1s",
        "p99 span=a>1s",
        "field.=7",
        "field.a>red",
        "span==a",
        "field.a==7",
        "user=7",
        "dur>1s open>2s",
        "not span=a",
        "span!=a or level>=ERROR",
        "span=\"a",
        "größe=1 dur>x",
        "span=a && span=b",
        "span=a || !span=b",
        "!span=b",
        "span=a OR span=b",
    ];
    let shown: Vec<String> = faults.iter().map(|text| text.parse::<Condition>().unwrap_err().to_string()).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
    let nested = "(".repeat(100) + "span=a" + &")".repeat(100);
    assert_eq!(nested.parse::<Condition>().unwrap_err().column(), DEPTH_MAX + 1);
    assert!("x".repeat(TEXT_BYTES_MAX + 1).parse::<Condition>().is_err());
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_.*]{1,6}", "[ -~äµ]{0,6}", Just("true".to_owned()), Just("-7".to_owned()), Just("1e3".to_owned())]
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn terms() -> impl Strategy<Value = String> {
    let time = || (1_u64..100_000, prop_oneof![Just("ns"), Just("us"), Just("ms"), Just("s")]);
    let compare = || prop_oneof![Just("="), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")];
    prop_oneof![
        (texts(), prop_oneof![Just("span="), Just("event!="), Just("target="), Just("thread=")])
            .prop_map(|(text, start)| format!("{start}{}", quoted(&text))),
        (prop_oneof![Just("dur"), Just("cpu"), Just("queue"), Just("sleep")], compare(), time())
            .prop_map(|(name, compare, (number, unit))| format!("{name}{compare}{number}{unit}")),
        (compare(), "[a-z]{1,3}(\\.[a-z]{1,3})?", texts())
            .prop_map(|(compare, path, text)| format!("field.{path} {compare} {}", quoted(&text))),
        (compare(), "[ -~äµ\n]{1,6}", 0_u64..9)
            .prop_map(|(compare, path, number)| format!("field.{} {compare} {number}", quoted(&path))),
        (compare(), "[+-]?[0-9]{1,40}(\\.[0-9]{0,9})?(e[+-]?[0-9]{1,4})?")
            .prop_map(|(compare, number)| format!("field.n{compare}{number}")),
        (compare(), any::<i64>()).prop_map(|(compare, number)| format!("field.n{compare}{number}")),
        (compare(), any::<f32>()).prop_map(|(compare, number)| format!("field.n{compare}{}", number.clamp(-1e9, 1e9))),
        (compare(), 0_u32..1000, 1_u64..3600)
            .prop_map(|(compare, count, window)| format!("rate(span=x*,{window}s){compare}{count}/m")),
        (compare(), 0_u32..1000, time()).prop_map(|(compare, tenths, (number, unit))| format!(
            "p{}(span=x){compare}{number}{unit}",
            f64::from(tenths) / 10.0
        )),
        Just("death".to_owned()),
        Just("level>=WARN".to_owned()),
    ]
}

fn expressions() -> impl Strategy<Value = String> {
    terms().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" and "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" or "))),
            inner.prop_map(|part| format!("not ({part})")),
        ]
    })
}

proptest! {
    #[test]
    fn what_a_condition_prints_is_the_same_condition(expression in expressions()) {
        let text = expression;
        // NaN is no number.
        if text.contains("NaN") {
            return Ok(());
        }
        let condition: Condition = match text.parse::<Condition>() {
            Ok(condition) => condition,
            Err(error) => {
                let is_senseless = ["never hold", "so it would always hold"].iter().any(|why| error.to_string().contains(why));
                prop_assert!(is_senseless, "{}:\n{}", text, error);
                return Ok(());
            }
        };
        let again: Condition = condition.to_string().parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        prop_assert_eq!(&again, &condition, "{} became {}", text, condition);
    }

    #[test]
    fn any_text_is_a_condition_or_an_error(text in "[a-z=<>!().\"*0-9 ä/,\\\\]{0,40}") {
        if let Ok(condition) = text.parse::<Condition>() {
            prop_assert_eq!(&condition.to_string().parse::<Condition>().unwrap(), &condition);
        }
    }
}
