//! Reports about small captures.

use super::*;
use crate::page::html::escape;
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt};
use eventring_capture::fixtures::CaptureFixture;
use eventring_export::View;
use eventring_stress::chain::Made;

/// A program that calls requests with a query in each of them.
struct Calls {
    program: &'static str,
    count: u64,
    query: &'static str,
    query_nanos: u64,
    /// The instructions of each query, if they are counted.
    instructions: u64,
    lost: u64,
}

const CALLS: Calls = Calls { program: "shop", count: 20, query: "query", query_nanos: 400, instructions: 0, lost: 0 };

/// Makes a capture in which each request takes 1000 ns, and begins 10 µs after the one before.
fn capture(calls: &Calls) -> CaptureFile {
    let mut made = CaptureFixture::of_program(calls.program);
    made.thread(1000, 1, "main");
    made.call_site(1001, 1, CallSiteKind::Span, "request", &[]);
    made.call_site(1002, 2, CallSiteKind::Span, calls.query, &[]);
    let mut instructions = u64::from(calls.instructions > 0);
    for call in 0..calls.count {
        let (begin, request, query) = (10_000 * (call + 1), 2 * call + 1, 2 * call + 2);
        let mut at = |event, nanos, span_id, call_site_id, related| {
            let ext = PerfExt { span_id, call_site_id, related, thread_id: 1, ..PerfExt::default() };
            made.perf(event, begin + nanos, ext, &[]);
        };
        at(PerfEvent::SpanNew, 0, request, 1, 0);
        at(PerfEvent::SpanEnter, 0, request, 1, instructions);
        at(PerfEvent::SpanNew, 100, query, 2, request);
        at(PerfEvent::SpanEnter, 100, query, 2, instructions);
        instructions += calls.instructions;
        at(PerfEvent::SpanExit, 100 + calls.query_nanos, query, 2, instructions);
        at(PerfEvent::SpanClose, 100 + calls.query_nanos, query, 2, 0);
        at(PerfEvent::SpanExit, 1000, request, 1, instructions);
        at(PerfEvent::SpanClose, 1000, request, 1, 0);
    }
    if calls.lost > 0 {
        made.gap(0, calls.lost, GapCause::Overwritten);
    }
    // Both captures end with the same event, whatever they lost.
    made.event(1, 20, 10_000 * (calls.count + 1), [0; 4], b"");
    made.open()
}

/// Returns the page without its style.
fn page(a: &Calls, b: &Calls, basis: Basis) -> String {
    let (a, b) = (capture(a), capture(b));
    let side = |name: &str, capture| ReportSide::read(name.into(), capture, View::Thread.into()).unwrap();
    let report = ComparisonReport::new([side("a.evc", &a), side("b.evc", &b)], 0.01, basis).unwrap();
    let html = report.html();
    let (before, after) = html.split_once("<style>").unwrap();
    format!("{before}{}", after.split_once("</style>").unwrap().1)
}

/// Returns the title of a frame of the flame graph.
fn frame_title<'p>(page: &'p str, name: &str) -> &'p str {
    let (_, graph) = page.split_once("class=\"flame\"").unwrap();
    let (_, title) = graph.split_once(&format!("<title>{name}: ")).unwrap_or_else(|| panic!("{name}: {graph}"));
    title.split_once("</title>").unwrap().0
}

