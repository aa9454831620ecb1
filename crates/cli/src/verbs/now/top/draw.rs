//! Drawing the screen into any area.

use super::draw_threads;
use super::list::ListOrder as _;
use super::model::{TopDetail, TopRing, TopScreen};
use super::open_spans::{THREAD_WIDTH, TopOpen, TopOpenSpans};
use super::stats::{SHORT, TABLE, TopStats, WINDOWS};
use super::style::{BOLD, DIM, coloured, right, selectable};
use super::typed::TopEvent;
use super::view::TopView;
use crate::input::ring::state::end_in_words;
use crate::text::format::{TimeFormat, bytes, counted, duration, one_line, rate, shown_name};
use crate::text::table::shortened_end;
use crate::verbs::now::open;
use eventring_capture::numbers::time;
use eventring_export::{SharedNames, full_name};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table, Widget};
use std::time::Duration;

/// The number of rings that are shown.
const RINGS_MAX: usize = 4;
/// The width from which on the targets are shown.
const WIDE: u16 = 110;
/// The width from which on threads are shown beside the open spans.
const PANEL_FROM: u16 = 160;
const STATS: [&str; 6] = ["spans/s", "self", "p50", "p90", "p99", "max"];
const STATS_WIDTHS: [u16; 6] = [8, 8, 7, 7, 7, 7];

/// Draws the screen.
pub(super) fn draw(screen: &TopScreen, view: &TopView, area: Rect, buf: &mut Buffer) {
    let warnings = warnings(screen);
    let shows_threads = view.shows_threads && screen.detail.is_none();
    let has_panel = !view.shows_threads && screen.detail.is_none() && area.width >= PANEL_FROM;
    let mut rings = screen.rings.len().min(RINGS_MAX) + 1 + usize::from(screen.rings.len() > RINGS_MAX);
    let spans = screen.detail.as_ref().map_or(&screen.open, |detail| &detail.open);
    let mut open_rows = open_lines(spans, screen, view).len();
    if has_panel {
        open_rows = open_rows.max(screen.threads.len());
    }
    open_rows = (open_rows + 1).min(usize::from(area.height / 3));
    if shows_threads {
        (open_rows, rings) = (0, 0);
    }
    let [head, banner, names, open, rings, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::from(!warnings.is_empty())),
        Constraint::Fill(1),
        Constraint::Length(open_rows as u16),
        Constraint::Length(rings as u16),
        Constraint::Length(1),
    ])
    .areas(area);
    self::head(screen, view, head.width).render(head, buf);
    Line::styled(warnings, coloured(view, BOLD, Color::Yellow)).render(banner, buf);
    match &screen.detail {
        Some(detail) => {
            self::detail(screen, detail, names, buf);
            self::open(&detail.open, screen, view, open, buf);
        }
        None if shows_threads => draw_threads::list(screen, view, names, buf),
        None => {
            // Without spans, the types of events have all the room.
            let typed = match (screen.events.len() as u16, screen.names.is_empty()) {
                (0, _) => 0,
                (_, true) => names.height,
                (rows, false) => rows.saturating_add(1).min(names.height / 3),
            };
            let [names, typed] = Layout::vertical([Constraint::Fill(1), Constraint::Length(typed)]).areas(names);
            self::names(screen, view, names, buf);
            self::typed(screen, typed, buf);
            let panel = Constraint::Percentage(if has_panel { 50 } else { 0 });
            let [open, panel] = Layout::horizontal([Constraint::Fill(1), panel]).areas(open);
            self::open(&screen.open, screen, view, open, buf);
            draw_threads::panel(screen, view, panel, buf);
        }
    }
    self::rings(screen, rings, buf);
    self::keys(view, spans.perhaps > 0 && !shows_threads, keys.width).render(keys, buf);
}

/// Returns the lines of a frame as text.
pub(super) fn lines(frame: &Buffer) -> impl Iterator<Item = String> {
    let width = usize::from(frame.area.width).max(1);
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    frame.content().chunks(width).map(move |cells| line(cells).trim_end().to_owned())
}

