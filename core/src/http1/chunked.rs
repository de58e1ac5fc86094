//! Bodies that come in chunks: RFC 9112, section 7.1.

use bytes::{Buf as _, Bytes};

use super::Flaw;
use crate::error::NetworkError;

/// Where a body in chunks stands.
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// How long the line, or the trailers, are so far.
    length: usize,
    lines: Lines,
}

/// How lines end.
#[derive(Debug, Clone, Copy)]
enum Lines {
    /// With a line feed, whatever is before it: who reads an answer has asked for it, and wants to hear it.
    Lenient,
    /// With a carriage return and a line feed, and neither stands anywhere else: whoever reads a request must see the same in it
    /// as all who passed it on.
    Strict { after_return: bool },
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The digits of a chunk's size.
    Size {
        size: u64,
        digits: bool,
    },
    /// What may follow a size, up to the end of its line.
    Extension {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The end of the line behind the data.
    DataEnd,
    /// Headers behind the last chunk; an empty line ends them.
    Trailers {
        empty: bool,
    },
}

pub(super) enum Next {
    Data(Bytes),
    /// The input is used up.
    More,
    End,
}

impl Default for Chunked {
    fn default() -> Self {
        Self { state: State::Size { size: 0, digits: false }, length: 0, lines: Lines::Lenient }
    }
}

impl Chunked {
    /// One that takes nothing that could be read in two ways.
    pub(super) fn strict() -> Self {
        Self { lines: Lines::Strict { after_return: false }, ..Self::default() }
    }

    pub(super) fn next(&mut self, input: &mut Bytes) -> Result<Next, NetworkError> {
        while !input.is_empty() {
            if let State::Data { left } = self.state {
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - most as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data { left } };
                return Ok(Next::Data(input.split_to(most)));
            }
            let byte = input.get_u8();
            self.length += 1;
            if self.length > MAX_LINE {
                return Err(Flaw::Chunks.into());
            }
            self.check(byte)?;
            match self.state.after(byte)? {
                Some(state) => self.enter(state),
                None => return Ok(Next::End),
            }
        }
        Ok(Next::More)
    }

    fn check(&mut self, byte: u8) -> Result<(), NetworkError> {
        let Lines::Strict { after_return } = &mut self.lines else { return Ok(()) };
        if std::mem::replace(after_return, byte == b'\r') != (byte == b'\n') {
            return Err(Flaw::Chunks.into());
        }
        match self.state {
            State::Size { digits: true, .. } if matches!(byte, b' ' | b'\t') => Err(Flaw::Chunks.into()),
            _ => Ok(()),
        }
    }

    fn enter(&mut self, state: State) {
        if matches!(state, State::Data { .. } | State::Size { digits: false, .. }) {
            self.length = 0;
        }
        self.state = state;
    }
}

impl State {
    /// What is waited for after a byte; `None` at the end of the body.
    fn after(self, byte: u8) -> Result<Option<Self>, NetworkError> {
        Ok(Some(match (self, byte) {
            (Self::Size { size, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let size = size.checked_mul(16).and_then(|size| size.checked_add(digit.into()));
                Self::Size { size: size.ok_or(Flaw::Chunks)?, digits: true }
            }
            (Self::Size { size, digits: true } | Self::Extension { size }, b'\n') => match size {
                0 => Self::Trailers { empty: true },
                left => Self::Data { left },
            },
            (Self::Size { size, digits: true }, b'\r' | b';' | b' ' | b'\t') => Self::Extension { size },
            (Self::Size { .. }, _) => return Err(Flaw::Chunks.into()),
            (state @ Self::Extension { .. }, _) | (state @ Self::DataEnd, b'\r') => state,
            (Self::DataEnd, b'\n') => Self::Size { size: 0, digits: false },
            (Self::DataEnd, _) => return Err(Flaw::Chunks.into()),
            (Self::Trailers { empty: true }, b'\n') => return Ok(None),
            (Self::Trailers { .. }, b'\n') => Self::Trailers { empty: true },
            (Self::Trailers { empty }, b'\r') => Self::Trailers { empty },
            (Self::Trailers { .. }, _) => Self::Trailers { empty: false },
            (state @ Self::Data { .. }, _) => state,
        }))
    }
}

/// The longest line with a size, and the longest trailers, in bytes.
const MAX_LINE: usize = 16 * 1024;
