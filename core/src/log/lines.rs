//! From the bytes of a log to its lines.

/// Cuts a log into lines, however its bytes come.
///
/// A line ends with LF or CRLF, which are not part of it; the last may end with neither. Bytes that are no UTF-8 become
/// U+FFFD. A line longer than the limit comes in pieces, each a line of its own, so that nothing is lost and
/// little is kept.
///
/// ```
/// use cloudcoil_core::LogLines;
///
/// let mut lines = LogLines::new();
/// assert_eq!(lines.push(b"one\r\ntw"), ["one"]);
/// assert_eq!(lines.push(b"o\n\nthr"), ["two", ""]);
/// assert_eq!(lines.finish(), Some("thr".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLines {
    open: Vec<u8>,
    limit: usize,
}

impl LogLines {
    /// About how many bytes of a line come at once at the most, unless another limit is asked for.
    pub const LIMIT: usize = 1 << 20;

    /// Lines of at most [`LIMIT`](Self::LIMIT) bytes.
    pub const fn new() -> Self {
        Self::limited(Self::LIMIT)
    }

    /// Lines of at most `limit` bytes, and 4 at the least, which one character may need.
    pub const fn limited(limit: usize) -> Self {
        Self { open: Vec::new(), limit: if limit < 4 { 4 } else { limit } }
    }

    /// The lines that are complete with these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.open.extend_from_slice(piece);
            self.cut(&mut lines);
            if pieces.peek().is_some() {
                lines.push(self.take());
            }
        }
        lines
    }

    /// The last line, if it has no end, once no more bytes come.
    pub fn finish(&mut self) -> Option<String> {
        (!self.open.is_empty()).then(|| text(&std::mem::take(&mut self.open)))
    }

    /// Takes pieces off a line that is too long; the one byte over the limit may be the CR of its end.
    fn cut(&mut self, lines: &mut Vec<String>) {
        let mut start = 0;
        while self.open.len() - start > self.limit + 1 {
            let rest = &self.open[start..];
            let whole = (self.limit - 3..=self.limit).rev().find(|at| !is_continuation(rest[*at]));
            let end = whole.unwrap_or(self.limit);
            lines.push(text(&rest[..end]));
            start += end;
        }
        self.open.drain(..start);
    }

    fn take(&mut self) -> String {
        let line = std::mem::take(&mut self.open);
        text(line.strip_suffix(b"\r").unwrap_or(&line))
    }
}

impl Default for LogLines {
    fn default() -> Self {
        Self::new()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = LogLines::limited(limit);
        let mut all: Vec<_> = chunks.iter().flat_map(|chunk| lines.push(chunk)).collect();
        all.extend(lines.finish());
        all
    }

    #[test]
    fn every_end_of_a_line_is_known_and_the_last_needs_none() {
        assert_eq!(lines(100, &[b"a\nb\r\nc\rd\n\n\r\ne"]), ["a", "b", "c\rd", "", "", "e"]);
        assert_eq!(lines(100, &[b"a\r", b"\nb\n"]), ["a", "b"]);
        assert_eq!(lines(100, &[b"a\r"]), ["a\r"], "no CR of an end that never came is taken");
        assert!(lines(100, &[b"", b""]).is_empty());
    }

    #[test]
    fn text_cut_within_a_character_is_whole_and_odd_bytes_are_replaced() {
        let text = "naïve → 完了\n".as_bytes();
        let bytes: Vec<_> = text.chunks(1).collect();
        assert_eq!(lines(100, &bytes), ["naïve → 完了"]);
        assert_eq!(lines(100, &[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_long_line_comes_in_pieces_of_whole_characters_and_loses_nothing() {
        let line = "完".repeat(10);
        let pieces = lines(8, &[line.as_bytes(), b"\nb"]);
        assert_eq!(pieces.last().unwrap(), "b");
        assert!(pieces.len() > 4 && pieces.iter().all(|piece| piece.len() <= 9 && !piece.contains('\u{fffd}')));
        assert_eq!(pieces[..pieces.len() - 1].concat(), line);
        assert_eq!(lines(4, &[b"1234\r\n"]), ["1234"], "an end is no piece");
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            text in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..60),
            cuts in vec(0..60_usize, 0..6),
            limit in 4..12_usize,
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(lines(limit, &chunks), lines(limit, &[&text]));
        }
    }
}