/// Returns the first line. If it is too wide, the name of the program is cut.
fn head<'s>(screen: &TopScreen, view: &TopView, width: u16) -> Line<'s> {
    let errors = match screen.errors_per_second > 0.0 {
        true => coloured(view, BOLD, Color::Red),
        false => Style::new(),
    };
    // The rates are those of what was seen. If events were lost meanwhile, there were more.
    let rate = |per_second: f64| format!("  {}{}", at_least(screen, SHORT), low_rate(per_second));
    let mut parts = vec![
        Span::raw(format!("{} events/s", rate(screen.events_per_second))),
        Span::raw(format!("{} spans/s", rate(screen.spans_per_second))),
        Span::styled(format!("{} errors/s", rate(screen.errors_per_second)), errors),
    ];
    if view.is_paused {
        parts.push(Span::styled("  paused", coloured(view, BOLD, Color::Cyan)));
    }
    let room = usize::from(width).saturating_sub(parts.iter().map(Span::width).sum());
    parts.insert(0, Span::styled(shortened_end(&one_line(&screen.programs), room), BOLD));
    Line::from(parts)
}

/// Returns the mark of a window of which events were lost.
fn at_least(screen: &TopScreen, window: usize) -> &'static str {
    if screen.has_losses[window] { "≥ " } else { "" }
}

/// Returns what the user should know of this screen before all else.
fn warnings(screen: &TopScreen) -> String {
    let mut said = Vec::new();
    if screen.not_tracked > 0 {
        said.push(format!("{} could not be kept", counted(screen.not_tracked, "open span", "open spans")));
    }
    if screen.has_ended {
        let how = match *screen.deaths {
            [] => "ended".to_owned(),
            [end] => end_in_words(end, &TimeFormat::new(false)),
            _ => "ended, not all in good order".to_owned(),
        };
        said.push(format!("these are the last seconds: {how}"));
    } else if screen.is_behind {
        said.push("reading what the rings hold".to_owned());
    }
    said.join("; ")
}

fn names(screen: &TopScreen, view: &TopView, area: Rect, buf: &mut Buffer) {
    let shown = view.names.shown(&screen.names);
    let is_wide = area.width >= WIDE;
    let title = format!("{} by {}", window_words(screen, TABLE), view.names.order.word());
    let mut titles = vec![Cell::from(title)];
    let mut widths = vec![Constraint::Fill(1)];
    if is_wide {
        titles.push(Cell::from("target"));
        widths.push(Constraint::Fill(1));
    }
    let has_kernel = is_wide && screen.names.iter().any(|row| row.kernel_nanos.is_some());
    if has_kernel {
        titles.extend(["cpu", "runnable", "blocked"].map(right));
        widths.extend([Constraint::Length(8); 3]);
    }
    // What the kernel says is more.
    let has_times = is_wide && !has_kernel && screen.names.iter().any(|row| row.stats.times.is_some());
    if has_times {
        titles.extend(["cpu/s", "queue/s", "sleep/s"].map(right));
        widths.extend([Constraint::Length(8); 3]);
    }
    titles.extend(STATS.map(right));
    widths.extend(STATS_WIDTHS.map(Constraint::Length));
    let shared =
        SharedNames::from_names(screen.names.iter().map(|row| (row.key.name.as_str(), row.key.target.as_str())));
    let rows = shown.iter().map(|row| {
        // A wide table has a column of targets.
        let name = if is_wide { row.key.name.as_str().into() } else { shared.shown(&row.key.name, &row.key.target) };
        let mut cells = vec![Cell::from(one_line(&shown_name(&name)))];
        if is_wide {
            cells.push(Cell::from(Text::styled(one_line(&row.key.target), DIM)));
        }
        if has_kernel {
            cells.extend(row.kernel_nanos.unwrap_or_default().map(|nanos| right(time(nanos))));
        }
        if has_times {
            cells.extend(times_per_second(&row.stats));
        }
        cells.extend(stats(&row.stats, format!("{:.1} %", row.stats.self_share * 100.0)));
        Row::new(cells)
    });
    let table = Table::new(rows, widths).header(Row::new(titles).style(DIM));
    selectable(table, view.names.selected_row(&shown), area, buf);
}

/// Returns how much of each second threads ran, could have run, and waited in the spans of a name.
fn times_per_second(stats: &TopStats) -> [Cell<'static>; 3] {
    let Some(times) = stats.times else { return ["–"; 3].map(right) };
    let about = if times.is_estimated || times.unmeasured_nanos > 0 { "~" } else { "" };
    // The seconds that the count of spans a second is about.
    let seconds = stats.count as f64 / stats.per_second;
    [times.cpu_nanos, times.queue_nanos, times.sleep_nanos]
        .map(|nanos| right(format!("{about}{}", time((nanos as f64 / seconds) as u64))))
}

