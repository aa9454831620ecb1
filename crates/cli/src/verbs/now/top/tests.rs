//! Tests of the screen and of the keys.

use super::draw::draw;
use super::list::{ListRow as _, TopList};
use super::model::{TopDetail, TopRing, TopScreen};
use super::names::{NameOrder, TopName};
use super::open_spans::{TopOpen, TopOpenSpans};
use super::stats::{TopKey, TopStats, WINDOWS};
use super::threads::{ThreadOrder, TopInnermost, TopThread};
use super::view::{TopRequest, TopView};
use eventring::tracing::ThreadKey;
use eventring_export::TimeSummary;
use eventring_live::SeriesKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::time::Duration;

fn key(name: &str) -> TopKey {
    TopKey { kind: SeriesKind::Spans, name: name.to_owned(), target: "shop::orders".to_owned() }
}

fn stats(count: u64, self_nanos: u64, p50: u64) -> TopStats {
    let wall_nanos = Some([p50, p50 * 2, p50 * 9, p50 * 31]);
    TopStats { count, per_second: count as f64 / 10.0, self_nanos, self_share: 0.0, times: None, wall_nanos }
}

fn open(id: u64, name: &str, age_nanos: u64, thread: Option<&str>) -> TopOpen {
    TopOpen {
        id,
        name: name.to_owned(),
        target: "shop::orders".to_owned(),
        age_nanos,
        age_max_nanos: None,
        thread: thread.map(str::to_owned),
        is_opened_before_window: id == 1,
        may_have_closed: id == 4,
        pid: 4711,
    }
}

fn thread(id: u32, name: &str, innermost: Option<(&str, u64, &[&str])>) -> TopThread {
    let innermost = innermost.map(|(span, nanos, path)| TopInnermost {
        id: u64::from(id),
        key: key(span),
        entered_epoch_nanos: 1_767_000_000_000_000_000 - nanos,
        nanos,
        path: path.iter().map(|name| (*name).to_owned()).collect(),
    });
    TopThread {
        key: (usize::from(id >= 50), ThreadKey { recorder: 0, thread_id: id }),
        name: name.to_owned(),
        program: if id >= 50 { "bank (pid 4712)" } else { "shop (pid 4711)" }.to_owned(),
        pid: if id >= 50 { 4712 } else { 4711 },
        os_thread_id: Some(4711 + id),
        innermost,
        is_certain: ![3, 5, 6].contains(&id),
        is_seen: id != 6,
    }
}

fn threads() -> Vec<TopThread> {
    let long = "a thread with a long \u{1b}[31mname";
    let mut threads = vec![
        thread(1, "main", None),
        thread(2, "worker-1", Some(("db.query", 3_210_000_000, &["request", "service"]))),
        thread(3, "worker-2", Some(("db.query", 7_200_000_000_000, &["request"]))),
        thread(4, long, Some(("a span with a long name, I am afraid", 5_000_000, &["job"; 40]))),
        thread(5, "lost", None),
        thread(6, "old", None),
    ];
    threads.extend((10..40).map(|n| thread(n, &format!("pool-{n}"), Some(("job", u64::from(n) * 1_000_000, &[])))));
    threads
}

