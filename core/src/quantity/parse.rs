//! The grammar of quantities.

use super::QuantityFault;
use super::amount::Amount;

/// Which kind of suffix a quantity has, and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity's text, taken apart.
pub(super) struct Parts<'a> {
    negative: bool,
    /// The digits before the point, leading zeros included.
    whole: &'a str,
    /// The digits behind the point.
    fraction: &'a str,
    pub(super) format: Format,
    /// Of ten, or of two for the binary format.
    exponent: i32,
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, QuantityFault> {
        if text.is_empty() {
            return Err(QuantityFault::Empty);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityFault::NoNumber);
        }
        let (format, exponent) = interpret(suffix)?;
        Ok(Self { negative: text.starts_with('-'), whole, fraction, format, exponent })
    }

    pub(super) fn amount(&self) -> Result<Amount, QuantityFault> {
        let digits = [self.whole, self.fraction].concat();
        // A string is no longer than isize::MAX, so this stays far from overflow.
        let shift = -(self.fraction.len() as i64);
        let amount = match self.format {
            Format::Binary => Amount::new(self.negative, digits.as_bytes(), shift).shifted_left(self.exponent),
            _ => Amount::new(self.negative, digits.as_bytes(), shift + i64::from(self.exponent)),
        };
        let rounded = amount.rounded_to(-NANO_DIGITS);
        match self.format {
            Format::Binary => Ok(rounded.capped()),
            // Its canonical form would be no quantity.
            Format::Exponent if rounded.exponent() > i64::from(i32::MAX) => {
                Err(QuantityFault::Exponent(rounded.exponent().to_string()))
            }
            Format::Decimal | Format::Exponent => Ok(rounded),
        }
    }

    /// Whether the API server finds the text good enough to keep, which it decides without computing the value.
    pub(super) fn is_left_alone(&self) -> bool {
        let whole = match self.whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        let length = (whole.len() + self.fraction.len()) as i64;
        match self.format {
            Format::Binary => {
                let precision = 14 - length - i64::from(self.exponent) * 3 / 10;
                let odd = whole.parse::<u64>().is_ok_and(|number| number % 8 != 0);
                self.fraction.is_empty() && precision >= 0 && odd
            }
            _ => {
                let scale = i64::from(self.exponent) - self.fraction.len() as i64;
                let digits = [whole, self.fraction].concat();
                let canonical = scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0');
                length <= 18 && scale >= -NANO_DIGITS && canonical
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn interpret(suffix: &str) -> Result<(Format, i32), QuantityFault> {
    if let Some(index) = DECIMAL_SUFFIXES.iter().position(|known| *known == suffix) {
        return Ok((Format::Decimal, index as i32 * 3 - 9));
    }
    if let Some(index) = BINARY_SUFFIXES.iter().skip(1).position(|known| *known == suffix) {
        return Ok((Format::Binary, index as i32 * 10 + 10));
    }
    let unknown = || QuantityFault::Suffix(suffix.to_owned());
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
    let (number, rest) = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if number.is_empty() || !rest.is_empty() {
        return Err(unknown());
    }
    let exponent = exponent.parse().map_err(|_| QuantityFault::Exponent(exponent.to_owned()))?;
    Ok((Format::Exponent, exponent))
}

/// From 10^-9, in steps of 10^3.
pub(super) const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// From 1, in steps of 2^10.
pub(super) const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The digits behind the point that are kept.
const NANO_DIGITS: i64 = 9;
