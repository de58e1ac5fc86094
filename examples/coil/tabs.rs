//! Columns, aligned as kubectl aligns them.

/// Lines of cells that wait for the widths of their columns. Widths are remembered, so that lines printed later stand
/// below those printed before.
#[derive(Debug, Default)]
pub(crate) struct Tabs {
    lines: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Tabs {
    /// Adds a line.
    pub(crate) fn line<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.lines.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines that were added since the last time.
    pub(crate) fn take(&mut self) -> Vec<String> {
        for line in &self.lines {
            // The last cell of a line is not padded, and so has no say.
            for (column, cell) in line.iter().enumerate().take(line.len().saturating_sub(1)) {
                let width = MIN_WIDTH.max(cell.chars().count() + PADDING);
                match self.widths.get_mut(column) {
                    Some(known) => *known = width.max(*known),
                    None => self.widths.push(width),
                }
            }
        }
        let widths = &self.widths;
        self.lines.drain(..).map(|line| align(&line, widths)).collect()
    }
}

fn align(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (column, cell) in cells.iter().enumerate() {
        text.push_str(cell);
        if column + 1 < cells.len() {
            let spaces = widths[column].saturating_sub(cell.chars().count());
            text.extend(std::iter::repeat_n(' ', spaces));
        }
    }
    text
}

/// A cell in one line, without what a terminal would act on.
pub(crate) fn cell(text: &str) -> String {
    let (first, cut) = match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => (&text[..end], true),
        None => (text, false),
    };
    let mut cell = first.replace('\u{1b}', "^[");
    if cut {
        cell.push_str("...");
    }
    cell
}

const MIN_WIDTH: usize = 6;
const PADDING: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_three_apart_and_six_wide_at_least() {
        let mut tabs = Tabs::default();
        tabs.line(["NAME", "N", "AGE"]);
        tabs.line(["wëb-0", "1", "5d"]);
        assert_eq!(tabs.take(), ["NAME    N     AGE", "wëb-0   1     5d"]);
    }

    #[test]
    fn later_lines_stand_below_earlier_ones() {
        let mut tabs = Tabs::default();
        tabs.line(["a-long-name", "x"]);
        assert_eq!(tabs.take(), ["a-long-name   x"]);
        tabs.line(["b", "y"]);
        assert_eq!(tabs.take(), ["b             y"]);
        tabs.line(["a-longer-name-yet", "z"]);
        assert_eq!(tabs.take(), ["a-longer-name-yet   z"]);
    }

    #[test]
    fn a_cell_is_one_line_and_harmless() {
        assert_eq!(cell("a\nb"), "a...");
        assert_eq!(cell("\u{1b}[31mred"), "^[[31mred");
    }
}
