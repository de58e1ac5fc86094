//! Splitting a stream into lines.

/// The lines of a stream that comes in chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// `partial` was given out, and goes before the next line is looked for.
    spent: bool,
    /// The rest of a line that is too long is still coming.
    skipping: bool,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// The first bytes of a line over the limit, as many as the limit.
    TooLong(&'a [u8]),
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self { partial: Vec::new(), spent: false, skipping: false }
    }

    /// Takes the next line off the front of `chunk`; what is left when there is none waits for the next chunk.
    pub(super) fn next<'l, 'c: 'l>(&'l mut self, chunk: &mut &'c [u8], limit: usize) -> Option<Line<'l>> {
        self.forget_spent();
        loop {
            if chunk.is_empty() {
                return None;
            }
            let (piece, ended) = match memchr::memchr(b'\n', chunk) {
                Some(end) => (&chunk[..end], true),
                None => (*chunk, false),
            };
            *chunk = &chunk[piece.len() + usize::from(ended)..];
            if self.skipping {
                self.skipping = !ended;
                continue;
            }
            if self.partial.is_empty() && ended {
                return Some(if piece.len() > limit { Line::TooLong(&piece[..limit]) } else { Line::Whole(piece) });
            }
            let room = limit - self.partial.len();
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                self.spent = true;
                self.skipping = !ended;
                return Some(Line::TooLong(&self.partial));
            }
            if ended {
                self.spent = true;
                return Some(Line::Whole(&self.partial));
            }
        }
    }

    /// What has come of a last line that has no end.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        self.forget_spent();
        self.skipping = false;
        Some(std::mem::take(&mut self.partial)).filter(|line| !line.is_empty())
    }

    fn forget_spent(&mut self) {
        if self.spent {
            self.spent = false;
            self.partial.clear();
            // A rare long line must not hold its memory for ever.
            self.partial.shrink_to(KEPT_CAPACITY);
        }
    }
}

const KEPT_CAPACITY: usize = 64 << 10;
