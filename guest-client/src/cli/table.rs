//! Aligned columns for people.
//!
//! Knows widths. Must not know what the cells mean.

/// Rows of cells under a header.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(header: [&str; COLUMNS]) -> Self {
        Self {
            rows: vec![header.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    /// The whole table; no line ends with spaces.
    pub(crate) fn render(&self) -> String {
        let mut widths = [0_usize; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(shown(cell));
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                line.push_str(cell);
                let gap = width.saturating_sub(shown(cell)).saturating_add(2);
                line.extend(std::iter::repeat_n(' ', gap));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Columns that a cell takes on a terminal: escape sequences of colour take none.
fn shown(cell: &str) -> usize {
    let mut count = 0_usize;
    let mut escape = false;
    for c in cell.chars() {
        match (escape, c) {
            (false, '\x1b') => escape = true,
            (true, 'm') => escape = false,
            (true, _) => {}
            (false, _) => count = count.saturating_add(1),
        }
    }
    count
}

/// Bytes for people, in binary units.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let mut table = Table::new(["A", "LONG"]);
        table.row(["\x1b[32mgreen\x1b[0m".into(), "x".into()]);
        table.row(["b".into(), String::new()]);
        assert_eq!(table.render(), "A      LONG\n\x1b[32mgreen\x1b[0m  x\nb\n");
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(4 << 20), "4.0 MiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
