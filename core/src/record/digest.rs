//! Telling bodies apart without keeping them.

use std::fmt;

/// What remains of the bytes that went through: nearly certainly another for other bytes, and the same however they were cut.
/// Times as Kubernetes writes them all count as the same.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Digest {
    state: u64,
    length: u64,
    matching: Matching,
}

/// How much of a time, `2026-01-02T03:04:05.000006Z`, has gone through.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Matching {
    /// Its beginning, perhaps: so many bytes, which do not count yet.
    Start([u8; PATTERN.len()], usize),
    /// All but the fraction of a second.
    Fraction,
}

/// Without what a guess could be checked by.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digest").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Digest {
    pub(super) const fn new() -> Self {
        Self { state: OFFSET, length: 0, matching: Matching::NONE }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        bytes.iter().for_each(|byte| self.take(*byte));
    }

    /// How many bytes went through.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// What remains of them.
    pub(super) fn value(&self) -> u64 {
        let mut whole = self.clone();
        whole.flush();
        whole.state
    }

    fn take(&mut self, byte: u8) {
        match &mut self.matching {
            Matching::Fraction if byte == b'.' || byte.is_ascii_digit() => {}
            Matching::Fraction => {
                self.matching = Matching::NONE;
                self.take(byte);
            }
            Matching::Start(held, count) if fits(PATTERN[*count], byte) => {
                held[*count] = byte;
                *count += 1;
                if *count == PATTERN.len() {
                    self.matching = Matching::Fraction;
                    self.count(b'T');
                }
            }
            Matching::Start(_, 0) => self.count(byte),
            Matching::Start(held, count) => {
                // The first byte begins no time; perhaps the second does.
                let (held, held_count) = (*held, *count);
                self.matching = Matching::NONE;
                self.count(held[0]);
                held[1..held_count].iter().for_each(|byte| self.take(*byte));
                self.take(byte);
            }
        }
    }

    /// What might have been the beginning of a time is none.
    fn flush(&mut self) {
        if let Matching::Start(held, count) = std::mem::replace(&mut self.matching, Matching::NONE) {
            held[..count].iter().for_each(|byte| self.count(*byte));
        }
    }

    /// FNV-1a.
    const fn count(&mut self, byte: u8) {
        self.state = (self.state ^ byte as u64).wrapping_mul(PRIME);
    }
}

impl Matching {
    const NONE: Self = Self::Start([0; PATTERN.len()], 0);
}

const fn fits(pattern: u8, byte: u8) -> bool {
    if pattern == b'0' { byte.is_ascii_digit() } else { pattern == byte }
}

const PATTERN: [u8; 19] = *b"0000-00-00T00:00:00";
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        let mut digest = Digest::new();
        digest.push(text.as_bytes());
        digest.value()
    }

    #[test]
    fn times_count_as_the_same_and_other_numbers_do_not() {
        let at = |time: &str| digest(&format!(r#"{{"a":"{time}","b":12}}"#));
        assert_eq!(at("2026-01-02T03:04:05Z"), at("1999-12-31T23:59:59Z"));
        assert_eq!(at("2026-01-02T03:04:05.000006Z"), at("1999-12-31T23:59:59.123456Z"));
        assert_eq!(at("12026-01-02T03:04:05Z"), at("11999-12-31T23:59:59Z"), "one that begins within another number");
        for (one, other) in [("2026", "2027"), ("2026-01-02", "2026-01-03"), ("2026-01-02T03:04", "2026-01-02T03:05")] {
            assert_ne!(at(one), at(other), "{one}");
        }
    }

    #[test]
    fn cutting_does_not_matter() {
        let text = r#"x 20 2026-01-02T03:04:05.000006Z 2026-01-02T03:04 y 2026-01-02T03:04:05Z 99"#;
        for cut in 0..=text.len() {
            let mut pieces = Digest::new();
            pieces.push(&text.as_bytes()[..cut]);
            pieces.push(&text.as_bytes()[cut..]);
            assert_eq!((pieces.value(), pieces.length()), (digest(text), text.len() as u64), "{cut}");
        }
    }
}
