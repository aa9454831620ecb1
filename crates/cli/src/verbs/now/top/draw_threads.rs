//! Drawing the threads.

use super::list::{ListOrder as _, TopList};
use super::model::TopScreen;
use super::style::{BOLD, DIM, coloured, right, selectable};
use super::threads::TopThread;
use super::view::TopView;
use crate::text::format::{counted, duration, grouped, one_line, shown_name};
use crate::text::table::shortened_end;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, Widget};
use std::time::Duration;

/// The widths of the columns before the span.
const TIME_WIDTH: u16 = 12;
const THREAD_WIDTH: u16 = 16;
const TID_WIDTH: u16 = 8;
const PROGRAM_WIDTH: u16 = 20;
/// The number of parents that are shown.
const PARENTS_MAX: usize = 32;

/// Draws the list of threads that the user has asked for.
pub(super) fn list(screen: &TopScreen, view: &TopView, area: Rect, buf: &mut Buffer) {
    let shown = view.threads.shown(&screen.threads);
    let [head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let title = format!("{}, by {}", count(&screen.threads), view.threads.order.word());
    Line::styled(title, BOLD).render(head, buf);
    let selected = view.threads.selected_row(&shown);
    selectable(table(&shown, has_several(screen), view, "span"), selected, rows, buf);
}

/// Draws as many threads as there is room for, those first that have been in their span longest.
pub(super) fn panel(screen: &TopScreen, view: &TopView, area: Rect, buf: &mut Buffer) {
    let shown = TopList::default().shown(&screen.threads);
    let title = count(&screen.threads);
    Widget::render(table(&shown, has_several(screen), view, &title), area, buf);
}

fn has_several(screen: &TopScreen) -> bool {
    screen.threads.iter().any(|thread| thread.key.0 != screen.threads[0].key.0)
}

/// Returns the number of threads, and of those that are in spans.
fn count(threads: &[TopThread]) -> String {
    let all = counted(threads.len() as u64, "thread", "threads");
    let in_spans = threads.iter().filter(|thread| thread.innermost.is_some()).count();
    format!("{all}, {} in a span", grouped(in_spans as u64))
}

fn table(shown: &[&TopThread], has_several: bool, view: &TopView, title: &str) -> Table<'static> {
    let row = |thread: &&TopThread| {
        let mark = if thread.is_certain { "" } else { "? " };
        let time = thread.innermost.as_ref().map(|it| format!("{mark}{}", duration(Duration::from_nanos(it.nanos))));
        let time = right(time.unwrap_or_default()).style(coloured(view, Style::new(), Color::Cyan));
        let tid = thread.os_thread_id.map(|tid| tid.to_string()).unwrap_or_default();
        let mut cells =
            vec![time, Cell::from(shortened_end(&one_line(&thread.name), THREAD_WIDTH.into())), right(tid).style(DIM)];
        if has_several {
            cells.push(Cell::from(shortened_end(&one_line(&thread.program), PROGRAM_WIDTH.into())));
        }
        let span = one_line(thread.span_words());
        cells.push(Cell::from(match thread.innermost {
            Some(_) => Text::raw(span),
            None => Text::styled(span, DIM),
        }));
        let path = thread.innermost.iter().flat_map(|it| it.path.iter().take(PARENTS_MAX));
        let path: Vec<String> = path.map(|name| one_line(&shown_name(name))).collect();
        cells.push(Cell::from(Text::styled(path.join(" < "), DIM)));
        Row::new(cells)
    };
    let mut widths = [TIME_WIDTH, THREAD_WIDTH, TID_WIDTH].map(Constraint::Length).to_vec();
    let mut titles = vec![right("for"), Cell::from("thread"), right("tid")];
    if has_several {
        widths.push(Constraint::Length(PROGRAM_WIDTH));
        titles.push(Cell::from("program"));
    }
    widths.extend([Constraint::Fill(1), Constraint::Fill(1)]);
    titles.extend([Cell::from(title.to_owned()), Cell::from("in, nearest first")]);
    Table::new(shown.iter().map(row), widths).header(Row::new(titles).style(DIM))
}
