//! Compressed bodies, made plain piece by piece.

use std::fmt;

use bytes::Bytes;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::error::{NetworkError, NetworkErrorKind};

/// Decompresses the body of an answer in gzip (RFC 1952), of one member or several, cut anywhere.
///
/// Each piece of compressed bytes that is pushed in is pulled out plain, no more than [`PIECE`](Self::PIECE) bytes at a time:
/// so little becomes of a body that is small only as long as it is compressed, until whoever reads it has had enough.
///
/// ```
/// use cloudcoil_core::Gunzip;
///
/// let mut gunzip = Gunzip::new();
/// gunzip.push(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3].into());
/// assert_eq!(gunzip.pull(), Ok(None));
/// gunzip.push(vec![0xcb, 0xc8, 4, 0, 0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0].into());
/// assert_eq!(gunzip.pull(), Ok(Some("hi".into())));
/// assert_eq!((gunzip.pull(), gunzip.finish()), (Ok(None), Ok(())));
/// ```
pub struct Gunzip {
    part: Part,
    input: Bytes,
    /// The beginning of a member, or its end, as far as it has come.
    scratch: [u8; 10],
    flags: u8,
    inflater: Decompress,
    /// Over the header first, then over the plain bytes.
    crc: Crc,
}

/// Which part of a member comes next; numbers count the bytes of it that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Nothing has come yet: a body without a single byte is as good as one of an empty member.
    Start,
    Fixed(usize),
    ExtraLength(usize),
    /// How much is still to come.
    Extra(usize),
    Name,
    Comment,
    HeaderCheck(usize),
    Data,
    Trailer(usize),
    /// Another member, or zeros to fill a block.
    Between,
    Failed,
}

impl Gunzip {
    /// The largest plain piece, in bytes.
    pub const PIECE: usize = 64 << 10;

    /// A body of which nothing has come.
    pub fn new() -> Self {
        Self {
            part: Part::Start,
            input: Bytes::new(),
            scratch: [0; 10],
            flags: 0,
            inflater: Decompress::new(false),
            crc: Crc::new(),
        }
    }

    /// Takes a piece of the body; to be called when the one before is used up, as [`pull`](Self::pull) tells.
    pub fn push(&mut self, bytes: Bytes) {
        self.input = if self.input.is_empty() { bytes } else { [&self.input[..], &bytes].concat().into() };
    }

    /// The next plain piece; `None` when more has to be pushed first.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Protocol`] if the body is no gzip, or does not pass its own check.
    pub fn pull(&mut self) -> Result<Option<Bytes>, NetworkError> {
        loop {
            match self.part {
                Part::Data => match self.inflate()? {
                    Some(plain) => return Ok(Some(plain)),
                    None if self.part == Part::Data => return Ok(None),
                    None => {}
                },
                Part::Failed => return Err(broken("it has failed before")),
                Part::Extra(0) => self.part = self.after_extra(),
                Part::Extra(left) if !self.input.is_empty() => {
                    let skipped = self.input.split_to(left.min(self.input.len()));
                    self.crc.update(&skipped);
                    self.part = Part::Extra(left - skipped.len());
                }
                _ => {
                    let Some(byte) = self.input.first().copied() else { return Ok(None) };
                    let _ = self.input.split_to(1);
                    self.take(byte).inspect_err(|_| self.part = Part::Failed)?;
                }
            }
        }
    }

    /// To be called when the body has ended.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Protocol`] if it has ended too early.
    pub fn finish(&self) -> Result<(), NetworkError> {
        match self.part {
            Part::Start | Part::Between => Ok(()),
            _ => Err(broken("it ends too early")),
        }
    }

    /// Takes a byte of anything but data.
    fn take(&mut self, byte: u8) -> Result<(), NetworkError> {
        match self.part {
            Part::Between if byte == 0 => return Ok(()),
            Part::Start | Part::Between => {
                self.crc = Crc::new();
                self.part = Part::Fixed(0);
                return self.take(byte);
            }
            Part::Trailer(at) => return self.take_trailer(at, byte),
            Part::HeaderCheck(at) => return self.take_check(at, byte),
            _ => self.crc.update(&[byte]),
        }
        match self.part {
            Part::Fixed(at) => return self.take_fixed(at, byte),
            Part::ExtraLength(0) => {
                self.scratch[0] = byte;
                self.part = Part::ExtraLength(1);
            }
            Part::ExtraLength(_) => self.part = Part::Extra(usize::from(u16::from_le_bytes([self.scratch[0], byte]))),
            Part::Name if byte == 0 => self.part = self.after_name(),
            Part::Comment if byte == 0 => self.part = self.after_comment(),
            _ => {}
        }
        Ok(())
    }