/// Draws the types of typed events.
fn typed(screen: &TopScreen, area: Rect, buf: &mut Buffer) {
    let shared =
        SharedNames::from_names(screen.events.iter().map(|event| (event.name.as_str(), event.content.as_str())));
    let row = |event: &TopEvent| {
        let bytes = format!("{}/s", bytes(event.bytes_per_second as u64));
        let name = one_line(&shown_name(&shared.shown(&event.name, &event.content)));
        Row::new([Cell::from(name), right(low_rate(event.per_second)), right(bytes)])
    };
    let widths = [Constraint::Fill(1), Constraint::Length(10), Constraint::Length(14)];
    // With a table of spans above it, the window stands there.
    let title = match screen.names.is_empty() {
        true => format!("typed event, {}", window_words(screen, TABLE)),
        false => "typed event".to_owned(),
    };
    let titles = Row::new([Cell::from(title), right("events/s"), right("payload")]).style(DIM);
    let rows = screen.events.iter().take(usize::from(area.height)).map(row);
    Widget::render(Table::new(rows, widths).header(titles), area, buf);
}

/// Returns a window in words: `the last 10 s`, or `3.2 s of 10 s` if it covers less. `≥` says that events were lost in
/// it, so there were more than it counts.
fn window_words(screen: &TopScreen, window: usize) -> String {
    let (covered, seconds) = (screen.covered[window], WINDOWS[window].as_secs());
    let least = at_least(screen, window);
    match covered < WINDOWS[window] {
        true => format!("{least}{} of {seconds} s", duration(covered)),
        false => format!("{least}the last {seconds} s"),
    }
}

fn detail(screen: &TopScreen, detail: &TopDetail, area: Rect, buf: &mut Buffer) {
    let name = one_line(&shown_name(&full_name(&detail.key.name, &detail.key.target)));
    let [head, table] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    Line::styled(name, BOLD).render(head, buf);
    let rows = detail.windows.iter().enumerate().map(|(window, of_window)| {
        let title = format!("{}: {}", window_words(screen, window), counted(of_window.count, "span", "spans"));
        let cells = [Cell::from(title)].into_iter();
        Row::new(cells.chain(stats(of_window, time(of_window.self_nanos))))
    });
    let widths = [Constraint::Fill(1)].into_iter().chain(STATS_WIDTHS.map(Constraint::Length));
    let titles = [Cell::from("window")].into_iter().chain(STATS.map(right));
    let rows = Table::new(rows, widths).header(Row::new(titles).style(DIM));
    Widget::render(rows, table, buf);
}

fn stats(stats: &TopStats, of_self: String) -> [Cell<'static>; 6] {
    let wall = |index: usize| right(stats.wall_nanos.map_or("–".to_owned(), |nanos| time(nanos[index])));
    [right(low_rate(stats.per_second)), right(of_self), wall(0), wall(1), wall(2), wall(3)]
}

fn open(spans: &TopOpenSpans, screen: &TopScreen, view: &TopView, area: Rect, buf: &mut Buffer) {
    let old = coloured(view, Style::new(), Color::Cyan);
    let rows = open_lines(spans, screen, view);
    let rows = rows
        .iter()
        .map(|[age, thread, name]| Row::new([right(&**age).style(old), Cell::from(&**thread), Cell::from(&**name)]));
    let widths = [Constraint::Length(14), Constraint::Length(THREAD_WIDTH as u16), Constraint::Fill(1)];
    let titles = Row::new([right("age"), Cell::from("thread"), Cell::from(spans.words())]).style(DIM);
    Widget::render(Table::new(rows, widths).header(titles), area, buf);
}

