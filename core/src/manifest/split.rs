//! Where a document of a YAML stream begins and ends.

use super::document::Document;

/// Cuts a text at its `---` and `...` lines, which in YAML cannot stand within a document, and passes over documents without
/// content.
pub(super) struct Splitter<'a> {
    rest: &'a str,
    /// The line at which the rest begins.
    line: usize,
    count: usize,
}

impl<'a> Splitter<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, count: 0 }
    }

    /// The text up to the next mark, and the line at which it begins.
    fn segment(&mut self) -> Option<(&'a str, usize)> {
        if self.rest.is_empty() {
            return None;
        }
        let (text, first_line) = (self.rest, self.line);
        let mut at = 0;
        while at < text.len() {
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
            match Mark::of(&text[at..end]) {
                // What stands behind the mark belongs to the next document.
                Some(Mark::Begin) => {
                    self.rest = &text[at + MARK..];
                    return Some((&text[..at], first_line));
                }
                Some(Mark::End) => {
                    self.rest = &text[end..];
                    self.line += 1;
                    return Some((&text[..at], first_line));
                }
                None => self.line += usize::from(text[..end].ends_with('\n')),
            }
            at = end;
        }
        self.rest = "";
        Some((text, first_line))
    }
}

impl<'a> Iterator for Splitter<'a> {
    type Item = Document<'a>;

    fn next(&mut self) -> Option<Document<'a>> {
        loop {
            let (text, line) = self.segment()?;
            let skipped = text.lines().take_while(|line| is_empty(line.trim_start())).count();
            if skipped < text.lines().count() {
                self.count += 1;
                return Some(Document { text, first_line: line, content_line: line + skipped, number: self.count });
            }
        }
    }
}

enum Mark {
    Begin,
    End,
}

impl Mark {
    fn of(line: &str) -> Option<Self> {
        let is_mark = |mark: &str| {
            line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        if is_mark("---") {
            Some(Self::Begin)
        } else if is_mark("...") {
            Some(Self::End)
        } else {
            None
        }
    }
}

/// Whether a line holds nothing, a comment, or a directive.
fn is_empty(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', '%'])
}

const MARK: usize = 3;