    fn take_fixed(&mut self, at: usize, byte: u8) -> Result<(), NetworkError> {
        self.scratch[at] = byte;
        match (at, byte) {
            (0, 0x1f) | (1, 0x8b) | (2, DEFLATE) | (4..9, _) => {}
            (0 | 1, _) => return Err(broken("it does not begin as gzip does")),
            (2, _) => return Err(broken("the method is not known")),
            (3, flags) if flags & RESERVED != 0 => return Err(broken("it has flags that are not known")),
            (3, flags) => self.flags = flags,
            _ => {
                self.part = if self.flags & EXTRA != 0 { Part::ExtraLength(0) } else { self.after_extra() };
                return Ok(());
            }
        }
        self.part = Part::Fixed(at + 1);
        Ok(())
    }

    fn take_check(&mut self, at: usize, byte: u8) -> Result<(), NetworkError> {
        if self.crc.sum().to_le_bytes()[at] != byte {
            return Err(broken("its header does not pass the check"));
        }
        self.part = if at == 0 { Part::HeaderCheck(1) } else { self.data() };
        Ok(())
    }

    /// The check of the plain bytes, and how many there are.
    fn take_trailer(&mut self, at: usize, byte: u8) -> Result<(), NetworkError> {
        let expected = if at < 4 { self.crc.sum() } else { self.crc.amount() };
        if expected.to_le_bytes()[at % 4] != byte {
            return Err(broken("it does not pass the check"));
        }
        self.part = if at == 7 { Part::Between } else { Part::Trailer(at + 1) };
        Ok(())
    }

    fn after_extra(&mut self) -> Part {
        if self.flags & NAME != 0 { Part::Name } else { self.after_name() }
    }

    fn after_name(&mut self) -> Part {
        if self.flags & COMMENT != 0 { Part::Comment } else { self.after_comment() }
    }

    fn after_comment(&mut self) -> Part {
        if self.flags & HEADER_CHECK != 0 { Part::HeaderCheck(0) } else { self.data() }
    }

    fn data(&mut self) -> Part {
        self.inflater.reset(false);
        self.crc = Crc::new();
        Part::Data
    }

    /// The next plain piece of a member's data; `None` when the data has ended, or more is needed.
    fn inflate(&mut self) -> Result<Option<Bytes>, NetworkError> {
        let mut plain = Vec::with_capacity(Self::PIECE);
        let before = self.inflater.total_in();
        let status = self.inflater.decompress_vec(&self.input, &mut plain, FlushDecompress::None);
        let taken = self.inflater.total_in() - before;
        let _ = self.input.split_to(usize::try_from(taken).unwrap_or_default());
        let status = status.map_err(|_| {
            self.part = Part::Failed;
            broken("it is damaged")
        })?;
        self.crc.update(&plain);
        match status {
            Status::StreamEnd => self.part = Part::Trailer(0),
            _ if plain.is_empty() && taken == 0 && !self.input.is_empty() => {
                self.part = Part::Failed;
                return Err(broken("it is damaged"));
            }
            // The end of the input may be taken while nothing comes of it yet.
            _ if plain.is_empty() && !self.input.is_empty() => return self.inflate(),
            Status::Ok | Status::BufError => {}
        }
        plain.shrink_to_fit();
        Ok((!plain.is_empty()).then(|| plain.into()))
    }
}

impl Default for Gunzip {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("part", &self.part).finish_non_exhaustive()
    }
}

fn broken(problem: &str) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Protocol, format!("the compressed body cannot be read: {problem}"))
}

const DEFLATE: u8 = 8;