/// Returns the age, the thread and the name of open spans. Those that may have been closed are one line, unless the
/// user wants to see them.
fn open_lines(spans: &TopOpenSpans, screen: &TopScreen, view: &TopView) -> Vec<[String; 3]> {
    let thread = |span: &TopOpen| one_line(span.thread.as_deref().unwrap_or("in no thread"));
    let open = spans.all().map(|span| (span.name.as_str(), span.target.as_str()));
    let rows = screen.names.iter().map(|row| (row.key.name.as_str(), row.key.target.as_str()));
    let shared = SharedNames::from_names(open.chain(rows));
    let line =
        |span: &TopOpen| [age(span), thread(span), one_line(&shown_name(&shared.shown(&span.name, &span.target)))];
    let perhaps = if view.shows_perhaps { &spans.first_perhaps[..] } else { &[] };
    let mut lines: Vec<[String; 3]> = spans.first.iter().chain(perhaps).map(line).collect();
    if spans.perhaps > 0 && !view.shows_perhaps {
        let more = if spans.surely > 0 { " more" } else { "" };
        let count = counted(spans.perhaps as u64, "span", "spans");
        lines.push(["?".to_owned(), "o shows them".to_owned(), format!("perhaps {count}{more}: events were lost")]);
    }
    lines
}

/// Returns the age with the marks of `eventring open`.
fn age(span: &TopOpen) -> String {
    open::age(span.age_nanos, span.is_opened_before_window, span.age_max_nanos, span.may_have_closed)
}

fn rings(screen: &TopScreen, area: Rect, buf: &mut Buffer) {
    let rings = &screen.rings;
    let row = |ring: &TopRing| {
        let shards = if ring.shards > 1 { format!(" ({} shards)", ring.shards) } else { String::new() };
        let past = match Duration::try_from_secs_f64(ring.past_seconds) {
            Ok(past) if !past.is_zero() => duration(past),
            _ => "–".to_owned(),
        };
        Row::new([
            Cell::from(format!("{}{shards}", one_line(&ring.name))),
            right(format!("{:.0} %", ring.fill * 100.0)),
            right(past),
            right(low_rate(ring.events_per_second)),
        ])
    };
    let mut rows: Vec<Row<'_>> = rings.iter().take(RINGS_MAX).map(row).collect();
    if rings.len() > RINGS_MAX {
        rows.push(Row::new([format!("… and {} more", rings.len() - RINGS_MAX)]));
    }
    let widths = [Constraint::Fill(1), Constraint::Length(6), Constraint::Length(14), Constraint::Length(9)];
    let lost = match screen.lost {
        0 => "ring".to_owned(),
        lost => format!("ring ({} lost by this reader)", counted(lost, "event", "events")),
    };
    let titles = Row::new([Cell::from(lost), right("fill"), right("past"), right("events/s")]).style(DIM);
    Widget::render(Table::new(rows, widths).header(titles), area, buf);
}

/// Returns the last line: the filter, and as many keys as there is room for, the most important ones first.
fn keys<'s>(view: &TopView, has_perhaps: bool, width: u16) -> Line<'s> {
    let width = usize::from(width);
    if view.is_typing {
        return Line::from(format!(
            "filter: {}▏ (Enter keeps it, Esc removes it)",
            shortened_end(view.filter(), width / 2)
        ));
    }
    let filter = match view.filter() {
        "" => String::new(),
        filter => format!("filter: {}  ", shortened_end(filter, width / 4)),
    };
    let has_filter = !filter.is_empty();
    let perhaps = if has_perhaps { ["o perhaps"].as_slice() } else { &[] };
    let keys = match (view.detail.is_some(), view.shows_threads) {
        (true, _) => [&["q quit", "p pause", "t threads", "Esc back"][..], perhaps].concat(),
        (false, shows_threads) => {
            let threads = if shows_threads { "t back" } else { "t threads" };
            let filters = if has_filter { "Esc no filter" } else { "/ filter" };
            let look = if shows_threads { "Enter look into its span" } else { "Enter look into it" };
            [&["q quit", "p pause", "s sort", threads, filters, "↑↓ select", look][..], perhaps].concat()
        }
    };
    let mut shown = String::new();
    for key in keys {
        let between = if shown.is_empty() { "" } else { "  " };
        if filter.chars().count() + shown.chars().count() + between.len() + key.chars().count() > width {
            break;
        }
        shown.push_str(between);
        shown.push_str(key);
    }
    Line::from(vec![Span::styled(filter, BOLD), Span::styled(shown, DIM)])
}

/// Shows a number per second. Small ones have a decimal: `0.2`.
fn low_rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 10.0 { format!("{per_second:.1}") } else { rate(per_second) }
}
