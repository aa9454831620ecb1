//! Tables for people: the first column is text, the others are numbers. A row may end with a note.

use crate::text::paint::{BOLD, DIM, Style};
use std::io::{self, Write};

/// The fewest columns that the text of a row keeps.
const TEXT_COLUMNS_MIN: usize = 12;

/// The columns of text for which numbers that a table can do without are left out.
const TEXT_COLUMNS_WANTED: usize = 30;

/// The most columns that the text of a row takes.
const TEXT_COLUMNS_MAX: usize = 80;

/// Returns the width of a column of texts with these lengths. A text that is much longer than most makes its own line
/// longer, and not the column wider.
pub(crate) fn column_width(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0).min(TEXT_COLUMNS_MAX)
}

/// A table whose columns are as wide as their widest cell.
pub(crate) struct NumberTable<const N: usize> {
    rows: Vec<TableRow<N>>,
    /// The columns that a narrow terminal does not show, in the order in which they are left out.
    dispensable: &'static [usize],
}

struct TableRow<const N: usize> {
    cells: [String; N],
    style: Style,
    note: String,
}

impl<const N: usize> NumberTable<N> {
    /// Makes a table with these headings.
    pub(crate) fn new(heads: [&str; N]) -> Self {
        let mut table = Self { rows: Vec::new(), dispensable: &[] };
        table.row(heads.map(str::to_owned), BOLD);
        table
    }

    /// Leaves out these columns, in this order, as far as a terminal is too narrow for them.
    pub(crate) fn leaving_out(self, dispensable: &'static [usize]) -> Self {
        Self { dispensable, ..self }
    }

    pub(crate) fn row(&mut self, cells: [String; N], style: Style) {
        self.row_with_note(cells, style, String::new());
    }

    /// Adds a row with a note after its last cell. The note has no heading and no width.
    pub(crate) fn row_with_note(&mut self, cells: [String; N], style: Style, note: String) {
        self.rows.push(TableRow { cells, style, note });
    }

    /// Writes the table. If it is wider than `columns`, texts of the first column lose their beginnings, if that helps.
    /// Without a terminal, they have at most 80 columns: one long name would make each line as long.
    pub(crate) fn write(&self, out: &mut impl Write, columns: Option<usize>) -> io::Result<()> {
        let width = |column: usize| column_width(self.rows.iter().map(|row| row.cells[column].chars().count()));
        let mut widths: Vec<usize> = (0..N).map(width).collect();
        // A column without any cell is left out.
        let others = |widths: &[usize]| widths[1..].iter().filter(|it| **it > 0).map(|it| it + 2).sum::<usize>();
        for column in self.dispensable {
            if columns.is_none_or(|columns| others(&widths) + widths[0].min(TEXT_COLUMNS_WANTED) <= columns) {
                break;
            }
            widths[*column] = 0;
        }
        let others = others(&widths);
        // If the numbers leave no room for texts, the lines are too long anyway, and the texts stay whole.
        if let Some(room) =
            columns.map(|columns| columns.saturating_sub(others)).filter(|room| *room >= TEXT_COLUMNS_MIN)
        {
            widths[0] = widths[0].min(room);
        }
        for TableRow { cells, style, note } in &self.rows {
            let mut line = format!("{:<1$}", shortened(&cells[0], widths[0]), widths[0]);
            for (cell, width) in cells.iter().zip(&widths).skip(1).filter(|(_, width)| **width > 0) {
                line += &format!("  {cell:>width$}");
            }
            match note.as_str() {
                "" => writeln!(out, "{style}{}{style:#}", line.trim_end())?,
                note => writeln!(out, "{style}{line}{style:#}  {DIM}{note}{DIM:#}")?,
            }
        }
        Ok(())
    }
}

/// The largest number of characters of a name that a message shows.
const NAME_CHARS: usize = 120;

/// Returns a name, or what contains one, as messages show it: without what is too long.
pub(crate) fn shortened_name(text: &str) -> String {
    shortened_end(text, NAME_CHARS)
}

/// Returns the beginning of a text that is longer than `width`.
pub(crate) fn shortened_end(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns the end of a text that is longer than `width`: the end of a span's name says more than its crate.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    match text.chars().count().checked_sub(width) {
        None | Some(0) => text.to_owned(),
        Some(over) => std::iter::once('…').chain(text.chars().skip(over + 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::paint::PLAIN;

    #[test]
    fn a_narrow_terminal_leaves_out_columns_before_it_shortens_names() {
        let mut table = NumberTable::new(["span", "self", "idle", "max"]).leaving_out(&[2, 1]);
        table.row(["shop::orders::place", "3 ms", "2 ms", "5 ms"].map(str::to_owned), PLAIN);
        let last_line = |columns: Option<usize>| {
            let text = crate::text::out::shown(|out| table.write(out, columns));
            text.lines().last().unwrap().to_owned()
        };
        assert_eq!(last_line(None), "shop::orders::place  3 ms  2 ms  5 ms");
        assert_eq!(last_line(Some(37)), "shop::orders::place  3 ms  2 ms  5 ms");
        assert_eq!(last_line(Some(36)), "shop::orders::place  3 ms  5 ms");
        assert_eq!(last_line(Some(30)), "shop::orders::place  5 ms");
        assert_eq!(last_line(Some(20)), "…orders::place  5 ms");
    }
}
