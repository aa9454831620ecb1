//! The styles of what is drawn.

use super::view::TopView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, HighlightSpacing, StatefulWidget, Table, TableState};

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Returns the style with a colour, if there are colours.
pub(super) fn coloured(view: &TopView, style: Style, colour: Color) -> Style {
    if view.has_colours { style.fg(colour) } else { style }
}

pub(super) fn right<'t>(text: impl Into<Text<'t>>) -> Cell<'t> {
    Cell::from(text.into().right_aligned())
}

/// Draws a table with a selected row, or with room for its mark. The table is scrolled to the row.
pub(super) fn selectable(table: Table<'_>, selected: Option<usize>, area: Rect, buf: &mut Buffer) {
    let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED)).highlight_symbol("> ");
    let table = table.highlight_spacing(HighlightSpacing::Always);
    StatefulWidget::render(table, area, buf, &mut TableState::new().with_selected(selected));
}
