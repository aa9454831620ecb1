//! Tests of the screen and of the keys.

use super::draw::draw;
use super::model::{TopDetail, TopKey, TopName, TopOpen, TopRing, TopScreen, TopStats};
use super::view::{TopRequest, TopSort, TopView};
use eventring::live::SeriesKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

fn key(name: &str) -> TopKey {
    TopKey { kind: SeriesKind::Spans, name: name.to_owned(), target: "shop::orders".to_owned() }
}

fn stats(count: u64, self_nanos: u64, p50: u64) -> TopStats {
    let walls_nanos = Some([p50, p50 * 2, p50 * 9, p50 * 31]);
    TopStats { count, per_second: count as f64 / 10.0, self_nanos, walls_nanos }
}

fn open(id: u64, name: &str, age_nanos: u64, thread: Option<&str>) -> TopOpen {
    TopOpen {
        id,
        name: name.to_owned(),
        age_nanos,
        thread: thread.map(str::to_owned),
        is_opened_before_window: id == 1,
        may_have_closed: id == 2,
        pid: 4711,
    }
}

fn screen() -> TopScreen {
    let name = |name: &str, stats, self_share| TopName { key: key(name), stats, self_share };
    let mut names = vec![
        name("request", stats(12_345, 3_000_000_000, 1_250_000), 0.3),
        name("db.query", stats(4_000_000, 6_900_000_000, 950), 0.69),
        name("a\u{1b}[31mred", TopStats { walls_nanos: None, ..stats(3, 0, 1) }, 0.0),
    ];
    names.extend((0..60).map(|n| name(&format!("step-{n:02}"), stats(50 - n % 50, 1000 * n, 7_000 + n), 0.0001)));
    TopScreen {
        programs: "shop (pid 4711)".to_owned(),
        at_epoch_nanos: 1_767_000_000_000_000_000,
        events_per_second: 1_250_000.0,
        spans_per_second: 401_234.0,
        errors_per_second: 0.4,
        names,
        open: vec![
            open(1, "service", 7_200_000_000_000, None),
            open(2, "transfer", 3_210_000_000, Some("worker-1")),
            open(3, "a span with a long name that does not fit into eighty columns, I am afraid", 5_000_000, None),
        ],
        open_count: 3,
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
    let view = TopView { selected: Some(key("request")), ..TopView::default() };
    insta::assert_snapshot!("80x24", drawn(&screen(), &view, (80, 24)).backend());
    insta::assert_snapshot!("200x50", drawn(&screen(), &view, (200, 50)).backend());
}

#[test]
fn a_name_is_shown_with_its_windows_and_its_open_spans() {
    let detail = TopDetail {
        key: key("transfer"),
        windows: vec![TopStats::default(), stats(10, 5_000_000, 400_000), stats(61, 30_000_000, 450_000)],
        open: vec![open(2, "transfer", 3_210_000_000, Some("worker-1"))],
        open_count: 1,
    };
    let view = TopView { detail: Some(key("transfer")), is_paused: true, ..TopView::default() };
    let screen = TopScreen { detail: Some(detail), has_ended: true, ..screen() };
    insta::assert_snapshot!("detail", drawn(&screen, &view, (80, 24)).backend());
}

#[test]
fn any_area_can_be_drawn_and_colours_are_there_only_if_they_may_be() {
    for size in [(1, 1), (3, 50), (200, 2), (20, 10)] {
        drawn(&screen(), &TopView::default(), size);
        drawn(&TopScreen::default(), &TopView::default(), size);
    }
    for has_colours in [false, true] {
        let view = TopView { has_colours, ..TopView::default() };
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
    let first = |view: &TopView| view.shown(&screen)[0].key.name.clone();
    let mut orders = Vec::new();
    for _ in 0..4 {
        orders.push((view.sort, first(&view)));
        assert_eq!(press(&mut view, &screen, KeyCode::Char('s')), TopRequest::Draw);
    }
    let expected = [
        (TopSort::SelfTime, "db.query"),
        (TopSort::Rate, "db.query"),
        (TopSort::P99, "request"),
        (TopSort::Name, "a\u{1b}[31mred"),
    ];
    assert_eq!(orders, expected.map(|(sort, name)| (sort, name.to_owned())));

    for letter in "/QUE".chars() {
        press(&mut view, &screen, KeyCode::Char(letter));
    }
    assert!(view.is_typing && view.filter == "QUE");
    press(&mut view, &screen, KeyCode::Enter);
    assert_eq!(view.shown(&screen).len(), 2, "request and db.query");

    for _ in 0..5 {
        press(&mut view, &screen, KeyCode::Down);
    }
    assert_eq!(view.selected, Some(key("request")));
    press(&mut view, &screen, KeyCode::Up);
    assert_eq!(press(&mut view, &screen, KeyCode::Enter), TopRequest::Look);
    assert_eq!(view.detail, Some(key("db.query")));
    assert_eq!(press(&mut view, &screen, KeyCode::Esc), TopRequest::Look);
    assert_eq!((&view.detail, view.filter.as_str()), (&None, "QUE"));
    press(&mut view, &screen, KeyCode::Esc);
    assert_eq!(view.filter, "");

    assert_eq!(press(&mut view, &screen, KeyCode::Char('p')), TopRequest::Draw);
    assert!(view.is_paused);
    assert_eq!(press(&mut view, &screen, KeyCode::Char('q')), TopRequest::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt, &screen), TopRequest::Quit);

    // Nothing is shown, so nothing can be selected.
    let empty = TopScreen::default();
    press(&mut view, &empty, KeyCode::Down);
    assert_eq!((press(&mut view, &empty, KeyCode::Enter), view.detail), (TopRequest::Look, None));
}
