//! Tables for terminals and pipes: columns as wide as their widest cell.

use super::Tone;

/// A table that is filled row by row.
pub(crate) struct Table {
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    /// A table with a heading.
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Table {
        Table { rows: vec![heading.iter().map(|cell| (Tone::Strong, (*cell).to_owned())).collect()] }
    }

    /// A row; as many cells as the heading has.
    pub(crate) fn row(&mut self, cells: Vec<(Tone, String)>) {
        self.rows.push(cells);
    }

    /// The lines, without trailing blanks.
    pub(crate) fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|(_, cell)| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[(Tone, String)], widths: &[usize]) -> String {
    let filled = row.iter().rposition(|(_, cell)| !cell.is_empty()).map_or(0, |last| last + 1);
    let mut line = String::new();
    for (at, ((tone, cell), width)) in row[..filled].iter().zip(widths).enumerate() {
        if at > 0 {
            line.push_str("  ");
        }
        line.push_str(&tone.paint(cell));
        if at + 1 < filled {
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let mut table = Table::new(["n", "what"]);
        table.row(vec![(Tone::Plain, "10".into()), (Tone::Plain, "ü".into())]);
        table.row(vec![(Tone::Plain, "2".into()), (Tone::Plain, String::new())]);
        let plain: Vec<String> =
            table.lines().iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(plain, ["n   what", "10  ü", "2"]);
    }
}
