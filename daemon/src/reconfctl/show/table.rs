//! Columns.

use std::io::{self, Write};

use super::{Paint, clean};

/// Rows under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub(in super::super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(in super::super) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; an empty cell shows as `-`.
    pub(in super::super) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        let shown = cells.map(|cell| match clean(cell) {
            cell if cell.is_empty() => "-".to_owned(),
            cell => cell,
        });
        self.rows.push(shown.into());
    }

    pub(in super::super) fn write(&self, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
        let headings: Vec<String> = self.headings.iter().map(|&text| text.to_owned()).collect();
        let widths: Vec<usize> = (0..headings.len())
            .map(|column| {
                let cells = std::iter::once(&headings).chain(&self.rows);
                cells
                    .filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        writeln!(out, "{}", paint.dim(&line(&headings, &widths)))?;
        for row in &self.rows {
            writeln!(out, "{}", line(row, &widths))?;
        }
        Ok(())
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    padded.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Colour;
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_speaks_to_the_terminal() {
        let mut table = Table::new(&["NAME", "X"]);
        table.row(["a\x1b[2Jb\n", ""]);
        table.row(["längere", "1"]);
        let mut out = Vec::new();
        table.write(Paint::new(Colour::Never), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "NAME     X\na [2Jb   -\nlängere  1\n");
    }
}