fn screen() -> TopScreen {
    let name = |name: &str, stats, self_share| {
        let stats = TopStats { self_share, ..stats };
        TopName { key: key(name), stats, kernel_nanos: None }
    };
    let mut names = vec![
        name("request", stats(12_345, 3_000_000_000, 1_250_000), 0.3),
        name("db.query", stats(4_000_000, 6_900_000_000, 950), 0.69),
        name("a\u{1b}[31mred", TopStats { wall_nanos: None, ..stats(3, 0, 1) }, 0.0),
    ];
    names.extend((0..60).map(|n| name(&format!("step-{n:02}"), stats(50 - n % 50, 1000 * n, 7_000 + n), 0.0001)));
    TopScreen {
        programs: "shop (pid 4711)".to_owned(),
        at_epoch_nanos: 1_767_000_000_000_000_000,
        covered: WINDOWS,
        events_per_second: 1_250_000.0,
        spans_per_second: 401_234.0,
        errors_per_second: 0.4,
        names,
        open: TopOpenSpans {
            first: vec![
                open(1, "service", 7_200_000_000_000, None),
                open(2, "transfer", 3_210_000_000, Some("worker-1")),
                open(3, "a span with a long name that does not fit into eighty columns, I am afraid", 5_000_000, None),
            ],
            first_perhaps: vec![open(4, "lost", 3_600_000_000_000, None)],
            surely: 3,
            perhaps: 1,
        },
        threads: threads(),
        rings: (0..6)
            .map(|n| TopRing {
                name: format!("shop-{n}"),
                shards: 1 + n % 2 * 3,
                fill: 0.5 + n as f64 / 10.0,
                past_seconds: 12.5 * n as f64,
                events_per_second: 200_000.0,
            })
            .collect(),
        lost: 1234,
        has_losses: [true, true, true],
        ..TopScreen::default()
    }
}