const HEADER_CHECK: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, GzBuilder};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn plain(body: &[u8], size: usize) -> Result<Vec<u8>, NetworkError> {
        let (mut gunzip, mut plain) = (Gunzip::new(), Vec::new());
        for piece in body.chunks(size) {
            gunzip.push(Bytes::copy_from_slice(piece));
            while let Some(bytes) = gunzip.pull()? {
                assert!(!bytes.is_empty() && bytes.len() <= Gunzip::PIECE);
                plain.extend_from_slice(&bytes);
            }
        }
        gunzip.finish().map(|()| plain)
    }

    fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzBuilder::new().write(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A member with everything that a header can have.
    fn adorned(bytes: &[u8]) -> Vec<u8> {
        let builder = GzBuilder::new().extra(vec![7; 300]).filename("name").comment("comment").mtime(9);
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        let mut body = encoder.finish().unwrap();
        let header = 10 + 2 + 300 + b"name\0comment\0".len();
        body[3] |= HEADER_CHECK;
        let mut crc = Crc::new();
        crc.update(&body[..header]);
        let check = crc.sum().to_le_bytes();
        body.splice(header..header, check[..2].iter().copied());
        body
    }

    fn problem(body: &[u8]) -> String {
        let problems: Vec<_> = [1, 3, usize::MAX].map(|size| plain(body, size).unwrap_err()).into();
        assert!(problems.iter().all(|problem| *problem == problems[0] && problem.kind == NetworkErrorKind::Protocol));
        problems[0].message.strip_prefix("the compressed body cannot be read: ").unwrap().to_owned()
    }

    #[test]
    fn several_members_and_every_kind_of_header_are_read() {
        let body = [gzip(b"one ", 9), adorned(b"two "), gzip(b"", 1), gzip(b"three", 0)].concat();
        for size in [1, 2, 7, 100, usize::MAX] {
            assert_eq!(plain(&body, size).unwrap(), b"one two three", "{size}");
            assert_eq!(plain(&[&body[..], &[0; 40]].concat(), size).unwrap(), b"one two three", "padding");
        }
        assert_eq!(plain(b"", 1).unwrap(), b"");
    }

    #[test]
    fn what_grows_comes_in_pieces() {
        let bomb = gzip(&vec![0; 4 << 20], 9);
        assert!(bomb.len() < 8 << 10);
        let mut gunzip = Gunzip::new();
        gunzip.push(bomb.clone().into());
        for _ in 0..3 {
            assert!(gunzip.pull().unwrap().unwrap().len() <= Gunzip::PIECE);
        }
        assert_eq!(plain(&bomb, usize::MAX).unwrap().len(), 4 << 20);
    }

    #[test]
    fn a_flushed_piece_is_read_before_the_next_has_come() {
        let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
        encoder.write_all(b"event\n").unwrap();
        encoder.flush().unwrap();
        let mut gunzip = Gunzip::new();
        gunzip.push(encoder.get_ref().clone().into());
        assert_eq!(gunzip.pull().unwrap().unwrap(), "event\n");
        assert_eq!(gunzip.pull(), Ok(None));
        assert!(gunzip.finish().is_err());
    }

    #[test]
    fn what_is_damaged_is_malformed() {
        let good = gzip(b"hello, hello, hello", 6);
        let with = |at: usize, byte: u8| {
            let mut body = good.clone();
            body[at] = byte;
            body
        };
        assert_eq!(problem(b"{\"kind\":\"PodList\"}"), "it does not begin as gzip does");
        assert_eq!(problem(&with(1, 0)), "it does not begin as gzip does");
        assert_eq!(problem(&with(2, 7)), "the method is not known");
        assert_eq!(problem(&with(3, 0x20)), "it has flags that are not known");
        assert_eq!(problem(&with(10, 0xff)), "it is damaged");
        assert_eq!(problem(&with(good.len() - 8, !good[good.len() - 8])), "it does not pass the check");
        assert_eq!(problem(&with(good.len() - 1, 1)), "it does not pass the check");
        assert_eq!(problem(&[&good[..], b"garbage"].concat()), "it does not begin as gzip does");
        let mut adorned = adorned(b"x");
        let at = adorned.windows(8).position(|window| window == b"comment\0").unwrap() + 8;
        adorned[at] ^= 1;
        assert_eq!(problem(&adorned), "its header does not pass the check");
        for length in 1..good.len() {
            assert_eq!(problem(&good[..length]), "it ends too early", "{length}");
        }
    }

    #[test]
    fn a_failure_is_for_good() {
        let mut gunzip = Gunzip::new();
        gunzip.push("x".into());
        assert!(gunzip.pull().is_err() && gunzip.pull().is_err());
        gunzip.push(gzip(b"x", 6).into());
        assert!(gunzip.pull().is_err() && gunzip.finish().is_err());
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back_however_it_is_cut(bytes in vec(0_u8..4, 0..5000), level in 0_u32..10, size in 1_usize..600) {
            prop_assert_eq!(plain(&gzip(&bytes, level), size).unwrap(), bytes);
        }

        #[test]
        fn damage_never_panics_and_is_the_same_in_pieces(bytes in vec(any::<u8>(), 0..200), at: prop::sample::Index, byte: u8, size in 1_usize..20) {
            let mut body = gzip(&bytes, 6);
            let at = at.index(body.len());
            body[at] = byte;
            prop_assert_eq!(plain(&body, size).is_ok(), plain(&body, usize::MAX).is_ok());
        }
    }
}