#[test]
fn comparison_of_two_captures() {
    let b = Calls { query: "search", query_nanos: 700, instructions: 0, lost: 7, ..CALLS };
    let page = page(&CALLS, &b, Basis::Second);
    let (_, body) = page.split_once("<body>").unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

#[test]
fn a_capture_that_is_twice_as_long_has_changed_nothing() {
    let b = Calls { count: 41, ..CALLS };
    // The captures last from 1 µs to 210 µs and to 420 µs: 209 µs and 419 µs, and have 20 and 41 calls.
    let page = page(&CALLS, &b, Basis::Second);
    assert_eq!(frame_title(&page, "query"), "A 38.3 ms, B 39.1 ms, +2.26%");
    assert!(page.contains("A lasted 209 µs, B lasted 419 µs") && page.contains("per second"), "{page}");
    let page = self::page(&CALLS, &b, Basis::Call("shop::web::request".into()));
    assert_eq!(frame_title(&page, "query"), "A 400 ns, B 400 ns, 0%");
    assert_eq!(frame_title(&page, "request"), "A 1.00 µs, B 1.00 µs, 0%");
    assert!(page.contains("A has 20 calls, B has 41 calls"), "{page}");
}

#[test]
fn a_frame_says_in_words_and_in_colour_what_has_become_of_it() {
    let slower = page(&CALLS, &Calls { query_nanos: 800, ..CALLS }, Basis::Second);
    assert_eq!(frame_title(&slower, "query"), "A 38.3 ms, B 76.6 ms, +100.0%");
    assert!(slower.contains(">query +100.0%</text>") && slower.contains("<svg class=\"more4\""), "{slower}");
    let faster = page(&CALLS, &Calls { query_nanos: 300, ..CALLS }, Basis::Second);
    assert!(faster.contains(">query -25.0%</text>") && faster.contains("<svg class=\"less3\""), "{faster}");
    let other = page(&CALLS, &Calls { query: "search", ..CALLS }, Basis::Second);
    assert!(other.contains(">query gone</text>") && other.contains(">search new</text>"), "{other}");
    assert!(other.contains("<span class=\"badge\">gone</span>"), "{other}");
    // The width of a frame is the mean of the sides: 400 of 1000 ns on one side, and nothing on the other.
    assert_eq!(other.matches("width=\"20.000%\"").count(), 2, "{other}");
}

#[test]
fn the_spans_whose_self_time_has_changed_most_come_first() {
    let order = |b: &Calls, basis| {
        let page = page(&CALLS, b, basis);
        let (_, table) = page.split_once("<table class=\"changes\">").unwrap();
        let (table, _) = table.split_once("</table>").unwrap();
        let names = table.split("shop::web::</span>").skip(1).map(|row| row.split('<').next().unwrap().to_owned());
        (names.collect::<Vec<_>>(), page.clone())
    };
    // For each call, the self time of the request goes from 600 to 100 ns, and that of the query from 400 to 1000 ns.
    let b = Calls { count: 10, query_nanos: 1000, ..CALLS };
    let (names, page) = order(&b, Basis::Call("request".into()));
    assert_eq!(names, ["query", "request"]);
    assert!(page.contains("The spans whose self time per call of request has changed most come first."), "{page}");
    let b = Calls { query: "search", query_nanos: 900, ..CALLS };
    assert_eq!(order(&b, Basis::Second).0, ["search", "request", "query"]);
}

#[test]
fn captures_of_blocks_are_compared_by_the_figures_of_their_blocks() {
    let blocks = |count: u64, txns: u64| {
        let (mut made, mut events) = (CaptureFixture::new(), Made::default());
        for number in 0..count {
            events.block(number, number as u8, txns);
        }
        for (event, payload) in &events.0 {
            made.event(1, event.event_type, event.record_epoch_nanos, event.content_ext, payload);
        }
        made.open()
    };
    let (a, b) = (blocks(4, 10), blocks(4, 15));
    let side = |name: &str, capture| ReportSide::read(name.into(), capture, View::Thread.into()).unwrap();
    let html = ComparisonReport::new([side("a.evc", &a), side("b.evc", &b)], 0.01, Basis::OwnCall).unwrap().html();
    let (_, section) = html.split_once("<h2>Blocks</h2>").unwrap();
    let row = |name: &str| section.split_once(&format!("<td>{name}</td>")).unwrap().1.split_once("</tr>").unwrap().0;
    assert_eq!(row("blocks"), "<td>4</td><td>4</td><td class=\"\">0%</td>");
    assert_eq!(row("transactions"), "<td>40</td><td>60</td><td class=\"more\">+50.0%</td>");
    assert_eq!(row("gas"), "<td>840,000</td><td>1,260,000</td><td class=\"more\">+50.0%</td>");
    assert!(!page(&CALLS, &CALLS, Basis::Second).contains("<h2>Blocks</h2>"));
}

#[test]
fn a_span_that_one_side_did_not_see_whole_is_not_new() {
    let b = capture(&CALLS);
    let mut made = CaptureFixture::of_program("shop");
    made.thread(1000, 1, "main");
    made.call_site(1001, 1, CallSiteKind::Span, "request", &[]);
    let closed = PerfExt { span_id: 1, call_site_id: 1, thread_id: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanClose, 2000, closed, &[]);
    let a = made.open();
    let side = |name: &str, capture| ReportSide::read(name.into(), capture, View::Thread.into()).unwrap();
    let page = ComparisonReport::new([side("a.evc", &a), side("b.evc", &b)], 0.01, Basis::Second).unwrap().html();
    assert!(page.contains("request<span class=\"badge\">none whole in A</span>"), "{page}");
    assert!(page.contains("query<span class=\"badge\">new</span>"), "{page}");
    assert!(page.contains("<p class=\"cut\">not whole, so in no number: shop::web::request (1 in A)"), "{page}");
}

#[test]
fn the_charts_of_events_of_both_sides_have_one_scale() {
    // The parts of the longer capture are longer, so its largest rate is another one.
    let page = page(&CALLS, &Calls { count: 4000, ..CALLS }, Basis::Second);
    let (_, events) = page.split_once("<h2>Events a second</h2>").unwrap();
    let tops: Vec<&str> =
        events.split("y=\"12.0\" class=\"end\">").skip(1).map(|top| top.split('<').next().unwrap()).collect();
    assert_eq!(tops.len(), 2, "{events}");
    assert_eq!(tops[0], tops[1]);
}

#[test]
fn a_capture_that_is_compared_with_itself_is_named_as_both_sides() {
    let capture = capture(&CALLS);
    let side = |name: &str| ReportSide::read(name.into(), &capture, View::Thread.into()).unwrap();
    let page = |a: &str, b: &str| ComparisonReport::new([side(a), side(b)], 0.01, Basis::Second).unwrap().html();
    assert!(page("a.evc", "a.evc").contains("<p class=\"cut\">A and B are both a.evc.</p>"));
    assert!(!page("a.evc", "b.evc").contains("A and B are both"));
}

#[test]
fn two_builds_of_a_program_have_the_same_stacks_whatever_the_names_of_their_files() {
    let page = page(&CALLS, &Calls { program: "shop-new", ..CALLS }, Basis::Second);
    assert_eq!(frame_title(&page, "query"), "A 38.3 ms, B 38.3 ms, 0%");
}

#[test]
fn instructions_have_a_flame_graph_and_columns_only_if_both_sides_have_them() {
    let counted = Calls { instructions: 500, ..CALLS };
    let both = page(&counted, &Calls { instructions: 600, ..CALLS }, Basis::Call("request".into()));
    let (_, graph) = both.split_once("<h3>Instructions by stack, per call of request</h3>").unwrap();
    assert!(graph.contains("query: A 500 instructions, B 600 instructions, +20.0%"), "{graph}");
    assert!(both.contains("instructions, per call of request</th>"), "{both}");
    let one = page(&counted, &CALLS, Basis::Second);
    assert!(!one.contains("Instructions by stack") && !one.contains("<th class=\"of\" colspan=\"3\">instructions"));
}

#[test]
fn a_side_that_lost_events_says_so_above_everything_else() {
    let page = page(&Calls { lost: 7, ..CALLS }, &CALLS, Basis::Second);
    let (before, _) = page.split_once("<h2>Captures</h2>").unwrap();
    assert!(before.contains("A lost 7 of 171 events, so the numbers of A are too small"), "{before}");
    let (_, changes) = page.split_once("<h2>Changes</h2>").unwrap();
    let (before, _) = changes.split_once("<table").unwrap();
    assert!(
        before.contains("<p class=\"cut\">A lost 7 events, so sure compares only the spans that are left.</p>"),
        "{before}"
    );
    assert!(page.contains("Lost events: 7 overwritten.") && !page.contains("of B are too small"), "{page}");
}

#[test]
fn a_basis_that_a_side_does_not_have_is_an_error_that_names_what_there_is() {
    let (a, b) = (capture(&CALLS), capture(&Calls { query: "search", ..CALLS }));
    let side = |capture| ReportSide::read("a.evc".into(), capture, View::Thread.into()).unwrap();
    let Err(error) = ComparisonReport::new([side(&a), side(&b)], 0.01, Basis::Call("query".into())) else {
        panic!("there is no query in B");
    };
    assert_eq!(
        error.to_string(),
        "capture B has no closed span query, expected one on both sides; it has shop::web::request, shop::web::search"
    );
}

#[test]
fn no_name_of_a_capture_becomes_a_part_of_the_page() {
    const HOSTILE: &str = "</script><script>document.title='ran'</script>{{rings}}\"'><img src=x onerror=alert(1)>";
    let hostile = Calls { program: HOSTILE, query: HOSTILE, ..CALLS };
    let page = page(&hostile, &hostile, Basis::Call(HOSTILE.into()));
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(!page.contains("<img") && page.contains(&escape(HOSTILE)), "{page}");
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-eval"), "{page}");
}