fn drawn(screen: &TopScreen, view: &TopView, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, view, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

fn press(view: &mut TopView, screen: &TopScreen, code: KeyCode) -> TopRequest {
    view.press(KeyEvent::new(code, KeyModifiers::NONE), screen)
}

#[test]
fn a_screen_of_80_by_24_and_one_of_200_by_50_have_all_parts() {
    let names = TopList { selected: Some(key("request")), ..TopList::default() };
    let view = TopView { names, ..TopView::default() };
    insta::assert_snapshot!("80x24", drawn(&screen(), &view, (80, 24)).backend());
    insta::assert_snapshot!("200x50", drawn(&screen(), &view, (200, 50)).backend());
}

#[test]
fn a_loss_is_a_mark_at_the_rates_of_its_time_and_no_line_of_its_own() {
    let lines = |screen: &TopScreen| -> Vec<String> {
        super::draw::lines(drawn(screen, &TopView::default(), (100, 24)).backend().buffer()).collect()
    };
    let mut screen = TopScreen { has_losses: [false; 3], ..screen() };
    let before = lines(&screen);
    assert!(before[0].contains("  1.25 M events/s  401.2 k spans/s"), "{before:#?}");
    // Events of the last ten seconds were lost, and none of the last second.
    screen.has_losses = [false, true, true];
    let after = lines(&screen);
    assert_eq!((after.len(), &after[0]), (before.len(), &before[0]));
    assert!(after[1].contains("≥ the last 10 s by self time"), "{after:#?}");
    assert!(after.iter().any(|line| line.starts_with("ring (1,234 events lost by this reader)")), "{after:#?}");
    screen.has_losses = [true; 3];
    assert!(
        lines(&screen)[0].contains("  ≥ 1.25 M events/s  ≥ 401.2 k spans/s  ≥ 0.4 errors/s"),
        "{:#?}",
        lines(&screen)
    );
}

#[test]
fn a_wide_screen_shows_for_each_second_what_threads_did_in_the_spans_of_a_name() {
    let mut screen = screen();
    let times = |cpu_nanos, queue_nanos, unmeasured_nanos| {
        let mut times = TimeSummary::default();
        (times.cpu_nanos, times.queue_nanos, times.unmeasured_nanos) = (cpu_nanos, queue_nanos, unmeasured_nanos);
        times.sleep_nanos = 80_000;
        Some(times)
    };
    // Of the last 10 s.
    screen.names[0].stats.times = times(13_200_000_000, 500_000_000, 0);
    screen.names[1].stats.times = times(10_000, 0, 1);
    let shown = |screen: &TopScreen, width| -> Vec<String> {
        let terminal = drawn(screen, &TopView::default(), (width, 24));
        let lines = super::draw::lines(terminal.backend().buffer());
        lines.skip(1).take(4).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    insta::assert_snapshot!(shown(&screen, 160).join("\n"), @r"
    ≥ the last 10 s by self time target cpu/s queue/s sleep/s spans/s self p50 p90 p99 max
    db.query shop::orders ~1.00 µs ~0 ns ~8.00 µs 400.0 k 69.0 % 950 ns 1.90 µs 8.55 µs 29.4 µs
    request shop::orders 1.32 s 50.0 ms 8.00 µs 1,235 30.0 % 1.25 ms 2.50 ms 11.2 ms 38.8 ms
    step-59 shop::orders – – – 4.1 0.0 % 7.06 µs 14.1 µs 63.5 µs 219 µs
    ");
    assert!(!shown(&screen, 80)[0].contains("cpu/s"));
    // What the kernel says is more.
    screen.names[0].kernel_nanos = Some([1, 2, 3]);
    assert!(!shown(&screen, 160)[0].contains("cpu/s"));
    let json = serde_json::to_value(&screen.names[1]).unwrap();
    assert_eq!((&json["times"]["cpu_ns"], &json["times"]["unmeasured_ns"]), (&10_000.into(), &1.into()));
}

#[test]
fn the_threads_fill_a_screen_with_the_longest_time_in_a_span_first() {
    let view = TopView { shows_threads: true, ..TopView::default() };
    insta::assert_snapshot!("threads_80x24", drawn(&screen(), &view, (80, 24)).backend());
    // The list is scrolled to the thread that is selected.
    let pool = (0, ThreadKey { recorder: 0, thread_id: 11 });
    let view = TopView { threads: TopList { selected: Some(pool), ..TopList::default() }, ..view };
    let text = drawn(&screen(), &view, (80, 24)).backend().to_string();
    assert!(text.contains("> ") && text.contains("pool-11") && !text.contains("pool-39"), "{text}");
    // With several programs, the program is shown.
    let mut screen = screen();
    screen.threads.push(thread(50, "teller", Some(("transfer", 1_000_000_000, &["day"]))));
    insta::assert_snapshot!("threads_200x50", drawn(&screen, &view, (200, 50)).backend());
}

#[test]
fn a_name_is_shown_with_its_windows_and_its_open_spans() {
    let detail = TopDetail {
        key: key("transfer"),
        windows: vec![TopStats::default(), stats(10, 5_000_000, 400_000), stats(61, 30_000_000, 450_000)],
        open: TopOpenSpans {
            first: vec![open(2, "transfer", 3_210_000_000, Some("worker-1"))],
            surely: 1,
            ..TopOpenSpans::default()
        },
    };
    let view = TopView { detail: Some(key("transfer")), is_paused: true, ..TopView::default() };
    let mut screen = TopScreen { detail: Some(detail), has_ended: true, ..screen() };
    insta::assert_snapshot!("detail", drawn(&screen, &view, (80, 24)).backend());

    // The rings hold less than the two longer windows.
    screen.covered = [1100, 3200, 3200].map(Duration::from_millis);
    let text = drawn(&screen, &view, (80, 24)).backend().to_string();
    for expected in ["the last 1 s: 0 spans", "3.2 s of 10 s: 10 spans", "3.2 s of 60 s: 61 spans"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    screen.detail = None;
    let text = drawn(&screen, &view, (80, 24)).backend().to_string();
    assert!(text.contains("3.2 s of 10 s by self time ") && !text.contains("the last 10 s"), "{text}");
}

#[test]
fn spans_that_may_have_been_closed_are_one_line_until_the_user_asks_for_them() {
    let screen = screen();
    let mut view = TopView::default();
    let text = |view: &TopView| drawn(&screen, view, (80, 24)).backend().to_string();
    let summed = text(&view);
    assert!(summed.contains("perhaps 1 span more") && !summed.contains("? 1 h 0 min"), "{summed}");
    assert_eq!(press(&mut view, &screen, KeyCode::Char('o')), TopRequest::Draw);
    let shown = text(&view);
    assert!(shown.contains("? 1 h 0 min") && !shown.contains("perhaps 1 span more"), "{shown}");
    press(&mut view, &screen, KeyCode::Char('o'));
    assert_eq!(text(&view), summed);
}

#[test]
fn the_last_line_has_whole_keys_only_however_long_the_filter_is() {
    let screen = screen();
    let last = |view: &TopView, width| {
        let terminal = drawn(&screen, view, (width, 24));
        super::draw::lines(terminal.backend().buffer()).last().unwrap()
    };
    let mut view = TopView::default();
    assert!(last(&view, 80).ends_with("Enter look into it") && last(&view, 100).ends_with("  o perhaps"));
    view.names.filter = "query".to_owned();
    assert_eq!(last(&view, 80), "filter: query  q quit  p pause  s sort  t threads  Esc no filter  ↑↓ select");
    view.names.filter = "a".repeat(200);
    let line = last(&view, 80);
    assert!(
        line.starts_with("filter: aaa") && line.contains("…  q quit  p pause") && line.ends_with("Esc no filter"),
        "{line}"
    );
}

#[test]
fn any_area_can_be_drawn_and_colours_are_there_only_if_they_may_be() {
    for size in [(1, 1), (3, 50), (200, 2), (20, 10)] {
        drawn(&screen(), &TopView::default(), size);
        drawn(&TopScreen::default(), &TopView::default(), size);
        drawn(&screen(), &TopView { shows_threads: true, ..TopView::default() }, size);
    }
    for (has_colours, shows_threads) in [(false, false), (false, true), (true, false), (true, true)] {
        let view = TopView { has_colours, shows_threads, ..TopView::default() };
        let terminal = drawn(&screen(), &view, (80, 24));
        let mut cells = terminal.backend().buffer().content().iter();
        let found = cells.any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(found, has_colours);
    }
}

#[test]
fn the_keys_sort_filter_select_and_look_into_a_name() {
    let screen = screen();
    let mut view = TopView::default();
    let first = |view: &TopView| view.names.shown(&screen.names)[0].key.name.clone();
    let mut orders = Vec::new();
    for _ in 0..4 {
        orders.push((view.names.order, first(&view)));
        assert_eq!(press(&mut view, &screen, KeyCode::Char('s')), TopRequest::Draw);
    }
    let expected = [
        (NameOrder::SelfTime, "db.query"),
        (NameOrder::Rate, "db.query"),
        (NameOrder::P99, "request"),
        (NameOrder::Name, "a\u{1b}[31mred"),
    ];
    assert_eq!(orders, expected.map(|(sort, name)| (sort, name.to_owned())));

    for letter in "/QUE".chars() {
        press(&mut view, &screen, KeyCode::Char(letter));
    }
    assert!(view.is_typing && view.filter() == "QUE");
    press(&mut view, &screen, KeyCode::Enter);
    assert_eq!(view.names.shown(&screen.names).len(), 2, "request and db.query");

    for _ in 0..5 {
        press(&mut view, &screen, KeyCode::Down);
    }
    assert_eq!(view.names.selected, Some(key("request")));
    press(&mut view, &screen, KeyCode::Up);
    assert_eq!(press(&mut view, &screen, KeyCode::Enter), TopRequest::Look);
    assert_eq!(view.detail, Some(key("db.query")));
    assert_eq!(press(&mut view, &screen, KeyCode::Esc), TopRequest::Look);
    assert_eq!((&view.detail, view.filter()), (&None, "QUE"));
    press(&mut view, &screen, KeyCode::Esc);
    assert_eq!(view.filter(), "");

    assert_eq!(press(&mut view, &screen, KeyCode::Char('p')), TopRequest::Draw);
    assert!(view.is_paused);
    assert_eq!(press(&mut view, &screen, KeyCode::Char('q')), TopRequest::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt, &screen), TopRequest::Quit);

    // Nothing is shown, so nothing can be selected.
    let empty = TopScreen::default();
    press(&mut view, &empty, KeyCode::Down);
    assert_eq!((press(&mut view, &empty, KeyCode::Enter), view.detail), (TopRequest::Draw, None));
}

#[test]
fn the_threads_have_an_order_a_filter_and_a_selection_of_their_own() {
    let screen = screen();
    let mut view = TopView::default();
    let first = |view: &TopView| view.threads.shown(&screen.threads)[0].name.clone();
    assert_eq!(press(&mut view, &screen, KeyCode::Char('t')), TopRequest::Draw);
    assert!(view.shows_threads);
    let mut orders = Vec::new();
    for _ in 0..3 {
        orders.push((view.threads.order, first(&view)));
        press(&mut view, &screen, KeyCode::Char('s'));
    }
    let name = screen.threads[3].name.as_str();
    // The thread that may have left its span is not first, though its time is the longest.
    let expected = [(ThreadOrder::Time, "worker-1"), (ThreadOrder::Thread, name), (ThreadOrder::Span, name)];
    assert_eq!(orders, expected.map(|(order, name)| (order, name.to_owned())));
    let words = |name: &str| screen.threads.iter().find(|row| row.name == name).unwrap().span_words().to_owned();
    assert_eq!(["main", "lost", "old"].map(words), ["in no span", "in no known span", "no record seen"]);
    let last: Vec<&str> = view.threads.shown(&screen.threads).iter().rev().take(3).map(|row| &*row.name).collect();
    assert_eq!(last, ["old", "lost", "main"]);

    // The filter finds threads, spans, and parents.
    for (filter, found) in [("WORKER", 2), ("query", 2), ("service", 1), ("pool-3", 10), ("no span", 1)] {
        press(&mut view, &screen, KeyCode::Char('/'));
        for letter in filter.chars() {
            press(&mut view, &screen, KeyCode::Char(letter));
        }
        press(&mut view, &screen, KeyCode::Enter);
        assert_eq!((filter, view.threads.shown(&screen.threads).len()), (filter, found));
        press(&mut view, &screen, KeyCode::Esc);
        assert!(view.shows_threads && view.filter().is_empty());
    }
    press(&mut view, &screen, KeyCode::Down);
    press(&mut view, &screen, KeyCode::Down);
    let second = view.threads.shown(&screen.threads)[1].key();
    assert_eq!((view.threads.selected, &view.names.selected), (Some(second), &None));
    press(&mut view, &screen, KeyCode::Up);
    assert_eq!(press(&mut view, &screen, KeyCode::Enter), TopRequest::Look);
    assert_eq!(view.detail, Some(key("db.query")));
    // The name was looked into from the threads, so they are there again.
    assert_eq!((press(&mut view, &screen, KeyCode::Esc), view.shows_threads), (TopRequest::Look, true));
    assert_eq!((press(&mut view, &screen, KeyCode::Esc), view.shows_threads), (TopRequest::Draw, false));

    // From a name, the key leads to the threads.
    press(&mut view, &screen, KeyCode::Enter);
    assert_eq!((press(&mut view, &screen, KeyCode::Char('t')), view.shows_threads), (TopRequest::Look, true));
    assert_eq!((press(&mut view, &screen, KeyCode::Char('t')), view.shows_threads), (TopRequest::Draw, false));
    // A thread in no span has no name to look into.
    let idle = TopScreen { threads: vec![thread(1, "main", None)], ..TopScreen::default() };
    press(&mut view, &idle, KeyCode::Char('t'));
    assert_eq!((press(&mut view, &idle, KeyCode::Enter), &view.detail), (TopRequest::Draw, &None));
}
