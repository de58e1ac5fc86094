//! Exact decimal numbers of any size, for what quantities need of them.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::parse::{BINARY_SUFFIXES, DECIMAL_SUFFIXES};

/// A decimal number: `digits` × 10^`exponent`.
///
/// Always normal, so that equal numbers have equal fields: `digits` neither start nor end with a zero, and zero has
/// none, no sign and the exponent 0. The exponent is far from the ends of its type, so sums of it with lengths fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Amount {
    negative: bool,
    /// From 0 to 9 each, not ASCII.
    digits: Box<[u8]>,
    exponent: i64,
}

impl Amount {
    /// The number `digits` (in ASCII, nothing else) × 10^`exponent`.
    pub(super) fn new(negative: bool, digits: &[u8], exponent: i64) -> Self {
        Self::normal(negative, digits.iter().map(|digit| digit - b'0').collect(), exponent)
    }

    fn normal(negative: bool, mut digits: Vec<u8>, exponent: i64) -> Self {
        let kept = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        let exponent = exponent + (digits.len() - kept) as i64;
        digits.truncate(kept);
        digits.drain(..digits.iter().take_while(|digit| **digit == 0).count());
        match digits.is_empty() {
            true => Self { negative: false, digits: Box::default(), exponent: 0 },
            false => Self { negative, digits: digits.into(), exponent },
        }
    }

    pub(super) const fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) const fn is_negative(&self) -> bool {
        self.negative
    }

    /// The power of ten of its last digit that is not zero; 0 for zero.
    pub(super) const fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The number × 2^`bits`, where `bits` is at most 60.
    pub(super) fn shifted_left(self, bits: i32) -> Self {
        let mut carry = 0_u128;
        let mut product = Vec::with_capacity(self.digits.len() + 19);
        for digit in self.digits.iter().rev() {
            carry += u128::from(*digit) << bits;
            product.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            product.push((carry % 10) as u8);
            carry /= 10;
        }
        product.reverse();
        Self::normal(self.negative, product, self.exponent)
    }

    /// The number as a multiple of 10^`exponent`, rounded away from zero.
    pub(super) fn rounded_to(self, exponent: i64) -> Self {
        if self.exponent >= exponent || self.is_zero() {
            return self;
        }
        let kept = usize::try_from(self.end() - exponent).unwrap_or(0);
        let mut digits = self.digits[..kept].to_vec();
        let mut exponent = exponent;
        // What is dropped is not zero, as the last digit is not, so the rest grows by one.
        while digits.last() == Some(&9) {
            digits.pop();
            exponent += 1;
        }
        match digits.last_mut() {
            Some(digit) => *digit += 1,
            None => digits.push(1),
        }
        Self::normal(self.negative, digits, exponent)
    }

    /// The number, or what of 2^63-1 and its negative is nearer when it lies beyond.
    pub(super) fn capped(self) -> Self {
        let limit = Self::new(self.negative, b"9223372036854775807", 0);
        if self.compare_magnitude(&limit).is_gt() { limit } else { self }
    }

    /// The number × 10^`places` as an integer, rounded away from zero, if it fits.
    pub(super) fn scaled(&self, places: i64) -> Option<i64> {
        let rounded = self.clone().rounded_to(-places);
        let zeros = usize::try_from(rounded.exponent + places).ok().filter(|zeros| *zeros < 20)?;
        let mut text = rounded.plain();
        text.extend(std::iter::repeat_n('0', zeros));
        text.parse().ok()
    }

    pub(super) fn to_f64(&self) -> f64 {
        format!("{}e{}", self.plain(), self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// The canonical text with a decimal suffix. From 10^18 on there is none left, and zeros are printed instead.
    pub(super) fn decimal(&self) -> String {
        let exponent = self.exponent.div_euclid(3).min(6) * 3;
        // After rounding, no exponent is below that of `n`.
        let suffix = usize::try_from(exponent / 3 + 3).ok().and_then(|index| DECIMAL_SUFFIXES.get(index));
        self.padded(exponent) + suffix.unwrap_or(&"")
    }

    /// The canonical text with an exponent.
    pub(super) fn exponential(&self) -> String {
        let exponent = self.exponent.div_euclid(3) * 3;
        let mut text = self.padded(exponent);
        if exponent != 0 {
            // Writing to a string never fails.
            let _ = write!(text, "e{exponent}");
        }
        text
    }

    /// The canonical text with a binary suffix; nothing for fractions, and for less than 1024 either way.
    pub(super) fn binary(&self) -> Option<String> {
        let mut rest = (self.exponent >= 0).then(|| self.scaled(0)).flatten().filter(|n| n.unsigned_abs() >= 1024)?;
        let mut index = 0;
        while rest % 1024 == 0 {
            rest /= 1024;
            index += 1;
        }
        // No number of 63 bits has more factors than there are suffixes.
        Some(format!("{rest}{}", BINARY_SUFFIXES.get(index)?))
    }

    /// The digits as text, with zeros up to the place of 10^`exponent`, which is not above the number's own.
    fn padded(&self, exponent: i64) -> String {
        let mut text = self.plain();
        text.extend(std::iter::repeat_n('0', usize::try_from(self.exponent - exponent).unwrap_or(0)));
        text
    }

    fn plain(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let sign = self.negative.then_some('-');
        sign.into_iter().chain(self.digits.iter().map(|digit| char::from(b'0' + digit))).collect()
    }

    /// The place behind the first digit: 10^`end` is above the number.
    fn end(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, _) | (_, true) => other.is_zero().cmp(&self.is_zero()),
            // No number ends with a zero, so the longer of two with a common start is the greater.
            _ => self.end().cmp(&other.end()).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
            (negative, other) => other.cmp(&negative),
        }
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
